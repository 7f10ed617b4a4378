//! What would make a deletion fail, checked before anything is deleted.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::cloud::failure::Failure;
use crate::deployed::Deployed;
use crate::events::Event;
use crate::{Error, Stack};

impl Stack {
    /// An error that names everything that would make the deletion fail. Checks that are not permitted are skipped.
    pub(super) async fn check_deletion(
        &self,
        deployed: &Deployed,
        physical: &BTreeMap<String, String>,
        retain: &[String],
    ) -> Result<(), Error> {
        let mut obstacles = Vec::new();
        if deployed.stack.protected {
            obstacles.push(format!(
                "stack {} has termination protection; turn it off first",
                self.name
            ));
        }
        let Some(template) = &deployed.template else {
            return refuse(obstacles);
        };
        let retained: BTreeSet<&str> = template
            .retained()
            .chain(retain.iter().map(String::as_str))
            .collect();
        let own: BTreeSet<&str> = physical.values().map(String::as_str).collect();
        for (id, resource) in template.resources().filter(|(id, _)| !retained.contains(id)) {
            let Some(physical_id) = physical.get(id) else {
                continue;
            };
            let found = match resource.get("Type").and_then(Value::as_str) {
                Some("AWS::IAM::ManagedPolicy") => self.attachments(physical_id, &own).await,
                Some("AWS::IAM::Role") => self.foreign_policies(physical_id, resource, &own).await,
                Some("AWS::S3::Bucket") => self.objects(physical_id).await,
                _ => continue,
            };
            match found {
                Ok(found) => obstacles.extend(found),
                Err(failure) => self.tell(&Event::NotChecked {
                    what: format!("deletion of {id}"),
                    reason: failure.message().to_owned(),
                }),
            }
        }
        refuse(obstacles)
    }

    /// Roles, users and groups of others that a policy is attached to.
    async fn attachments(&self, policy: &str, own: &BTreeSet<&str>) -> Result<Option<String>, Failure> {
        let entities = self.cloud.attached_to(policy).await?;
        let others: Vec<_> = entities
            .into_iter()
            .filter(|(_, name)| !own.contains(name.as_str()))
            .map(|(kind, name)| format!("{kind} {name}"))
            .collect();
        Ok((!others.is_empty()).then(|| {
            let others = others.join(", ");
            format!("policy {policy} is attached to {others}; detach it first")
        }))
    }

    /// Managed policies that the stack did not attach to its role. CloudFormation does not detach them.
    async fn foreign_policies(
        &self,
        role: &str,
        resource: &Value,
        own: &BTreeSet<&str>,
    ) -> Result<Option<String>, Failure> {
        let declared = resource
            .pointer("/Properties/ManagedPolicyArns")
            .and_then(Value::as_array);
        let declared: BTreeSet<&str> = declared.into_iter().flatten().filter_map(Value::as_str).collect();
        let mut attached = self.cloud.policies_of(role).await?;
        attached.retain(|arn| !own.contains(arn.as_str()) && !declared.contains(arn.as_str()));
        Ok((!attached.is_empty()).then(|| {
            let attached = attached.join(", ");
            format!("role {role} has {attached} attached; detach that first")
        }))
    }

    async fn objects(&self, bucket: &str) -> Result<Option<String>, Failure> {
        let holds = self.cloud.has_objects(bucket).await?;
        Ok(holds.then(|| format!("bucket {bucket} is not empty; empty it first")))
    }
}

fn refuse(obstacles: Vec<String>) -> Result<(), Error> {
    if obstacles.is_empty() {
        Ok(())
    } else {
        Err(Error::NotDeletable { obstacles })
    }
}

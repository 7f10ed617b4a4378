//! Deleting a stack: what would make it fail, what stays, and what a purge deletes too.

use std::collections::{BTreeMap, BTreeSet};

use aws_sdk_dynamodb::types::TableStatus;
use serde_json::Value;
use zae_limiter_template::Template;
use zae_limiter_template::deployer::Place;
use zae_limiter_template::model::ids;

use crate::adopt::looks_like_ours;
use crate::advised::UNPROTECT;
use crate::cloud::failure::Failure;
use crate::deployed::{Deployed, Described};
use crate::events::Event;
use crate::patience::{Deadline, patiently};
use crate::situation::Situation;
use crate::{Error, Stack};

/// How to delete a stack.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Deletion {
    /// Also deletes the table and the archive bucket with all their data. This cannot be undone.
    pub purge: bool,
    /// Logical ids of resources to keep, for a stack whose deletion failed because of them.
    pub retain: Vec<String>,
}

/// A resource that a deleted stack leaves behind.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Kept {
    /// The resource in the template.
    pub logical_id: String,
    /// Such as `AWS::DynamoDB::Table`.
    pub resource_type: String,
    /// The resource in the account: the table's or the bucket's name.
    pub physical_id: String,
}

/// The result of a deletion, or of planning one.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize)]
pub struct Deleted {
    /// Whether the stack existed.
    pub existed: bool,
    /// Resources that stay in the account.
    pub kept: Vec<Kept>,
    /// Resources that were deleted with their data.
    pub purged: Vec<Kept>,
    /// Whether the stack has queues, whose names SQS blocks for [a while](Deleted::NAMES_BLOCKED).
    pub queues: bool,
    /// The account and region of the stack; `None` if it did not exist.
    #[serde(skip)]
    pub place: Option<Place>,
}

/// A deletion that was started.
struct Started {
    before: Described,
    doomed: Vec<Kept>,
    kept: Vec<Kept>,
    queues: bool,
}

impl Deleted {
    /// SQS blocks the name of a deleted queue for this long. A deployment under the same name waits.
    pub const NAMES_BLOCKED: std::time::Duration = crate::cause::advice::QUEUE_NAME_BLOCKED;
}

impl Stack {
    /// What [`delete`](Stack::delete) would leave behind. If the stack does not exist: the table that the last stack of this
    /// name left. Refused for a stack of another project or tool, as the deletion is.
    pub async fn plan_delete(&self) -> Result<Deleted, Error> {
        let deadline = self.reading();
        let Some(deployed) = self.observe(&deadline).await? else {
            let left = match self.orphan(&deadline).await {
                // Without the permission to look for leftovers, none are reported.
                Err(Error::Denied { .. }) => None,
                left => left?,
            };
            return Ok(Deleted {
                kept: left.into_iter().collect(),
                ..Deleted::default()
            });
        };
        self.check_owner(&deployed)?;
        self.check_manager(&deployed)?;
        let physical = patiently(&deadline, || self.cloud.physical_ids(&deployed.stack.id)).await?;
        Ok(Deleted {
            existed: true,
            kept: kept(&deployed, &physical),
            purged: vec![],
            queues: has_queues(&deployed),
            place: deployed.stack.place(),
        })
    }

    /// Deletes the stack and waits until it is gone. Keeps the table and the archive bucket with their data. The next stack of
    /// this name imports the table.
    pub async fn delete(&self) -> Result<Deleted, Error> {
        self.delete_with(&Deletion::default()).await
    }

    /// Deletes the stack as `how` says.
    ///
    /// Refused before anything is deleted if another tool deploys the stack, unless [`adopt`](Stack::adopt) is set, or if it would
    /// fail: if the stack has termination protection, a policy of the stack is attached to a role of others, or a bucket that
    /// the stack deletes is not empty. A purge is refused before anything is deleted if the table has deletion protection or
    /// objects in the archive are locked. If a purge fails halfway, calling this again deletes the table. The archive bucket
    /// has a generated name; the error states it.
    pub async fn delete_with(&self, how: &Deletion) -> Result<Deleted, Error> {
        let deadline = self.deadline();
        let started = patiently(&deadline, || self.start_deletion(how, &deadline)).await?;
        let Some(Started {
            before,
            doomed,
            kept,
            queues,
        }) = started
        else {
            return self.purge_orphan(how, &deadline).await;
        };
        self.tell(&Event::Started { operation: "delete" });
        if let Some(stack) = self.finished(&before.id, Some(&before), &deadline).await? {
            return Err(self.failure(&stack, &deadline).await);
        }
        self.purge(&doomed, &self.account_of(&before).await?, &deadline)
            .await?;
        Ok(Deleted {
            existed: true,
            kept,
            purged: doomed,
            queues,
            place: before.place(),
        })
    }

    /// Checks and starts the deletion of the stack; `None` if it does not exist.
    async fn start_deletion(&self, how: &Deletion, deadline: &Deadline) -> Result<Option<Started>, Error> {
        let Some(deployed) = self.idle(deadline).await? else {
            return Ok(None);
        };
        let stateful = |kept: &Kept| ids::STATEFUL.iter().any(|id| id.as_str() == kept.logical_id);
        let physical = self.cloud.physical_ids(&deployed.stack.id).await?;
        self.check_deletion(&deployed, &physical, &how.retain).await?;
        let kept = kept(&deployed, &physical);
        let (doomed, kept): (Vec<_>, Vec<_>) = kept.into_iter().partition(|kept| how.purge && stateful(kept));
        let queues = has_queues(&deployed);
        let before = deployed.stack;
        self.check_purge(&doomed, &self.account_of(&before).await?)
            .await?;
        self.cloud.delete_stack(&before.id, &how.retain).await?;
        Ok(Some(Started {
            before,
            doomed,
            kept,
            queues,
        }))
    }

    /// Purges what the last stack of this name left, if that is asked for.
    async fn purge_orphan(&self, how: &Deletion, deadline: &Deadline) -> Result<Deleted, Error> {
        let left = if how.purge {
            self.orphan(deadline).await?
        } else {
            None
        };
        let left: Vec<_> = left.into_iter().collect();
        // Only buckets need the account.
        self.check_purge(&left, "").await?;
        self.purge(&left, "", deadline).await?;
        Ok(Deleted {
            purged: left,
            ..Deleted::default()
        })
    }

    async fn account_of(&self, stack: &Described) -> Result<String, Error> {
        match stack.place() {
            Some(place) => Ok(place.account),
            None => Ok(self.cloud.caller().await?.account),
        }
    }

    /// The stack once no operation is running; `None` if it does not exist.
    async fn idle(&self, deadline: &Deadline) -> Result<Option<Deployed>, Error> {
        loop {
            let Some(deployed) = self.observe(deadline).await? else {
                return Ok(None);
            };
            self.check_owner(&deployed)?;
            self.check_manager(&deployed)?;
            if !matches!(
                deployed.stack.situation(),
                Situation::Busy | Situation::CleaningUp
            ) {
                return Ok(Some(deployed));
            }
            self.attach(&deployed.stack, deadline).await?;
        }
    }

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
                "stack {} has termination protection; turn it off first (`{UNPROTECT}`)",
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

    /// The table that a deleted stack of this name left: it has this project's layout and belongs to no stack.
    pub(super) async fn orphan(&self, deadline: &Deadline) -> Result<Option<Kept>, Error> {
        let name = self.name.as_str();
        let table = patiently(deadline, || self.cloud.table(name))
            .await?
            .filter(looks_like_ours);
        // A table that is already being deleted needs no purge.
        let table = table.filter(|table| table.table_status() != Some(&TableStatus::Deleting));
        if table.is_none() || patiently(deadline, || self.cloud.owner_of(name)).await?.is_some() {
            return Ok(None);
        }
        Ok(Some(Kept {
            logical_id: ids::TABLE.to_string(),
            resource_type: "AWS::DynamoDB::Table".to_owned(),
            physical_id: name.to_owned(),
        }))
    }

    /// An error if one of these cannot be deleted.
    pub(super) async fn check_purge(&self, doomed: &[Kept], account: &str) -> Result<(), Error> {
        let mut obstacles = Vec::new();
        for resource in doomed {
            let name = &resource.physical_id;
            if is_table(resource) {
                let table = self.cloud.table(name).await?;
                if table.is_some_and(|table| table.deletion_protection_enabled == Some(true)) {
                    obstacles.push(format!(
                        "table {name} has deletion protection; set enable_deletion_protection to false and deploy first"
                    ));
                }
            } else if self.cloud.locks_objects(name, account).await? {
                obstacles.push(format!(
                    "bucket {name} has locked objects; delete the stack without purge, and the bucket after the locks expire"
                ));
            }
        }
        if obstacles.is_empty() {
            Ok(())
        } else {
            Err(Error::NotDeletable { obstacles })
        }
    }

    /// Deletes each of these, even if another one cannot be deleted.
    pub(super) async fn purge(
        &self,
        doomed: &[Kept],
        account: &str,
        deadline: &Deadline,
    ) -> Result<(), Error> {
        let (mut left, mut failed) = (Vec::new(), None);
        for resource in doomed {
            let purged = if is_table(resource) {
                self.purge_table(&resource.physical_id, deadline).await
            } else {
                self.purge_bucket(&resource.physical_id, account).await
            };
            match purged {
                Ok(what) => self.tell(&Event::Purged { what }),
                Err(error) => {
                    let kind = if is_table(resource) { "table" } else { "bucket" };
                    left.push(format!("{kind} {}", resource.physical_id));
                    failed = failed.or(Some(error));
                }
            }
        }
        match failed {
            None => Ok(()),
            Some(error) => Err(Error::PurgeIncomplete {
                left,
                source: Box::new(error),
            }),
        }
    }

    async fn purge_table(&self, name: &str, deadline: &Deadline) -> Result<String, Error> {
        self.cloud.delete_table(name).await?;
        self.table_that_stays(name, deadline).await?;
        Ok(format!("table {name}"))
    }

    async fn purge_bucket(&self, name: &str, account: &str) -> Result<String, Error> {
        let objects = self.cloud.empty_bucket(name, account).await?;
        self.cloud.delete_bucket(name, account).await?;
        Ok(format!("bucket {name} with {objects} objects"))
    }
}

/// The resources that the deployed template retains. After a failed creation: the imported table, if any.
fn kept(deployed: &Deployed, physical: &BTreeMap<String, String>) -> Vec<Kept> {
    let Some(template) = &deployed.template else {
        return vec![];
    };
    let kept = template.retained().filter_map(|id| {
        let physical_id = physical.get(id).filter(|physical| !physical.is_empty())?.clone();
        Some(Kept {
            logical_id: id.to_owned(),
            resource_type: type_of(template, id),
            physical_id,
        })
    });
    kept.collect()
}

fn has_queues(deployed: &Deployed) -> bool {
    let queue = |resource: &Value| resource["Type"] == "AWS::SQS::Queue";
    let mut resources = deployed.template.iter().flat_map(Template::resources);
    resources.any(|(_, resource)| queue(resource))
}

fn type_of(template: &Template, id: &str) -> String {
    let resource = template.resources().find(|(known, _)| *known == id);
    let kind = resource.and_then(|(_, resource)| resource.get("Type")?.as_str());
    kind.unwrap_or_default().to_owned()
}

fn refuse(obstacles: Vec<String>) -> Result<(), Error> {
    if obstacles.is_empty() {
        Ok(())
    } else {
        Err(Error::NotDeletable { obstacles })
    }
}

fn is_table(resource: &Kept) -> bool {
    resource.logical_id == ids::TABLE.as_str()
}

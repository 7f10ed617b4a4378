//! Stacks: describe, create, update, delete.

use std::collections::BTreeMap;
use std::time::SystemTime;

use aws_sdk_cloudformation::types::{
    Capability, ResourceStatus, StackResource, StackStatus, Tag, TemplateStage,
};

use super::Cloud;
use super::failure::Failure;
use crate::deployed::Described;
use crate::desired::{Desired, TemplateSource};

/// At most this many pages of deleted stacks, newest first.
const DELETION_PAGES: usize = 5;

impl Cloud {
    /// The stack of this name or ARN. A deleted stack is found by ARN only.
    pub(crate) async fn describe(&self, stack: &str) -> Result<Option<Described>, Failure> {
        match self
            .clients
            .cloudformation
            .describe_stacks()
            .stack_name(stack)
            .send()
            .await
        {
            Ok(found) => Ok(found.stacks().first().map(Described::of)),
            Err(error) => {
                let failure = Failure::of("cloudformation:DescribeStacks", stack, &error);
                if failure.no_such_stack() {
                    Ok(None)
                } else {
                    Err(failure)
                }
            }
        }
    }

    /// Every stack in the account and region.
    pub(crate) async fn describe_all(&self) -> Result<Vec<Described>, Failure> {
        let (mut all, mut token) = (Vec::new(), None);
        loop {
            let page = self
                .clients
                .cloudformation
                .describe_stacks()
                .set_next_token(token)
                .send()
                .await;
            let page = page.map_err(|error| Failure::of("cloudformation:DescribeStacks", "*", &error))?;
            all.extend(page.stacks().iter().map(Described::of));
            token = page.next_token;
            if token.is_none() {
                return Ok(all);
            }
        }
    }

    /// The template as it was submitted.
    pub(crate) async fn template_body(&self, stack: &str) -> Result<String, Failure> {
        let call = self
            .clients
            .cloudformation
            .get_template()
            .stack_name(stack)
            .template_stage(TemplateStage::Original);
        let found = call
            .send()
            .await
            .map_err(|error| Failure::of("cloudformation:GetTemplate", stack, &error))?;
        Ok(found.template_body.unwrap_or_default())
    }

    /// Starts creating a stack and returns its ARN.
    pub(crate) async fn create_stack(
        &self,
        name: &str,
        desired: &Desired,
        template: &TemplateSource,
        token: &str,
    ) -> Result<String, Failure> {
        let call = self.clients.cloudformation.create_stack().stack_name(name);
        let call = call.set_role_arn(self.service_role.clone());
        let call = call
            .set_template_body(template.body())
            .set_template_url(template.url())
            .set_tags(Some(tags(&desired.tags)));
        let call = call
            .capabilities(Capability::CapabilityNamedIam)
            .client_request_token(token);
        let made = call
            .send()
            .await
            .map_err(|error| Failure::of("cloudformation:CreateStack", name, &error))?;
        Ok(made.stack_id.unwrap_or_else(|| name.to_owned()))
    }

    /// Starts an update without a change set, for changes that change sets do not see.
    pub(crate) async fn update_stack(
        &self,
        stack: &str,
        desired: &Desired,
        template: &TemplateSource,
        token: &str,
    ) -> Result<(), Failure> {
        let call = self.clients.cloudformation.update_stack().stack_name(stack);
        let call = call.set_role_arn(self.service_role.clone());
        let call = call
            .set_template_body(template.body())
            .set_template_url(template.url())
            .set_tags(Some(tags(&desired.tags)));
        let call = call
            .capabilities(Capability::CapabilityNamedIam)
            .client_request_token(token);
        call.send()
            .await
            .map_err(|error| Failure::of("cloudformation:UpdateStack", stack, &error))?;
        Ok(())
    }

    /// Turns termination protection on or off.
    pub(crate) async fn set_termination_protection(&self, stack: &str, on: bool) -> Result<(), Failure> {
        let call = self.clients.cloudformation.update_termination_protection();
        call.stack_name(stack)
            .enable_termination_protection(on)
            .send()
            .await
            .map_err(|error| Failure::of("cloudformation:UpdateTerminationProtection", stack, &error))?;
        Ok(())
    }

    /// Starts deleting a stack. `retain` may name resources of a stack whose deletion failed.
    pub(crate) async fn delete_stack(&self, stack: &str, retain: &[String]) -> Result<(), Failure> {
        let retain = (!retain.is_empty()).then(|| retain.to_vec());
        let call = self
            .clients
            .cloudformation
            .delete_stack()
            .stack_name(stack)
            .set_role_arn(self.service_role.clone())
            .set_retain_resources(retain);
        call.send()
            .await
            .map_err(|error| Failure::of("cloudformation:DeleteStack", stack, &error))?;
        Ok(())
    }

    /// Continues a failed rollback, skipping some resources.
    pub(crate) async fn continue_rollback(&self, stack: &str, skip: &[String]) -> Result<(), Failure> {
        let skip = (!skip.is_empty()).then(|| skip.to_vec());
        let call = self
            .clients
            .cloudformation
            .continue_update_rollback()
            .stack_name(stack)
            .set_role_arn(self.service_role.clone())
            .set_resources_to_skip(skip);
        call.send()
            .await
            .map_err(|error| Failure::of("cloudformation:ContinueUpdateRollback", stack, &error))?;
        Ok(())
    }

    /// Rolls back an update that stopped halfway.
    pub(crate) async fn roll_back(&self, stack: &str) -> Result<(), Failure> {
        let call = self.clients.cloudformation.rollback_stack().stack_name(stack);
        call.set_role_arn(self.service_role.clone())
            .send()
            .await
            .map_err(|error| Failure::of("cloudformation:RollbackStack", stack, &error))?;
        Ok(())
    }

    /// When the last stack of this name was deleted, if that is among the newest deletions.
    pub(crate) async fn last_deletion(&self, name: &str) -> Result<Option<SystemTime>, Failure> {
        let mut token = None;
        for _ in 0..DELETION_PAGES {
            let call = self.clients.cloudformation.list_stacks();
            let call = call.stack_status_filter(StackStatus::DeleteComplete);
            let page = call.set_next_token(token).send().await;
            let page = page.map_err(|error| Failure::of("cloudformation:ListStacks", name, &error))?;
            let of_name = page
                .stack_summaries()
                .iter()
                .filter(|stack| stack.stack_name() == Some(name));
            let times = of_name.filter_map(|stack| SystemTime::try_from(*stack.deletion_time()?).ok());
            if let Some(newest) = times.max() {
                return Ok(Some(newest));
            }
            token = page.next_token;
            if token.is_none() {
                break;
            }
        }
        Ok(None)
    }

    /// Physical ids by logical id, of existing resources.
    pub(crate) async fn physical_ids(&self, stack: &str) -> Result<BTreeMap<String, String>, Failure> {
        let call = self
            .clients
            .cloudformation
            .describe_stack_resources()
            .stack_name(stack);
        let found = call
            .send()
            .await
            .map_err(|error| Failure::of("cloudformation:DescribeStackResources", stack, &error))?;
        let there =
            |resource: &&StackResource| resource.resource_status() != Some(&ResourceStatus::DeleteComplete);
        let ids = found
            .stack_resources()
            .iter()
            .filter(there)
            .filter_map(|resource| {
                Some((
                    resource.logical_resource_id()?.to_owned(),
                    resource.physical_resource_id()?.to_owned(),
                ))
            });
        Ok(ids.collect())
    }

    /// The stack that owns a resource, by physical id.
    pub(crate) async fn owner_of(&self, physical_id: &str) -> Result<Option<String>, Failure> {
        let call = self
            .clients
            .cloudformation
            .describe_stack_resources()
            .physical_resource_id(physical_id);
        match call.send().await {
            Ok(found) => Ok(found.stack_resources().iter().find_map(|resource| {
                let status = resource
                    .resource_status()
                    .map(|status| status.as_str().to_owned())
                    .unwrap_or_default();
                let held = resource.physical_resource_id() == Some(physical_id)
                    && !matches!(status.as_str(), "DELETE_COMPLETE" | "DELETE_SKIPPED");
                held.then(|| resource.stack_name().map(str::to_owned)).flatten()
            })),
            Err(error) => {
                let failure = Failure::of("cloudformation:DescribeStackResources", physical_id, &error);
                if failure.no_such_stack() {
                    Ok(None)
                } else {
                    Err(failure)
                }
            }
        }
    }

    /// The stacks that import an export.
    pub(crate) async fn importers(&self, export: &str) -> Result<Vec<String>, Failure> {
        let (mut all, mut token) = (Vec::new(), None);
        loop {
            let call = self
                .clients
                .cloudformation
                .list_imports()
                .export_name(export)
                .set_next_token(token);
            match call.send().await {
                Ok(page) => {
                    all.extend(page.imports().iter().cloned());
                    token = page.next_token;
                    if token.is_none() {
                        return Ok(all);
                    }
                }
                Err(error) => {
                    let failure = Failure::of("cloudformation:ListImports", export, &error);
                    // An export without importers is an error response too.
                    return if failure.says("not imported") {
                        Ok(all)
                    } else {
                        Err(failure)
                    };
                }
            }
        }
    }
}

pub(super) fn tags(tags: &BTreeMap<String, String>) -> Vec<Tag> {
    tags.iter()
        .map(|(key, value)| Tag::builder().key(key).value(value).build())
        .collect()
}

//! Change sets.

use aws_sdk_cloudformation::types::{
    Capability, ChangeSetType, DeploymentMode, OperationEvent, ResourceChange, ValidationStatus,
};

use super::Cloud;
use super::failure::Failure;
use super::stacks::tags;
use crate::desired::{Desired, TemplateSource};
use crate::fingerprint::absent_change_set;

/// A change set.
#[derive(Debug)]
pub(crate) struct ChangeSet {
    pub(crate) arn: String,
    pub(crate) stack_id: String,
    pub(crate) status: String,
    pub(crate) reason: String,
    pub(crate) changes: Vec<ResourceChange>,
}

impl ChangeSet {
    pub(crate) fn ready(&self) -> bool {
        self.status == "CREATE_COMPLETE"
    }

    pub(crate) fn pending(&self) -> bool {
        matches!(self.status.as_str(), "CREATE_PENDING" | "CREATE_IN_PROGRESS")
    }

    /// CloudFormation refused it in early validation and gives the reason only in its events.
    pub(crate) fn failed_validation(&self) -> bool {
        self.status == "FAILED" && self.reason.contains("EarlyValidation")
    }

    /// CloudFormation sees no changes.
    pub(crate) fn empty(&self) -> bool {
        self.status == "FAILED"
            && (self.reason.contains("didn't contain changes")
                || self.reason.contains("No updates are to be performed"))
    }
}

/// The purpose of a change set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A new stack, importing existing resources with names of the template.
    Create,
    /// An update.
    Update,
    /// An update that also undoes drift.
    RevertDrift,
}

impl Cloud {
    /// Creates a change set and returns its ARN.
    pub(crate) async fn create_change_set(
        &self,
        stack: &str,
        purpose: Purpose,
        desired: &Desired,
        template: &TemplateSource,
    ) -> Result<String, Failure> {
        let kind = match purpose {
            Purpose::Create => ChangeSetType::Create,
            Purpose::Update | Purpose::RevertDrift => ChangeSetType::Update,
        };
        let name = desired.fingerprint.change_set_name();
        let call = self
            .clients
            .cloudformation
            .create_change_set()
            .stack_name(stack)
            .change_set_name(&name);
        let call = call
            .change_set_type(kind)
            .capabilities(Capability::CapabilityNamedIam);
        let call = call
            .set_template_body(template.body())
            .set_template_url(template.url())
            .set_tags(Some(tags(&desired.tags)));
        let call = call.set_role_arn(self.service_role.clone());
        let reverts = purpose == Purpose::RevertDrift;
        let call = call.set_deployment_mode(reverts.then_some(DeploymentMode::RevertDrift));
        let import = (purpose == Purpose::Create).then_some(true);
        let made = call.set_import_existing_resources(import).send().await;
        let made = made.map_err(|error| Failure::of("cloudformation:CreateChangeSet", stack, &error))?;
        Ok(made.id.unwrap_or(name))
    }

    /// A change set with all its changes.
    pub(crate) async fn change_set(&self, stack: &str, arn: &str) -> Result<ChangeSet, Failure> {
        let (mut changes, mut token) = (Vec::new(), None);
        loop {
            let call = self
                .clients
                .cloudformation
                .describe_change_set()
                .stack_name(stack)
                .change_set_name(arn);
            let call = call.include_property_values(true).set_next_token(token);
            let page = call.send().await;
            let page = page.map_err(|error| Failure::of("cloudformation:DescribeChangeSet", arn, &error))?;
            changes.extend(
                page.changes()
                    .iter()
                    .filter_map(|change| change.resource_change().cloned()),
            );
            token = page.next_token().map(str::to_owned);
            if token.is_none() {
                return Ok(ChangeSet {
                    arn: page.change_set_id.unwrap_or_else(|| arn.to_owned()),
                    stack_id: page.stack_id.unwrap_or_else(|| stack.to_owned()),
                    status: page
                        .status
                        .map(|status| status.as_str().to_owned())
                        .unwrap_or_default(),
                    reason: page.status_reason.unwrap_or_default(),
                    changes,
                });
            }
        }
    }

    /// What CloudFormation's validation of a change set found, one text per problem.
    pub(crate) async fn validation_failures(&self, stack: &str, arn: &str) -> Result<Vec<String>, Failure> {
        let (mut found, mut token) = (Vec::new(), None);
        loop {
            let call = self.clients.cloudformation.describe_events();
            let call = call.stack_name(stack).change_set_name(arn);
            let page = call.set_next_token(token).send().await;
            let page = page.map_err(|error| Failure::of("cloudformation:DescribeEvents", arn, &error))?;
            let failed =
                |event: &&OperationEvent| event.validation_status() == Some(&ValidationStatus::Failed);
            found.extend(
                page.operation_events()
                    .iter()
                    .filter(failed)
                    .map(validation_failure),
            );
            token = page.next_token;
            if token.is_none() {
                return Ok(found);
            }
        }
    }

    /// The names of a stack's change sets.
    pub(crate) async fn change_set_names(&self, stack: &str) -> Result<Vec<String>, Failure> {
        let (mut names, mut token) = (Vec::new(), None);
        loop {
            let call = self.clients.cloudformation.list_change_sets();
            let page = call.stack_name(stack).set_next_token(token).send().await;
            let page = page.map_err(|error| Failure::of("cloudformation:ListChangeSets", stack, &error))?;
            let found = page.summaries().iter();
            names.extend(found.filter_map(|summary| summary.change_set_name().map(str::to_owned)));
            token = page.next_token;
            if token.is_none() {
                return Ok(names);
            }
        }
    }

    /// Starts executing a change set.
    pub(crate) async fn execute(&self, stack: &str, arn: &str, token: &str) -> Result<(), Failure> {
        let call = self
            .clients
            .cloudformation
            .execute_change_set()
            .stack_name(stack)
            .change_set_name(arn);
        let call = call.client_request_token(token);
        call.send()
            .await
            .map_err(|error| Failure::of("cloudformation:ExecuteChangeSet", arn, &error))?;
        Ok(())
    }

    /// Executes a change set that does not exist. AWS checks the permission first, so the failure is a denial if the caller may
    /// not execute change sets of this stack.
    pub(crate) async fn try_execution(&self, stack: &str) -> Result<(), Failure> {
        let call = self.clients.cloudformation.execute_change_set();
        let call = call.stack_name(stack).change_set_name(absent_change_set());
        call.send()
            .await
            .map_err(|error| Failure::of("cloudformation:ExecuteChangeSet", stack, &error))?;
        Ok(())
    }

    /// Deletes a change set. A failure is only logged: a leftover change set does no harm.
    pub(crate) async fn discard(&self, stack: &str, arn: &str) {
        let call = self
            .clients
            .cloudformation
            .delete_change_set()
            .stack_name(stack)
            .change_set_name(arn);
        if let Err(error) = call.send().await {
            let failure = Failure::of("cloudformation:DeleteChangeSet", arn, &error);
            tracing::debug!(
                change_set = arn,
                reason = failure.message(),
                "could not delete the change set"
            );
        }
    }
}

fn validation_failure(event: &OperationEvent) -> String {
    let id = event.logical_resource_id().unwrap_or("the template");
    let reason = event.validation_status_reason().unwrap_or("validation failed");
    let path = event.validation_path().map(|path| format!(" (at {path})"));
    format!("{id}: {reason}{}", path.unwrap_or_default())
}

/// Whether the change set does not exist any more.
pub(crate) fn gone(failure: &Failure) -> bool {
    failure.is("ChangeSetNotFound") || failure.is("ChangeSetNotFoundException")
}

/// Whether another change was executed first.
pub(crate) fn overtaken(failure: &Failure) -> bool {
    let unfit = failure.is("InvalidChangeSetStatus") || failure.is("InvalidChangeSetStatusException");
    unfit || gone(failure) || failure.busy()
}

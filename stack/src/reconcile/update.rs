//! Changing a stack.

use zae_limiter_template::deployer::Place;

use super::Attempt;
use super::review::Reviewed;
use super::wait::Deadline;
use crate::cloud::change_set::{Purpose, overtaken};
use crate::code::{Loaded, publish};
use crate::deployed::Deployed;
use crate::desired::Desired;
use crate::events::Event;
use crate::outcome::Change;
use crate::plan::{OutputChange, ResourceChange, compare};
use crate::preflight::{Finding, Preflight};
use crate::{Error, Stack};

impl Stack {
    pub(super) async fn place_of(&self, deployed: &Deployed) -> Result<Place, Error> {
        match deployed.stack.place() {
            Some(place) => Ok(place),
            None => self.cloud.caller().await,
        }
    }

    /// What the checks before an update find.
    pub(super) async fn check_update(
        &self,
        deployed: &Deployed,
        desired: &Desired,
        changes: &[ResourceChange],
        outputs: &[OutputChange],
    ) -> Result<Vec<Finding>, Error> {
        let place = self.place_of(deployed).await?;
        let preflight = Preflight {
            cloud: &self.cloud,
            observer: self.observer.as_ref(),
            options: &self.options,
            place: &place,
            template: &desired.template,
            changes,
            outputs,
            deployed: Some(deployed),
            table: None,
        };
        Ok(preflight.findings().await)
    }

    /// Brings a stack to the desired state.
    pub(super) async fn update(
        &self,
        deployed: &Deployed,
        desired: &Desired,
        loaded: &Loaded,
        deadline: &Deadline,
    ) -> Result<Attempt, Error> {
        let before = deployed.template.as_ref();
        let changes = compare::resources(before, &desired.template);
        let outputs = compare::outputs(before, &desired.template, self.name.as_str());
        self.guard(&changes, before, desired)?;
        let findings = self.check_update(deployed, desired, &changes, &outputs).await?;
        if !findings.is_empty() {
            // Names that a faster process has just taken for this very stack are not in the way.
            return if self.moved(Some(deployed)).await? {
                Ok(Attempt::Overtaken)
            } else {
                Err(Error::Preflight { findings })
            };
        }
        let place = self.place_of(deployed).await?;
        publish(&self.cloud, &self.options, loaded, &place, self.observer.as_ref()).await?;
        match self
            .review(&deployed.stack.id, Purpose::Update, before, desired, deadline)
            .await?
        {
            Reviewed::Busy => Ok(Attempt::Overtaken),
            Reviewed::Nothing => self.update_unseen(deployed, desired, deadline).await,
            Reviewed::Changes { change_set, changes } => {
                if let Err(refused) = self.guard(&changes, before, desired) {
                    self.cloud.discard(&deployed.stack.id, &change_set.arn).await;
                    return Err(refused);
                }
                self.execute(deployed, desired, &change_set.arn, deadline).await
            }
        }
    }

    /// Does what a change set says.
    pub(super) async fn execute(
        &self,
        deployed: &Deployed,
        desired: &Desired,
        change_set: &str,
        deadline: &Deadline,
    ) -> Result<Attempt, Error> {
        match self
            .cloud
            .execute(&deployed.stack.id, change_set, &desired.fingerprint.token())
            .await
        {
            Ok(()) => self.tell(&Event::Started { operation: "update" }),
            Err(failure) if overtaken(&failure) => return Ok(Attempt::Overtaken),
            Err(failure) => {
                self.cloud.discard(&deployed.stack.id, change_set).await;
                return Err(failure.into());
            }
        }
        self.updated(deployed, deadline).await
    }

    /// Change sets do not see every change: one of outputs alone, for example.
    pub(super) async fn update_unseen(
        &self,
        deployed: &Deployed,
        desired: &Desired,
        deadline: &Deadline,
    ) -> Result<Attempt, Error> {
        match self
            .cloud
            .update_stack(&deployed.stack.id, desired, &desired.fingerprint.token())
            .await
        {
            Ok(()) => self.tell(&Event::Started { operation: "update" }),
            Err(failure) if failure.nothing_to_update() => {
                let stack = Box::new(deployed.stack.clone());
                return Ok(Attempt::Done {
                    stack,
                    change: Change::None,
                    warnings: vec![],
                });
            }
            Err(failure) if failure.busy() => return Ok(Attempt::Overtaken),
            Err(failure) => return Err(failure.into()),
        }
        self.updated(deployed, deadline).await
    }

    async fn updated(&self, deployed: &Deployed, deadline: &Deadline) -> Result<Attempt, Error> {
        let before = &deployed.stack;
        let Some(stack) = self.finished(&before.id, Some(before), deadline).await? else {
            return Ok(Attempt::Overtaken);
        };
        if !stack.situation().succeeded() {
            return Err(self.failure(&stack).await);
        }
        Ok(Attempt::Done {
            stack: Box::new(stack),
            change: Change::Updated,
            warnings: vec![],
        })
    }
}

/// What a change set would do to one resource, in words.
pub(super) fn describe_change(changes: &[ResourceChange], id: &str) -> String {
    let change = changes.iter().find(|change| change.logical_id == id);
    change.map_or_else(
        || format!("{id} is not in its change set"),
        |change| format!("it would {:?} {id}", change.kind).to_lowercase(),
    )
}

//! Changing a stack, and continuing a rollback that failed.

use super::Attempt;
use super::converge::{Goal, Run};
use super::draft::Draft;
use crate::cloud::change_set::overtaken;
use crate::cloud::failure::Failure;
use crate::code::publish;
use crate::deployed::{Deployed, Described};
use crate::desired::TemplateSource;
use crate::events::Event;
use crate::outcome::Change;
use crate::patience::{Deadline, patiently};
use crate::situation::Situation;
use crate::{Error, Stack, Status};

impl Stack {
    /// Turns termination protection of the stack on or off, and returns whether that changed it. Deleting a protected stack is
    /// refused. A deployment leaves the protection as it is.
    pub async fn set_termination_protection(&self, on: bool) -> Result<bool, Error> {
        let deadline = self.deadline();
        let deployed = self.existing(&deadline).await?;
        self.check_owner(&deployed)?;
        self.check_manager(&deployed)?;
        if deployed.stack.protected == on {
            return Ok(false);
        }
        let id = &deployed.stack.id;
        patiently(&deadline, || self.cloud.set_termination_protection(id, on)).await?;
        Ok(true)
    }

    /// Carries out an update.
    pub(super) async fn update(
        &self,
        draft: &Draft,
        deployed: &Deployed,
        goal: &Goal<'_>,
        run: &Run,
    ) -> Result<Attempt, Error> {
        let place = match &draft.place {
            Some(place) => place.clone(),
            None => self.place_of(deployed).await?,
        };
        let observer = self.observer.as_ref();
        let published = publish(&self.cloud, &self.options, &goal.loaded, &place, observer).await;
        if let Err(error) = published {
            if goal.planned().is_none() {
                self.discard(&draft.plan).await;
            }
            return Err(error);
        }
        let template = self.template_source(&draft.desired).await?;
        let started = self.start_update(&deployed.stack.id, draft, &template, &run.deadline);
        match started.await {
            Ok(()) => self.tell(&Event::Started { operation: "update" }),
            Err(failure) if overtaken(&failure) => return Ok(Attempt::Overtaken),
            Err(failure) if failure.nothing_to_update() => {
                return Ok(Attempt::Done {
                    stack: Box::new(deployed.stack.clone()),
                    change: Change::None,
                    warnings: vec![],
                });
            }
            // A plan can be applied later.
            Err(failure) if failure.throttled() && goal.planned().is_some() => return Err(failure.into()),
            Err(failure) => {
                self.discard(&draft.plan).await;
                return Err(failure.into());
            }
        }
        self.updated(&deployed.stack, &run.deadline).await
    }

    async fn start_update(
        &self,
        id: &str,
        draft: &Draft,
        template: &TemplateSource,
        deadline: &Deadline,
    ) -> Result<(), Failure> {
        let token = draft.desired.fingerprint.token();
        if let Some(change_set) = &draft.plan.change_set {
            return patiently(deadline, || self.cloud.execute(id, change_set, &token)).await;
        }
        // Change sets do not see every change, such as one of outputs alone.
        let update = || self.cloud.update_stack(id, &draft.desired, template, &token);
        patiently(deadline, update).await
    }

    /// Waits for the end of an update.
    pub(super) async fn updated(&self, before: &Described, deadline: &Deadline) -> Result<Attempt, Error> {
        let Some(stack) = self.finished(&before.id, Some(before), deadline).await? else {
            return Ok(Attempt::Overtaken);
        };
        if !stack.situation().succeeded() {
            return Err(self.failure(&stack, deadline).await);
        }
        Ok(Attempt::Done {
            stack: Box::new(stack),
            change: Change::Updated,
            warnings: vec![],
        })
    }

    /// Continues a rollback that failed, skipping resources by logical id, and waits for its end. Rolls back a stack in
    /// `UPDATE_FAILED`. Refused if another tool deploys the stack, unless [`adopt`](Stack::adopt) is set.
    pub async fn continue_rollback(&self, skip: &[String]) -> Result<Status, Error> {
        let deadline = self.deadline();
        let deployed = self.existing(&deadline).await?;
        self.check_owner(&deployed)?;
        self.check_manager(&deployed)?;
        let before = &deployed.stack;
        match before.situation() {
            Situation::RollbackFailed => {
                patiently(&deadline, || self.cloud.continue_rollback(&before.id, skip)).await?;
            }
            Situation::UpdateFailed => patiently(&deadline, || self.cloud.roll_back(&before.id)).await?,
            _ => {
                return Err(Error::NoRollback {
                    stack: self.name.to_string(),
                    status: before.status.clone(),
                });
            }
        }
        match self.finished(&before.id, Some(before), &deadline).await? {
            Some(stack) if stack.situation() == Situation::RolledBack => self.existing_status().await,
            Some(stack) => Err(self.failure(&stack, &deadline).await),
            None => Err(self.missing().await),
        }
    }
}

//! Changing a stack.

use zae_limiter_template::deployer::Place;

use super::Attempt;
use super::converge::Run;
use super::draft::{Depth, Draft};
use super::goal::Goal;
use super::review::Reviewed;
use crate::cause::Cause;
use crate::cloud::change_set::{Purpose, gone, overtaken};
use crate::cloud::failure::Failure;
use crate::code::publish;
use crate::deployed::{Deployed, Described};
use crate::desired::Desired;
use crate::events::Event;
use crate::guard::{self, Refusal};
use crate::mode::other_options;
use crate::outcome::Change;
use crate::patience::{Deadline, patiently};
use crate::plan::{Basis, Plan, ResourceChange, exact};
use crate::preflight::Preflight;
use crate::situation::Situation;
use crate::{Error, Mode, Stack};

impl Stack {
    pub(super) async fn place_of(&self, deployed: &Deployed) -> Result<Place, Error> {
        match deployed.stack.place() {
            Some(place) => Ok(place),
            None => self.cloud.caller().await,
        }
    }

    /// Makes every check before a change and returns where the stack is; `None` if another process is changing it.
    pub(super) async fn check_change(
        &self,
        plan: &mut Plan,
        deployed: &Deployed,
        desired: &Desired,
        depth: Depth,
        run: &Run,
    ) -> Result<Option<Place>, Error> {
        match self.check_manager(deployed) {
            Err(Error::ManagedElsewhere { reason, .. }) if depth != Depth::Execute => {
                plan.refuse_elsewhere(&reason);
            }
            checked => checked?,
        }
        let retries = self.permissions.retry || run.healed;
        if deployed.stack.situation() == Situation::RolledBack
            && !retries
            && let Some(cause) = self.tried_before(&deployed.stack, desired, &run.deadline).await?
        {
            if depth == Depth::Execute {
                return Err(Error::RolledBackBefore {
                    stack: self.name.to_string(),
                    cause: cause.map(Box::new),
                });
            }
            plan.refuse_again(cause.as_ref());
        }
        depth.stop_if_refused(plan)?;
        let place = self.place_of(deployed).await?;
        let preflight = Preflight {
            cloud: &self.cloud,
            deadline: &run.deadline,
            observer: self.observer.as_ref(),
            options: &self.options,
            place: &place,
            template: &desired.template,
            changes: &plan.changes,
            outputs: &plan.outputs,
            deployed: Some(deployed),
            table: None,
        };
        plan.findings = preflight.findings().await;
        // A faster process may have just taken these names for this very stack.
        if !plan.findings.is_empty() && self.moved(Some(deployed)).await? {
            return Ok(None);
        }
        depth.stop_if_refused(plan)?;
        Ok(Some(place))
    }

    /// Adds to the plan what CloudFormation says in a change set: the goal's, or a new one. False if another process is
    /// changing the stack.
    pub(super) async fn review_change(
        &self,
        plan: &mut Plan,
        deployed: &Deployed,
        desired: &Desired,
        goal: &Goal<'_>,
        depth: Depth,
        run: &Run,
    ) -> Result<bool, Error> {
        let (id, before) = (&deployed.stack.id, deployed.template.as_ref());
        let stored = goal.planned().and_then(|plan| plan.change_set.as_ref());
        let reviewed = match stored {
            None => {
                let purpose = if self.revert_drift {
                    Purpose::RevertDrift
                } else {
                    Purpose::Update
                };
                self.review(id, purpose, before, desired, &run.deadline).await?
            }
            Some(arn) => match patiently(&run.deadline, || self.cloud.change_set(id, arn)).await {
                Ok(change_set) => Reviewed::Changes {
                    changes: exact::resources(&change_set.changes, before, &desired.template),
                    change_set,
                },
                Err(failure) if gone(&failure) => {
                    return Err(self.obsolete("its change set is gone".to_owned()));
                }
                Err(failure) => return Err(failure.into()),
            },
        };
        match reviewed {
            Reviewed::Busy => return Ok(false),
            Reviewed::Nothing => {}
            Reviewed::Changes { change_set, changes } => {
                plan.basis = Basis::ChangeSet;
                plan.refusals = self.refusals(&changes, deployed, desired);
                plan.change_set = Some(change_set.arn);
                plan.changes = changes;
            }
        }
        // Only after the change set: a process that may not deploy observes instead.
        let others = other_options(before, &desired.template);
        if self.mode == Mode::Auto && !others.is_empty() {
            plan.refuse_other_options(&others);
        }
        if plan.is_refused() && stored.is_none() {
            self.discard(plan).await;
            plan.change_set = None;
        }
        depth.stop_if_refused(plan)?;
        Ok(true)
    }

    pub(super) fn refusals(
        &self,
        changes: &[ResourceChange],
        deployed: &Deployed,
        desired: &Desired,
    ) -> Vec<Refusal> {
        let before = deployed.template.as_ref();
        guard::refusals(changes, before, &desired.template, &self.permissions.lose)
    }

    /// Why this very change was rolled back, if it was the last one that was tried.
    async fn tried_before(
        &self,
        stack: &Described,
        desired: &Desired,
        deadline: &Deadline,
    ) -> Result<Option<Option<Cause>>, Error> {
        let operation = patiently(deadline, || self.cloud.newest_operation(&stack.id)).await?;
        let token = operation.last().and_then(|event| event.token.as_deref());
        let same = token.is_some_and(|token| desired.fingerprint.made(token));
        Ok(same.then(|| Cause::of(&operation)))
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
        match self.start_update(&deployed.stack.id, draft, &run.deadline).await {
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

    async fn start_update(&self, id: &str, draft: &Draft, deadline: &Deadline) -> Result<(), Failure> {
        let token = draft.desired.fingerprint.token();
        match &draft.plan.change_set {
            Some(change_set) => patiently(deadline, || self.cloud.execute(id, change_set, &token)).await,
            // Change sets do not see every change, such as one of outputs alone.
            None => patiently(deadline, || self.cloud.update_stack(id, &draft.desired, &token)).await,
        }
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
}

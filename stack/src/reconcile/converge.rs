//! The loop: draft, carry out, look again.

use tokio::time::sleep;
use zae_limiter_template::{AUDIT_RETENTION_DAYS, VERSION};

use super::Attempt;
use super::draft::{Depth, Draft};
use super::goal::Goal;
use crate::cause::Cause;
use crate::cause::advice::QUEUE_NAME_BLOCKED;
use crate::deployed::{Deployed, Described};
use crate::events::Event;
use crate::outcome::{Change, Outcome};
use crate::patience::{Deadline, Pace, Throttling, patiently};
use crate::plan::{Action, Plan};
use crate::{Error, Mode, Stack};

/// The state of one run of the loop.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) deadline: Deadline,
    pace: Pace,
    /// Another process was changing the stack.
    pub(super) awaited: bool,
    /// An operation failed for a reason that goes away by itself, and is being retried.
    pub(super) healed: bool,
}

impl Stack {
    /// Brings the stack to what the options say, whatever state it is in, and waits until it is there.
    ///
    /// [`Stack::mode`] limits what it may do. If the stack already matches, this makes two calls. Any number of processes may call it at the same time: one makes
    /// the change, the others wait for it.
    pub async fn ensure(&self) -> Result<Outcome, Error> {
        let goal = Goal::options(self.code.load(&self.options).await?);
        let deadline = self.deadline();
        match self.mode {
            Mode::Apply => self.converge(&goal, deadline).await,
            Mode::Auto => self.converge_or_observe(&goal, deadline).await,
            Mode::Observe => self.compare(&goal, deadline).await,
            Mode::RequireExact => self.require_exact(&goal, deadline).await,
        }
    }

    /// What [`ensure`](Stack::ensure) would do, computed by CloudFormation as a change set, which [`apply`](Stack::apply)
    /// executes and [`discard`](Stack::discard) deletes.
    ///
    /// For a stack that does not exist, no change set is created. If an operation is running, waits for its end.
    pub async fn plan(&self) -> Result<Plan, Error> {
        self.planned(Depth::Review).await
    }

    /// What [`ensure`](Stack::ensure) would do, computed by comparing templates with two read-only calls. Replacements are
    /// recognized by the properties of this project's own resources.
    pub async fn plan_offline(&self) -> Result<Plan, Error> {
        self.planned(Depth::Templates).await
    }

    /// Deletes the change set of a plan that is not going to be applied.
    pub async fn discard(&self, plan: &Plan) {
        if let (Some(change_set), Some(base)) = (&plan.change_set, &plan.base) {
            self.cloud.discard(&base.stack_id, change_set).await;
        }
    }

    async fn planned(&self, depth: Depth) -> Result<Plan, Error> {
        let goal = Goal::options(self.code.load(&self.options).await?);
        let mut run = Run::until(self.deadline());
        let draft = self.next_draft(&goal, depth, &mut run).await?;
        Ok(draft.plan)
    }

    /// Drafts and carries out until the stack matches the goal.
    pub(super) async fn converge(&self, goal: &Goal<'_>, deadline: Deadline) -> Result<Outcome, Error> {
        let mut run = Run::until(deadline);
        loop {
            let draft = self.next_draft(goal, Depth::Execute, &mut run).await?;
            if let Some(found) = draft.plan.found {
                return Ok(found);
            }
            let notes = draft.plan.warnings.clone();
            match self.carry_out(draft, goal, &run).await {
                Ok(Attempt::Done {
                    stack,
                    change,
                    warnings,
                }) => {
                    let warnings = [notes, warnings].concat();
                    return Ok(self.outcome(&stack, change, VERSION, warnings));
                }
                Ok(Attempt::Overtaken) if goal.planned().is_some() => {
                    return Err(self.obsolete("another process was faster".to_owned()));
                }
                Ok(Attempt::Overtaken) => run.awaited = true,
                Err(Error::Failed {
                    cause: Some(cause), ..
                }) if cause.heals() && !run.healed => {
                    run.healed = true;
                    self.rest(&cause).await;
                }
                // Something else than CloudFormation was throttled halfway: look again.
                Err(error) if error.throttled() => {
                    if run.deadline.is_over() {
                        return Err(error.out_of_time(run.deadline.allowed));
                    }
                }
                Err(error) => return Err(error),
            }
            run.pause(self).await?;
        }
    }

    /// The first draft that no other process interferes with.
    pub(super) async fn next_draft(
        &self,
        goal: &Goal<'_>,
        depth: Depth,
        run: &mut Run,
    ) -> Result<Draft, Error> {
        loop {
            let draft = patiently(&run.deadline, || self.draft(goal, depth, run)).await?;
            if let Some(mut draft) = draft {
                if let Some(found) = draft.plan.found.as_mut().filter(|_| run.awaited) {
                    found.change = Change::Awaited;
                }
                return Ok(draft);
            }
            run.awaited = true;
            run.pause(self).await?;
        }
    }

    async fn carry_out(&self, draft: Draft, goal: &Goal<'_>, run: &Run) -> Result<Attempt, Error> {
        match (draft.plan.action, &draft.deployed) {
            (Action::Update, Some(deployed)) => self.update(&draft, deployed, goal, run).await,
            (Action::Recreate, Some(failed)) => {
                self.clear(&failed.stack, &run.deadline).await?;
                match self.draft_creation(None, goal, Depth::Execute, run).await? {
                    Some(creation) => self.create(&creation, goal, run).await,
                    None => Ok(Attempt::Overtaken),
                }
            }
            _ => self.create(&draft, goal, run).await,
        }
    }

    async fn rest(&self, cause: &Cause) {
        let after_seconds = QUEUE_NAME_BLOCKED.as_secs();
        self.tell(&Event::TryingAgain {
            reason: cause.to_string(),
            after_seconds,
        });
        sleep(QUEUE_NAME_BLOCKED).await;
    }

    /// The outcome for a stack that was left as it is.
    pub(super) fn unchanged(&self, deployed: &Deployed, warnings: Vec<String>) -> Outcome {
        let template = deployed.template.as_ref();
        let version = template.and_then(|template| template.version());
        self.outcome(
            &deployed.stack,
            Change::None,
            version.unwrap_or(VERSION),
            warnings,
        )
    }

    fn outcome(&self, stack: &Described, change: Change, version: &str, warnings: Vec<String>) -> Outcome {
        // A plan may have been made with other options than these.
        let retention = stack.outputs.get(AUDIT_RETENTION_DAYS);
        let retention = retention.and_then(|days| days.parse().ok());
        Outcome {
            change,
            stack_id: stack.id.clone(),
            outputs: stack.outputs.clone(),
            audit_retention_days: retention.unwrap_or(self.options.audit_retention_days()),
            version: version.to_owned(),
            warnings,
        }
    }
}

impl Run {
    pub(super) fn until(deadline: Deadline) -> Self {
        Self {
            deadline,
            pace: Pace::polls(),
            awaited: false,
            healed: false,
        }
    }

    async fn pause(&mut self, stack: &Stack) -> Result<(), Error> {
        stack.in_time(&self.deadline, "change by another process")?;
        self.pace.pause().await;
        Ok(())
    }
}

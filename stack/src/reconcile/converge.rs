//! The loop behind `ensure`, `plan` and `apply`: draft, carry out, look again. Without the permission or the mode to deploy, it only
//! compares.

use tokio::time::sleep;
use zae_limiter_template::{AUDIT_RETENTION_DAYS, VERSION, tags_of_user};

use super::Attempt;
use super::draft::{Depth, Draft};
use crate::cause::Cause;
use crate::cause::advice::QUEUE_NAME_BLOCKED;
use crate::code::Loaded;
use crate::deployed::{Deployed, Described};
use crate::desired::Desired;
use crate::events::Event;
use crate::mode::differences;
use crate::outcome::{Change, Outcome};
use crate::patience::{Deadline, Pace, Throttling, patiently};
use crate::plan::{Action, Plan};
use crate::{CodeError, Error, Mode, Stack};

/// The target of one run of the reconciler.
pub(super) struct Goal<'a> {
    pub(super) loaded: Loaded,
    planned: Option<(&'a Plan, Desired)>,
}

impl<'a> Goal<'a> {
    /// Whatever the stack's options render to.
    pub(super) fn options(loaded: Loaded) -> Self {
        Self {
            loaded,
            planned: None,
        }
    }

    /// Exactly what a plan says.
    pub(super) fn plan(plan: &'a Plan, mut desired: Desired, loaded: Loaded) -> Self {
        desired.notes.clone_from(&plan.warnings);
        Self {
            loaded,
            planned: Some((plan, desired)),
        }
    }

    pub(super) fn planned(&self) -> Option<&'a Plan> {
        self.planned.as_ref().map(|(plan, _)| *plan)
    }

    /// The desired state of a stack that is deployed like this.
    pub(super) fn desired(&self, stack: &Stack, deployed: Option<&Deployed>) -> Result<Desired, Error> {
        match &self.planned {
            Some((_, desired)) => Ok(desired.clone()),
            None => stack.desired(&self.loaded, deployed),
        }
    }
}

/// The state of one run of the loop.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) deadline: Deadline,
    pace: Pace,
    /// Another process was changing the stack.
    pub(super) awaited: bool,
    /// An operation failed for a temporary reason and is being retried.
    pub(super) healed: bool,
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

impl Stack {
    /// Brings the stack from any state to what the options declare, and waits until it is done.
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

    /// Does what a plan says. Refuses if the stack, or an archive, has changed since the plan was made.
    ///
    /// The template is the plan's, not the one that this value's options render to.
    pub async fn apply(&self, plan: &Plan) -> Result<Outcome, Error> {
        if plan.stack != self.name.as_str() {
            let reason = format!(
                "it is for stack {:?} and not for {:?}",
                plan.stack,
                self.name.as_str()
            );
            return Err(Error::PlanUnreadable { reason });
        }
        let desired = plan.desired()?;
        let stack = self.as_planned(plan, &desired);
        let loaded = stack.planned_archives(plan).await?;
        let goal = Goal::plan(plan, desired, loaded);
        stack.converge(&goal, stack.deadline()).await
    }

    /// This stack with the options that the plan was made with, as far as its template stores them: they say which bucket
    /// has the archives and what is checked.
    fn as_planned(&self, plan: &Plan, desired: &Desired) -> Self {
        let stored = desired.template.options().ok().flatten();
        let planned = stored.and_then(|stored| {
            let stored = stored.tags(tags_of_user(&desired.tags));
            let stored = match self.options.code_directory() {
                Some(directory) => stored.code_directory(directory),
                None => stored,
            };
            stored.build().ok()
        });
        let mut stack = self.clone();
        stack.options = planned.unwrap_or(stack.options);
        stack.permissions.recreate |= plan.action == Action::Recreate;
        stack
    }

    pub(super) fn obsolete(&self, why: String) -> Error {
        Error::PlanObsolete {
            stack: self.name.to_string(),
            why,
        }
    }

    /// The archives that the plan was made with, which must still be the same.
    async fn planned_archives(&self, plan: &Plan) -> Result<Loaded, Error> {
        if plan.archives.is_empty() {
            return Ok(Loaded::default());
        }
        let loaded = self.code.load(&self.options).await?;
        for (function, sha256) in &plan.archives {
            let mut archives = loaded.archives.iter();
            let found = archives.find(|(known, _)| known.as_str() == function);
            if found.is_none_or(|(_, archive)| archive.sha256() != *sha256) {
                return Err(self.obsolete(format!(
                    "the archive of the {function} is not the one that was planned"
                )));
            }
        }
        Ok(loaded)
    }

    /// Deploys if this process may, and otherwise observes.
    pub(super) async fn converge_or_observe(
        &self,
        goal: &Goal<'_>,
        deadline: Deadline,
    ) -> Result<Outcome, Error> {
        let (why, stopped_by) = match self.converge(goal, deadline).await {
            Err(error @ (Error::Denied { .. } | Error::ManagedElsewhere { .. })) => (error, None),
            Err(Error::TableManaged { .. }) => return Ok(self.left_to_terraform()),
            Err(error) if concerns_deployers(&error) => {
                let name = self.name.as_str();
                match patiently(&deadline, || self.cloud.try_execution(name)).await {
                    Err(failure) if failure.denied() => (failure.into(), Some(error)),
                    _ => return Err(error),
                }
            }
            done => return done,
        };
        let observed = match (self.compare(goal, deadline).await, &stopped_by) {
            // Without the permission to read the stack, the table may still serve.
            (Err(Error::Denied { .. }), None) => self.unread(),
            (Err(error), _) => return Err(stopped_by.unwrap_or(error)),
            (Ok(observed), _) => observed,
        };
        let mut warnings = vec![format!("the stack was only observed: {why}")];
        let obstacle = stopped_by.map(|error| error.to_string());
        // A comparison may have met the same obstacle.
        warnings.extend(obstacle.filter(|obstacle| !observed.warnings.contains(obstacle)));
        warnings.extend(observed.warnings);
        Ok(Outcome { warnings, ..observed })
    }

    /// The stack as it is, with each difference as a warning. Waits for a running operation first.
    pub(super) async fn compare(&self, goal: &Goal<'_>, deadline: Deadline) -> Result<Outcome, Error> {
        let mut run = Run::until(deadline);
        let draft = match self.next_draft(goal, Depth::Templates, &mut run).await {
            Ok(draft) => draft,
            // An existing stack serves although its last operation failed, or although a declared function is missing or runs
            // on another processor.
            Err(
                error @ (Error::Failed { .. }
                | Error::Code(
                    CodeError::Missing { deployed: true, .. } | CodeError::ArchitectureChanged { .. },
                )),
            ) => return self.serving_despite(error, deadline).await,
            Err(error) => return Err(error),
        };
        if let Some(found) = draft.plan.found {
            return Ok(found);
        }
        match draft.deployed {
            Some(deployed) if draft.plan.action == Action::Update => {
                let warnings = draft.plan.warnings.iter().cloned();
                let warnings = warnings.chain(differences(&draft.plan, &deployed)).collect();
                let mut outcome = self.unchanged(&deployed, warnings);
                if run.awaited {
                    outcome.change = Change::Awaited;
                }
                Ok(outcome)
            }
            _ if self.is_managed_by_terraform().await? => Ok(self.left_to_terraform()),
            _ => Err(self.missing().await),
        }
    }

    /// The same, with differences as an error.
    pub(super) async fn require_exact(&self, goal: &Goal<'_>, deadline: Deadline) -> Result<Outcome, Error> {
        let outcome = self.compare(goal, deadline).await?;
        if outcome.warnings.is_empty() {
            return Ok(outcome);
        }
        Err(Error::Differs {
            stack: self.name.to_string(),
            differences: outcome.warnings,
        })
    }

    async fn serving_despite(&self, error: Error, deadline: Deadline) -> Result<Outcome, Error> {
        match self.observe(&deadline).await? {
            Some(deployed) if deployed.stack.situation().serves() => {
                Ok(self.unchanged(&deployed, vec![error.to_string()]))
            }
            _ => Err(error),
        }
    }
}

/// Whether an error is about a change that only a deployer can make. It comes before CloudFormation is asked for the change, so
/// it does not show whether the caller is one.
fn concerns_deployers(error: &Error) -> bool {
    matches!(
        error,
        Error::Guarded { .. }
            | Error::Preflight { .. }
            | Error::Code(CodeError::Missing { .. } | CodeError::ArchitectureChanged { .. })
            | Error::Failed { .. }
            | Error::RolledBackBefore { .. }
    )
}

//! Drafts: the work that a stack needs in its situation, with the checks before it and the change set that describes it.

use std::collections::BTreeSet;

use zae_limiter_template::Template;
use zae_limiter_template::deployer::Place;
use zae_limiter_template::model::ids;

use super::converge::{Goal, Run};
use super::create::creation_changes;
use crate::cause::Cause;
use crate::cloud::change_set::{ChangeSet, Purpose, gone};
use crate::code::store_template;
use crate::deployed::{Deployed, Described};
use crate::desired::{Desired, TemplateSource};
use crate::guard::Refusal;
use crate::mode::other_options;
use crate::patience::{Deadline, patiently};
use crate::plan::{Action, Basis, Kind, Plan, ResourceChange, exact};
use crate::preflight::Preflight;
use crate::situation::Situation;
use crate::{Error, Mode, Stack, guard};

/// How much a draft finds out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    /// Only what comparing templates shows.
    Templates,
    /// Everything, with a change set; problems are collected in the plan.
    Review,
    /// Everything; the first problem is an error.
    Execute,
}

/// Work that is ready to be carried out, and the plan that describes it.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) plan: Plan,
    pub(super) desired: Desired,
    /// The stack as it was found.
    pub(super) deployed: Option<Deployed>,
    /// The account and region, once a check has needed them.
    pub(super) place: Option<Place>,
}

impl Depth {
    /// The plan's problems as an error, if the plan was to be carried out.
    pub(super) fn stop_if_refused(self, plan: &Plan) -> Result<(), Error> {
        if self != Self::Execute {
            Ok(())
        } else if !plan.refusals.is_empty() {
            Err(Error::Guarded {
                refusals: plan.refusals.clone(),
            })
        } else if !plan.findings.is_empty() {
            Err(Error::Preflight {
                findings: plan.findings.clone(),
            })
        } else {
            Ok(())
        }
    }
}

/// The result of creating a change set.
#[derive(Debug)]
pub(super) enum Reviewed {
    /// CloudFormation has computed the changes.
    Changes {
        change_set: ChangeSet,
        changes: Vec<ResourceChange>,
    },
    /// CloudFormation sees nothing to change.
    Nothing,
    /// Another process has started an operation, so no change set can be created.
    Busy,
}

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

    /// Looks at the stack once and drafts what it needs; `None` if another process is changing it: look again.
    ///
    /// This is the only place that decides by the situation of a stack what to do with it.
    pub(super) async fn draft(
        &self,
        goal: &Goal<'_>,
        depth: Depth,
        run: &Run,
    ) -> Result<Option<Draft>, Error> {
        let deployed = self.observe(&run.deadline).await?;
        if let Some(deployed) = &deployed {
            self.check_owner(deployed)?;
        }
        // After a retry the stack is not the one that was planned for.
        if let Some(plan) = goal.planned().filter(|_| !run.healed)
            && let Some(why) = plan.obsolete(deployed.as_ref())
        {
            return Err(self.obsolete(why));
        }
        let Some(deployed) = deployed else {
            return self.draft_creation(None, goal, depth, run).await;
        };
        match deployed.stack.situation() {
            Situation::Review => self.draft_creation(Some(deployed), goal, depth, run).await,
            Situation::Busy => {
                self.attach(&deployed.stack, &run.deadline).await?;
                Ok(None)
            }
            Situation::Settled | Situation::CleaningUp | Situation::RolledBack => {
                self.draft_change(deployed, goal, depth, run).await
            }
            Situation::CreateFailed
                if self
                    .may_recreate(&deployed.stack, run.healed, &run.deadline)
                    .await? =>
            {
                let desired = goal.desired(self, None)?;
                let plan = Plan::new(
                    self.name.as_str(),
                    Action::Recreate,
                    Some(&deployed),
                    &desired,
                    &goal.loaded,
                );
                Ok(Some(Draft {
                    plan,
                    desired,
                    deployed: Some(deployed),
                    place: None,
                }))
            }
            _ => Err(self.failure(&deployed.stack, &run.deadline).await),
        }
    }

    /// The creation of a stack. `review` is the empty stack that waits for its first change set, if there is one.
    pub(super) async fn draft_creation(
        &self,
        review: Option<Deployed>,
        goal: &Goal<'_>,
        depth: Depth,
        run: &Run,
    ) -> Result<Option<Draft>, Error> {
        let desired = goal.desired(self, None)?;
        let mut plan = Plan::new(
            self.name.as_str(),
            Action::Create,
            review.as_ref(),
            &desired,
            &goal.loaded,
        );
        plan.region = plan.region.or_else(|| self.cloud.region().ok());
        let mut place = None;
        if depth != Depth::Templates {
            let Some(site) = self.site(review.as_ref(), &desired, &run.deadline).await? else {
                return Ok(None);
            };
            if site.table.is_some() {
                plan.action = Action::Import;
                plan.changes = creation_changes(true, &desired);
            }
            let preflight = Preflight {
                cloud: &self.cloud,
                deadline: &run.deadline,
                observer: self.observer.as_ref(),
                options: &self.options,
                place: &site.place,
                template: &desired.template,
                changes: &plan.changes,
                outputs: &[],
                deployed: None,
                table: site.table.as_ref(),
            };
            plan.findings = preflight.findings().await;
            // A faster process may have just taken these names for this very stack.
            if !plan.findings.is_empty() && self.moved(review.as_ref()).await? {
                return Ok(None);
            }
            depth.stop_if_refused(&plan)?;
            plan.set_place(&site.place);
            place = Some(site.place);
        }
        Ok(Some(Draft {
            plan,
            desired,
            deployed: review,
            place,
        }))
    }

    /// A change of a stack that is in working order.
    async fn draft_change(
        &self,
        deployed: Deployed,
        goal: &Goal<'_>,
        depth: Depth,
        run: &Run,
    ) -> Result<Option<Draft>, Error> {
        if let Some((desired, warning)) = self.newer(&deployed).filter(|_| goal.planned().is_none()) {
            return Ok(Some(self.nothing(deployed, desired, vec![warning], goal)));
        }
        let desired = goal.desired(self, Some(&deployed))?;
        let planned_nothing = goal.planned().is_some_and(Plan::is_empty);
        let matches = desired.matches(&deployed);
        let reverts = self.revert_drift && depth != Depth::Templates;
        if planned_nothing || (matches && !reverts) {
            return Ok(Some(self.nothing(deployed, desired, vec![], goal)));
        }
        if deployed.stack.situation() == Situation::CleaningUp {
            self.attach(&deployed.stack, &run.deadline).await?;
            return Ok(None);
        }
        let mut plan = Plan::new(
            self.name.as_str(),
            Action::Update,
            Some(&deployed),
            &desired,
            &goal.loaded,
        );
        plan.refusals = self.refusals(&plan.changes, &deployed, &desired);
        let mut place = None;
        if depth != Depth::Templates {
            let checked = self
                .check_change(&mut plan, &deployed, &desired, depth, run)
                .await?;
            let Some(checked) = checked else {
                return Ok(None);
            };
            // CloudFormation computes change sets that it cannot execute, so an impossible change gets none.
            if !plan.is_impossible()
                && !self
                    .review_change(&mut plan, &deployed, &desired, goal, depth, run)
                    .await?
            {
                return Ok(None);
            }
            place = Some(checked);
        }
        if matches && plan.change_set.is_none() && !plan.is_refused() {
            return Ok(Some(self.nothing(deployed, desired, vec![], goal)));
        }
        Ok(Some(Draft {
            plan,
            desired,
            deployed: Some(deployed),
            place,
        }))
    }

    fn nothing(&self, deployed: Deployed, desired: Desired, warnings: Vec<String>, goal: &Goal<'_>) -> Draft {
        let name = self.name.as_str();
        let mut plan = Plan::new(name, Action::Nothing, Some(&deployed), &desired, &goal.loaded);
        plan.warnings.extend(warnings);
        plan.found = Some(self.unchanged(&deployed, plan.warnings.clone()));
        Draft {
            plan,
            desired,
            deployed: Some(deployed),
            place: None,
        }
    }

    /// The template for a request of CloudFormation. A long one is uploaded first.
    pub(super) async fn template_source(&self, desired: &Desired) -> Result<TemplateSource, Error> {
        let body = desired.template.to_json();
        if body.len() <= Template::LONGEST_BODY {
            return Ok(TemplateSource::Body(body));
        }
        let place = self.cloud.caller().await?;
        let url = store_template(&self.cloud, &self.options, body, &place, self.observer.as_ref()).await?;
        Ok(TemplateSource::Url(url))
    }

    pub(super) async fn review(
        &self,
        stack: &str,
        purpose: Purpose,
        before: Option<&Template>,
        desired: &Desired,
        deadline: &Deadline,
    ) -> Result<Reviewed, Error> {
        let template = self.template_source(desired).await?;
        let create = || self.cloud.create_change_set(stack, purpose, desired, &template);
        let arn = match patiently(deadline, create).await {
            Ok(arn) => arn,
            Err(failure) if failure.busy() || failure.created_meanwhile() => {
                return Ok(Reviewed::Busy);
            }
            Err(failure) => return Err(failure.into()),
        };
        let change_set = match self.computed(stack, &arn, deadline).await {
            Ok(Some(change_set)) => change_set,
            Ok(None) => return Ok(Reviewed::Busy),
            Err(error) => {
                self.cloud.discard(stack, &arn).await;
                return Err(error);
            }
        };
        if change_set.ready() {
            let changes = exact::resources(&change_set.changes, before, &desired.template);
            return Ok(Reviewed::Changes { change_set, changes });
        }
        let reason = if change_set.failed_validation() {
            self.validation_reason(stack, &change_set, deadline).await
        } else {
            change_set.reason.clone()
        };
        self.cloud.discard(stack, &arn).await;
        if change_set.empty() {
            Ok(Reviewed::Nothing)
        } else {
            Err(Error::ChangeSet { reason })
        }
    }

    /// The real reason of a failed early validation, from the change set's events.
    async fn validation_reason(&self, stack: &str, change_set: &ChangeSet, deadline: &Deadline) -> String {
        match patiently(deadline, || {
            self.cloud.validation_failures(stack, &change_set.arn)
        })
        .await
        {
            Ok(found) if !found.is_empty() => found.join("; "),
            Ok(_) => change_set.reason.clone(),
            Err(failure) => format!(
                "{} (its events cannot be read: {})",
                change_set.reason,
                failure.message()
            ),
        }
    }
}

/// Whether the table becomes part of the stack as it is. Anything else would create a new one in its place.
pub(super) fn imports_table(changes: &[ResourceChange]) -> bool {
    let kinds: BTreeSet<_> = changes
        .iter()
        .filter(|change| change.logical_id == ids::TABLE.as_str())
        .map(|change| change.kind)
        .collect();
    kinds == BTreeSet::from([Kind::Import])
}

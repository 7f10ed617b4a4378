//! Drafts: the work that a stack needs, given the situation it is in.

use zae_limiter_template::deployer::Place;

use super::converge::Run;
use super::create::creation_changes;
use super::goal::Goal;
use crate::deployed::Deployed;
use crate::desired::Desired;
use crate::plan::{Action, Plan};
use crate::preflight::Preflight;
use crate::situation::Situation;
use crate::{Error, Stack};

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

impl Stack {
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
            place = Some(checked);
            // CloudFormation computes change sets that it cannot execute, so an impossible change gets none.
            if !plan.is_impossible()
                && !self
                    .review_change(&mut plan, &deployed, &desired, goal, depth, run)
                    .await?
            {
                return Ok(None);
            }
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

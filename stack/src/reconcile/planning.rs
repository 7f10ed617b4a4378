//! Plans, exact by change set or offline by comparing templates.

use super::create::changes_on;
use super::review::Reviewed;
use super::wait::{Deadline, Pace};
use crate::cloud::change_set::Purpose;
use crate::code::Loaded;
use crate::deployed::Deployed;
use crate::desired::Desired;
use crate::events::Event;
use crate::guard;
use crate::outcome::Change;
use crate::plan::{Action, Basis, Plan};
use crate::situation::Situation;
use crate::{Error, Stack};

/// How one look at the stack is made.
#[derive(Clone, Copy)]
struct Look<'a> {
    loaded: &'a Loaded,
    exact: bool,
    deadline: &'a Deadline,
}

impl Stack {
    /// What [`ensure`](Stack::ensure) would do, found out by asking CloudFormation for a change set, which
    /// [`apply`](Stack::apply) executes and [`discard`](Stack::discard) throws away.
    ///
    /// The plan for a stack that does not exist is made by rendering alone. If an operation is running, waits for its end.
    pub async fn plan(&self) -> Result<Plan, Error> {
        self.planned(true).await
    }

    /// The same by comparing templates: two calls that only read. Replacements are known as far as they follow from
    /// the properties of our own resources.
    pub async fn plan_offline(&self) -> Result<Plan, Error> {
        self.planned(false).await
    }

    async fn planned(&self, exact: bool) -> Result<Plan, Error> {
        let loaded = self.code.load(&self.options).await?;
        let (deadline, mut pace, mut awaited) = (self.deadline(), Pace::new(), false);
        loop {
            let look = Look {
                loaded: &loaded,
                exact,
                deadline: &deadline,
            };
            if let Some(mut plan) = self.look(look).await? {
                if let Some(found) = plan.found.as_mut().filter(|_| awaited) {
                    found.change = Change::Awaited;
                }
                return Ok(plan);
            }
            awaited = true;
            self.in_time(&deadline, "change by others")?;
            pace.pause().await;
        }
    }

    /// Nothing if somebody else has started an operation.
    async fn look(&self, look: Look<'_>) -> Result<Option<Plan>, Error> {
        let Some(deployed) = self.observe().await? else {
            return self.plan_creation(None, Action::Create, look).await;
        };
        self.own(&deployed)?;
        match deployed.stack.situation() {
            Situation::Busy | Situation::CleaningUp => {
                self.tell(&Event::Awaiting {
                    status: deployed.stack.status.clone(),
                });
                self.settled(&deployed.stack.id, look.deadline).await?;
                Ok(None)
            }
            Situation::Review => self.plan_creation(Some(&deployed), Action::Create, look).await,
            Situation::Settled | Situation::RolledBack => self.plan_change(&deployed, look).await,
            Situation::FailedCreate if self.permissions.recreate => {
                self.plan_creation(Some(&deployed), Action::Recreate, look).await
            }
            _ => Err(self.failure(&deployed.stack).await),
        }
    }

    /// Nothing if somebody else has started an operation.
    async fn plan_creation(
        &self,
        deployed: Option<&Deployed>,
        action: Action,
        look: Look<'_>,
    ) -> Result<Option<Plan>, Error> {
        let desired = self.desired(look.loaded, None)?;
        let mut plan = Plan::new(self.name.as_str(), action, deployed, &desired, look.loaded);
        // What a failed creation holds is deleted first, so it is not in the way.
        if !look.exact || action == Action::Recreate {
            return Ok(Some(plan));
        }
        let Some(site) = self.site(deployed, &desired, look.deadline).await? else {
            return Ok(None);
        };
        if site.table.is_some() {
            plan.action = Action::Import;
            plan.changes = changes_on(true, &desired);
        }
        plan.findings = self.check_site(&site, &desired).await;
        let overtaken = !plan.findings.is_empty() && self.moved(deployed).await?;
        Ok((!overtaken).then_some(plan))
    }

    /// Nothing if somebody else has started an operation.
    async fn plan_change(
        &self,
        deployed: &Deployed,
        Look {
            loaded,
            exact,
            deadline,
        }: Look<'_>,
    ) -> Result<Option<Plan>, Error> {
        let name = self.name.as_str();
        let newer = self.newer(deployed);
        let desired = self.desired(loaded, Some(deployed))?;
        if newer.is_some() || desired.is(deployed) {
            let mut plan = Plan::new(name, Action::Nothing, Some(deployed), &desired, loaded);
            (plan.changes, plan.outputs) = (vec![], vec![]);
            plan.warnings.extend(newer);
            plan.found = Some(self.unchanged(deployed, false, plan.warnings.clone()));
            return Ok(Some(plan));
        }
        let mut plan = Plan::new(name, Action::Update, Some(deployed), &desired, loaded);
        plan.refusals = self.refusals(&plan, deployed, &desired);
        if !exact {
            return Ok(Some(plan));
        }
        let rolled_back = deployed.stack.situation() == Situation::RolledBack;
        if rolled_back
            && !self.permissions.retry
            && let Some(cause) = self.tried_before(&deployed.stack, &desired).await?
        {
            plan.refuse_again(cause.as_ref());
        }
        plan.findings = self
            .check_update(deployed, &desired, &plan.changes, &plan.outputs)
            .await?;
        if !plan.findings.is_empty() && self.moved(Some(deployed)).await? {
            return Ok(None);
        }
        // CloudFormation computes change sets that it cannot execute.
        if plan.refusals.iter().any(|refusal| !refusal.can_be_allowed) {
            return Ok(Some(plan));
        }
        let before = deployed.template.as_ref();
        match self
            .review(&deployed.stack.id, Purpose::Update, before, &desired, deadline)
            .await?
        {
            Reviewed::Busy => return Ok(None),
            Reviewed::Nothing => {}
            Reviewed::Changes { change_set, changes } => {
                plan.basis = Basis::ChangeSet;
                plan.change_set = Some(change_set.arn);
                plan.changes = changes;
                plan.refusals = self.refusals(&plan, deployed, &desired);
            }
        }
        if plan.is_refused() {
            self.discard(&plan).await;
            plan.change_set = None;
        }
        Ok(Some(plan))
    }

    /// Throws away what a plan that is not going to be applied has left in AWS: its change set.
    pub async fn discard(&self, plan: &Plan) {
        if let (Some(change_set), Some(base)) = (&plan.change_set, &plan.base) {
            self.cloud.discard(&base.stack_id, change_set).await;
        }
    }

    fn refusals(&self, plan: &Plan, deployed: &Deployed, desired: &Desired) -> Vec<guard::Refusal> {
        guard::refusals(
            &plan.changes,
            deployed.template.as_ref(),
            &desired.template,
            &self.permissions.lose,
        )
    }
}

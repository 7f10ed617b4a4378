//! Plans, exact by change set or offline by comparing templates.

use super::create::changes_on;
use super::review::Reviewed;
use super::wait::Deadline;
use crate::cloud::change_set::Purpose;
use crate::code::Loaded;
use crate::deployed::Deployed;
use crate::desired::Desired;
use crate::events::Event;
use crate::guard;
use crate::plan::{Action, Basis, Plan};
use crate::situation::Situation;
use crate::{Error, Stack};

impl Stack {
    /// What [`ensure`](Stack::ensure) would do, found out by asking CloudFormation for a change set, which
    /// [`apply`](Stack::apply) executes.
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
        let deadline = self.deadline();
        loop {
            let Some(deployed) = self.observe().await? else {
                match self.plan_creation(None, Action::Create, &loaded, exact).await? {
                    Some(plan) => return Ok(plan),
                    None => continue,
                }
            };
            self.own(&deployed)?;
            match deployed.stack.situation() {
                Situation::Busy | Situation::CleaningUp => {
                    self.tell(&Event::Awaiting {
                        status: deployed.stack.status.clone(),
                    });
                    self.settled(&deployed.stack.id, &deadline).await?;
                }
                Situation::Review => {
                    let plan = self.plan_creation(Some(&deployed), Action::Create, &loaded, exact);
                    if let Some(plan) = plan.await? {
                        return Ok(plan);
                    }
                }
                Situation::Settled | Situation::RolledBack => {
                    if let Some(plan) = self.plan_change(&deployed, &loaded, exact, &deadline).await? {
                        return Ok(plan);
                    }
                }
                Situation::FailedCreate if self.permissions.recreate => {
                    let plan = self.plan_creation(Some(&deployed), Action::Recreate, &loaded, exact);
                    if let Some(plan) = plan.await? {
                        return Ok(plan);
                    }
                }
                _ => return Err(self.failure(&deployed.stack).await),
            }
        }
    }

    /// Nothing if somebody else has started an operation.
    async fn plan_creation(
        &self,
        deployed: Option<&Deployed>,
        action: Action,
        loaded: &Loaded,
        check: bool,
    ) -> Result<Option<Plan>, Error> {
        let desired = self.desired(loaded, None)?;
        let mut plan = Plan::new(self.name.as_str(), action, deployed, &desired, loaded);
        // What a failed creation holds is deleted first, so it is not in the way.
        if !check || action == Action::Recreate {
            return Ok(Some(plan));
        }
        let Some(site) = self.site(deployed, &desired).await? else {
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
        loaded: &Loaded,
        exact: bool,
        deadline: &Deadline,
    ) -> Result<Option<Plan>, Error> {
        let name = self.name.as_str();
        let newer = self.newer(deployed);
        let desired = self.desired(loaded, Some(deployed))?;
        if newer.is_some() || desired.is(deployed) {
            let mut plan = Plan::new(name, Action::Nothing, Some(deployed), &desired, loaded);
            (plan.changes, plan.outputs) = (vec![], vec![]);
            plan.warnings.extend(newer);
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
        Ok(Some(plan))
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

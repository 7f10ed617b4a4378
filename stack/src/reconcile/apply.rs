//! Plans into deeds.

use zae_limiter_template::{VERSION, tags_of_user};

use super::Attempt;
use super::wait::Deadline;
use crate::cloud::change_set::gone;
use crate::code::{Loaded, publish};
use crate::deployed::Deployed;
use crate::desired::Desired;
use crate::outcome::Outcome;
use crate::plan::{Action, Plan, exact};
use crate::situation::Situation;
use crate::{Error, Stack};

impl Stack {
    /// Does what a plan says, and nothing if the stack has changed since it was made.
    ///
    /// The template is the plan's, not what the options of this value say now.
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
        self.of_plan(&desired).carry_out(plan, &desired).await
    }

    async fn carry_out(&self, plan: &Plan, desired: &Desired) -> Result<Outcome, Error> {
        let loaded = self.planned_archives(plan).await?;
        let deadline = self.deadline();
        let deployed = self.observe().await?;
        if let Some(deployed) = &deployed {
            self.own(deployed)?;
        }
        if let Some(why) = plan.obsolete(deployed.as_ref()) {
            return Err(self.obsolete(why));
        }
        if let (Action::Nothing, Some(deployed)) = (plan.action, &deployed) {
            return Ok(self.unchanged(deployed, false, plan.warnings.clone()));
        }
        let attempt = self.attempt(plan, deployed.as_ref(), desired, &loaded, &deadline);
        let attempt = match attempt.await {
            Err(Error::Failed {
                cause: Some(cause), ..
            }) if cause.heals() => {
                self.rest(&cause).await;
                self.attempt_again(desired, &loaded, &deadline).await?
            }
            other => other?,
        };
        match attempt {
            Attempt::Done {
                stack,
                change,
                warnings,
            } => Ok(self.outcome(&stack, change, VERSION, warnings)),
            Attempt::Overtaken => Err(self.obsolete("another process was faster".to_owned())),
        }
    }

    async fn attempt(
        &self,
        plan: &Plan,
        deployed: Option<&Deployed>,
        desired: &Desired,
        loaded: &Loaded,
        deadline: &Deadline,
    ) -> Result<Attempt, Error> {
        match (plan.action, deployed) {
            (Action::Update, Some(deployed)) => {
                self.apply_update(plan, deployed, desired, loaded, deadline).await
            }
            (Action::Recreate, Some(deployed)) => {
                self.clear(&deployed.stack, deadline).await?;
                self.create(None, desired, loaded, deadline).await
            }
            (Action::Create | Action::Import, review) => self.create(review, desired, loaded, deadline).await,
            _ => Err(self.obsolete("the stack does not exist any more".to_owned())),
        }
    }

    /// Does the same once more after what time has healed.
    async fn attempt_again(
        &self,
        desired: &Desired,
        loaded: &Loaded,
        deadline: &Deadline,
    ) -> Result<Attempt, Error> {
        let Some(deployed) = self.observe().await? else {
            return self.create(None, desired, loaded, deadline).await;
        };
        self.own(&deployed)?;
        match deployed.stack.situation() {
            Situation::FailedCreate => {
                self.clear_healed(&deployed.stack, deadline).await?;
                self.create(None, desired, loaded, deadline).await
            }
            Situation::RolledBack => self.update(&deployed, desired, loaded, deadline).await,
            _ => Ok(Attempt::Overtaken),
        }
    }

    /// This stack with the options that a plan was made with, as far as the plan tells them: they say which bucket has the
    /// archives and what is checked.
    fn of_plan(&self, desired: &Desired) -> Self {
        let stored = desired.template.options().ok().flatten();
        let planned = stored.and_then(|stored| {
            let stored = stored.tags(tags_of_user(&desired.tags));
            let stored = match &self.options.code_directory {
                Some(directory) => stored.code_directory(directory),
                None => stored,
            };
            stored.build().ok()
        });
        let mut stack = self.clone();
        stack.options = planned.unwrap_or(stack.options);
        stack
    }

    fn obsolete(&self, why: String) -> Error {
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
            let found = loaded
                .archives
                .iter()
                .find(|(known, _)| known.as_str() == function);
            if found.is_none_or(|(_, archive)| archive.sha256() != *sha256) {
                return Err(self.obsolete(format!(
                    "the archive of the {function} is not the one that was planned"
                )));
            }
        }
        Ok(loaded)
    }

    async fn apply_update(
        &self,
        plan: &Plan,
        deployed: &Deployed,
        desired: &Desired,
        loaded: &Loaded,
        deadline: &Deadline,
    ) -> Result<Attempt, Error> {
        if deployed.stack.situation() == Situation::RolledBack {
            self.not_again(&deployed.stack, desired).await?;
        }
        let before = deployed.template.as_ref();
        let Some(arn) = &plan.change_set else {
            return self.update(deployed, desired, loaded, deadline).await;
        };
        let id = &deployed.stack.id;
        let change_set = match self.cloud.change_set(id, arn).await {
            Ok(change_set) => change_set,
            Err(failure) if gone(&failure) => {
                return Err(self.obsolete("its change set is gone".to_owned()));
            }
            Err(failure) => return Err(failure.into()),
        };
        let changes = exact::resources(&change_set.changes, before, &desired.template);
        self.guard(&changes, before, desired)?;
        let findings = self
            .check_update(deployed, desired, &changes, &plan.outputs)
            .await?;
        if !findings.is_empty() {
            return Err(Error::Preflight { findings });
        }
        let place = self.place_of(deployed).await?;
        publish(&self.cloud, &self.options, loaded, &place, self.observer.as_ref()).await?;
        self.execute(deployed, desired, arn, deadline).await
    }
}

//! Applying a stored plan.

use zae_limiter_template::tags_of_user;

use super::goal::Goal;
use crate::code::Loaded;
use crate::desired::Desired;
use crate::outcome::Outcome;
use crate::plan::{Action, Plan};
use crate::{Error, Stack};

impl Stack {
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
}

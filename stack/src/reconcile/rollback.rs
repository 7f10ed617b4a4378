//! Continuing a rollback that failed.

use crate::situation::Situation;
use crate::{Error, Stack, Status};

impl Stack {
    /// Continues a rollback that failed, skipping resources by logical id, and waits for its end.
    pub async fn continue_rollback(&self, skip: &[String]) -> Result<Status, Error> {
        let missing = || Error::NoSuchStack {
            stack: self.name.to_string(),
        };
        let deployed = self.observe().await?.ok_or_else(missing)?;
        self.check_owner(&deployed)?;
        let before = &deployed.stack;
        if before.situation() != Situation::RollbackFailed {
            return Err(Error::NoRollback {
                stack: self.name.to_string(),
                status: before.status.clone(),
            });
        }
        self.cloud.continue_rollback(&before.id, skip).await?;
        match self.finished(&before.id, Some(before), &self.deadline()).await? {
            Some(stack) if stack.situation() == Situation::RolledBack => {
                self.status().await?.ok_or_else(missing)
            }
            Some(stack) => Err(self.failure(&stack).await),
            None => Err(missing()),
        }
    }
}

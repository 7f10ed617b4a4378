//! Continuing a rollback that failed.

use crate::patience::patiently;
use crate::situation::Situation;
use crate::{Error, Stack, Status};

impl Stack {
    /// Continues a rollback that failed, skipping resources by logical id, and waits for its end. Rolls back a stack in
    /// `UPDATE_FAILED`. Refused if another tool deploys the stack, unless [`adopt`](Stack::adopt) is set.
    pub async fn continue_rollback(&self, skip: &[String]) -> Result<Status, Error> {
        let deadline = self.deadline();
        let deployed = self.existing(&deadline).await?;
        self.check_owner(&deployed)?;
        self.check_manager(&deployed)?;
        let before = &deployed.stack;
        match before.situation() {
            Situation::RollbackFailed => {
                patiently(&deadline, || self.cloud.continue_rollback(&before.id, skip)).await?;
            }
            Situation::UpdateFailed => patiently(&deadline, || self.cloud.roll_back(&before.id)).await?,
            _ => {
                return Err(Error::NoRollback {
                    stack: self.name.to_string(),
                    status: before.status.clone(),
                });
            }
        }
        match self.finished(&before.id, Some(before), &deadline).await? {
            Some(stack) if stack.situation() == Situation::RolledBack => self.existing_status().await,
            Some(stack) => Err(self.failure(&stack, &deadline).await),
            None => Err(self.missing().await),
        }
    }
}

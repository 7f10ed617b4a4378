//! Deleting what a failed creation left, so that the stack can be created again.

use crate::deployed::Described;
use crate::events::Event;
use crate::patience::{Deadline, patiently};
use crate::{Error, Stack};

impl Stack {
    /// Whether a stack whose creation failed may be deleted: if the caller allows it, or on a retry, if it failed for a
    /// reason that goes away by itself. Another failure on a retry is an error.
    pub(super) async fn may_recreate(
        &self,
        stack: &Described,
        healed: bool,
        deadline: &Deadline,
    ) -> Result<bool, Error> {
        if self.permissions.recreate || !healed {
            return Ok(self.permissions.recreate);
        }
        match self.failure(stack, deadline).await {
            Error::Failed {
                cause: Some(cause), ..
            } if cause.heals() => Ok(true),
            other => Err(other),
        }
    }

    /// Deletes what a failed creation left. None of it is retained.
    pub(super) async fn clear(&self, stack: &Described, deadline: &Deadline) -> Result<(), Error> {
        self.tell(&Event::Started { operation: "delete" });
        patiently(deadline, || self.cloud.delete_stack(&stack.id, &[])).await?;
        match self.finished(&stack.id, Some(stack), deadline).await? {
            None => Ok(()),
            Some(stack) => Err(self.failure(&stack, deadline).await),
        }
    }
}

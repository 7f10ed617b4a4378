//! Deletion protection of the table while a stack is created around it, and after.

use aws_sdk_dynamodb::types::TableStatus;

use super::{Attempt, draft::Draft};
use crate::deployed::Described;
use crate::desired::Desired;
use crate::events::Event;
use crate::patience::{Deadline, Pace, patiently};
use crate::{Error, Stack};

impl Stack {
    /// Turns deletion protection on, so that no rollback of the import can delete the table. Returns whether it was off.
    pub(super) async fn protect_table(&self, deadline: &Deadline) -> Result<bool, Error> {
        let name = self.name.as_str();
        let protected = self
            .cloud
            .table(name)
            .await?
            .is_none_or(|table| table.deletion_protection_enabled == Some(true));
        if protected {
            return Ok(false);
        }
        self.cloud.set_protection(name, true).await?;
        let mut pace = Pace::polls();
        loop {
            let table = self.cloud.table(name).await?;
            if table.is_none_or(|table| table.table_status != Some(TableStatus::Updating)) {
                return Ok(true);
            }
            self.in_time(deadline, &format!("protection of table {name}"))?;
            pace.pause().await;
        }
    }

    /// Turns deletion protection off again, if the template does not ask for it. Returns a warning if that fails.
    pub(super) async fn unprotect_table(&self, desired: &Desired) -> Option<String> {
        if desired.protects_table() {
            return None;
        }
        let name = self.name.as_str();
        let failure = self.cloud.set_protection(name, false).await.err()?;
        Some(format!(
            "deletion protection of table {name}, turned on for the import, could not be turned off: {}",
            failure.message()
        ))
    }

    /// Turns deletion protection on in a stack that was created without it, so that its creation could roll back.
    pub(super) async fn protect_new_stack(
        &self,
        draft: &Draft,
        created: &Described,
        deadline: &Deadline,
    ) -> Result<Attempt, Error> {
        let token = draft.desired.fingerprint.token();
        match patiently(deadline, || {
            self.cloud.update_stack(&created.id, &draft.desired, &token)
        })
        .await
        {
            Ok(()) => self.tell(&Event::Started { operation: "update" }),
            Err(failure) if failure.busy() => return Ok(Attempt::Overtaken),
            Err(failure) => return Err(failure.into()),
        }
        self.updated(created, deadline).await
    }
}

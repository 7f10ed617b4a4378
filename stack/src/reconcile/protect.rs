//! Deletion protection of the table while a stack is created around it, and after.

use aws_sdk_dynamodb::types::{TableDescription, TableStatus};
use zae_limiter_template::IMPORT_PROTECTION_TAG;

use super::{Attempt, draft::Draft};
use crate::cloud::failure::Failure;
use crate::deployed::Described;
use crate::desired::Desired;
use crate::events::Event;
use crate::patience::{Deadline, Pace, patiently};
use crate::{Error, Stack};

impl Stack {
    /// Turns deletion protection on, so that no rollback of the import can delete the table. Returns whether it was off before
    /// this import, or before an earlier one that failed.
    pub(super) async fn protect_table(&self, deadline: &Deadline) -> Result<bool, Error> {
        let name = self.name.as_str();
        let Some(table) = self.cloud.table(name).await? else {
            return Ok(false);
        };
        if table.deletion_protection_enabled == Some(true) {
            return Ok(self.cloud.tag_of(&table, IMPORT_PROTECTION_TAG).await?.is_some());
        }
        let remembered = self.remember_protection(&table, deadline).await?;
        if let Err(failure) = patiently(deadline, || self.cloud.set_protection(name, true)).await {
            if remembered && let Err(kept) = self.forget_protection(deadline).await {
                let text = tag_stays(name, &kept);
                self.tell(&Event::Warning { text });
            }
            return Err(failure.into());
        }
        let mut pace = Pace::polls();
        loop {
            let table = patiently(deadline, || self.cloud.table(name)).await?;
            if table.is_none_or(|table| table.table_status != Some(TableStatus::Updating)) {
                return Ok(true);
            }
            self.in_time(deadline, &format!("protection of table {name}"))?;
            pace.pause().await;
        }
    }

    /// Sets the tag. Returns whether that succeeded: only an import that fails needs the tag.
    async fn remember_protection(
        &self,
        table: &TableDescription,
        deadline: &Deadline,
    ) -> Result<bool, Failure> {
        let Some(arn) = table.table_arn() else {
            return Ok(false);
        };
        let tag = || self.cloud.tag_table(arn, IMPORT_PROTECTION_TAG, "on");
        match patiently(deadline, tag).await {
            Ok(()) => Ok(true),
            Err(failure) if failure.throttled() => Err(failure),
            Err(failure) => {
                self.tell(&Event::NotChecked {
                    what: "earlier deletion protection of the table".to_owned(),
                    reason: failure.message().to_owned(),
                });
                Ok(false)
            }
        }
    }

    /// Turns deletion protection off again, if the template does not ask for it. Returns a warning if that fails.
    pub(super) async fn unprotect_table(&self, desired: &Desired, deadline: &Deadline) -> Option<String> {
        let name = self.name.as_str();
        if !desired.protects_table()
            && let Err(failure) = patiently(deadline, || self.cloud.set_protection(name, false)).await
        {
            return Some(format!(
                "deletion protection of table {name}, turned on for the import, could not be turned off: {}",
                failure.message()
            ));
        }
        let failure = self.forget_protection(deadline).await.err()?;
        Some(tag_stays(name, &failure))
    }

    /// Removes the tag, if the table has it.
    async fn forget_protection(&self, deadline: &Deadline) -> Result<(), Failure> {
        let Some(table) = patiently(deadline, || self.cloud.table(self.name.as_str())).await? else {
            return Ok(());
        };
        let tag = patiently(deadline, || self.cloud.tag_of(&table, IMPORT_PROTECTION_TAG)).await?;
        match (tag, table.table_arn()) {
            (Some(_), Some(arn)) => {
                patiently(deadline, || self.cloud.untag_table(arn, IMPORT_PROTECTION_TAG)).await
            }
            _ => Ok(()),
        }
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

fn tag_stays(table: &str, failure: &Failure) -> String {
    format!(
        "tag {IMPORT_PROTECTION_TAG} of table {table} could not be removed: {}; remove it, or the next import of the table turns \
         deletion protection off",
        failure.message()
    )
}

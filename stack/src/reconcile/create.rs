//! Creating a stack, around an existing table if there is one, and after a creation that failed.

use std::time::{Duration, SystemTime};

use aws_sdk_dynamodb::types::{TableDescription, TableStatus};
use serde_json::Value;
use tokio::time::sleep;
use zae_limiter_template::IMPORT_PROTECTION_TAG;
use zae_limiter_template::deployer::Place;
use zae_limiter_template::model::ids;

use super::Attempt;
use super::converge::{Goal, Run};
use super::draft::{Draft, Reviewed, imports_table};
use crate::adopt::misfits;
use crate::cause::advice::QUEUE_NAME_BLOCKED;
use crate::cloud::change_set::{Purpose, overtaken};
use crate::cloud::failure::Failure;
use crate::code::publish;
use crate::deployed::{Deployed, Described};
use crate::desired::Desired;
use crate::events::Event;
use crate::outcome::Change;
use crate::patience::{Deadline, Pace, patiently};
use crate::plan::{Action, Kind, ResourceChange, compare};
use crate::situation::Situation;
use crate::{Error, Stack};

/// The place where a stack is to be created, and the table that is already there.
pub(super) struct Site {
    pub(super) place: Place,
    pub(super) table: Option<TableDescription>,
}

impl Stack {
    /// Looks at where a stack is to be created; `None` if it has been created in the meantime.
    ///
    /// `review` is the empty stack that waits for its first change set, if there is one.
    pub(super) async fn site(
        &self,
        review: Option<&Deployed>,
        desired: &Desired,
        deadline: &Deadline,
    ) -> Result<Option<Site>, Error> {
        let name = self.name.as_str();
        let place = match review.and_then(|review| review.stack.place()) {
            Some(place) => place,
            None => self.cloud.caller().await?,
        };
        let table = self.table_that_stays(name, deadline).await?;
        if let Some(table) = &table {
            // A faster process may have created the table just now.
            if self.moved(review).await? {
                return Ok(None);
            }
            match self.cloud.owner_of(name).await {
                Ok(Some(owner)) if owner == name => return Ok(None),
                Ok(Some(owner)) => {
                    return Err(Error::TableOwned {
                        table: name.to_owned(),
                        owner,
                    });
                }
                Ok(None) => {}
                // CloudFormation imports nothing that another stack owns: this check only improves the message.
                Err(failure) if failure.denied() => {}
                Err(failure) => return Err(failure.into()),
            }
            if self.managed(table).await? {
                return Err(Error::TableManaged {
                    table: name.to_owned(),
                });
            }
            let misfits = misfits(table, &desired.template);
            if !misfits.is_empty() {
                return Err(Error::TableMisfits {
                    table: name.to_owned(),
                    misfits,
                });
            }
        }
        Ok(Some(Site { place, table }))
    }

    /// Carries out a creation.
    pub(super) async fn create(&self, draft: &Draft, goal: &Goal<'_>, run: &Run) -> Result<Attempt, Error> {
        let place = match &draft.place {
            Some(place) => place.clone(),
            None => self.cloud.caller().await?,
        };
        publish(
            &self.cloud,
            &self.options,
            &goal.loaded,
            &place,
            self.observer.as_ref(),
        )
        .await?;
        if draft.plan.action == Action::Import {
            return self.create_around_table(draft, run).await;
        }
        let initial = draft.desired.unprotected();
        let desired = initial.as_ref().unwrap_or(&draft.desired);
        let started = if draft.deployed.is_some() {
            self.create_by_change_set(draft, desired, false, &run.deadline)
                .await?
        } else {
            self.create_from_nothing(desired, &run.deadline).await?
        };
        let Some(stack) = self.created(started, run).await? else {
            return Ok(Attempt::Overtaken);
        };
        let stack = if initial.is_some() {
            match self.protect_new_stack(draft, &stack, &run.deadline).await? {
                Attempt::Done { stack, .. } => stack,
                Attempt::Overtaken => return Ok(Attempt::Overtaken),
            }
        } else {
            Box::new(stack)
        };
        Ok(Attempt::Done {
            stack,
            change: Change::Created,
            warnings: vec![],
        })
    }

    /// Creates the stack and imports the table, which has deletion protection meanwhile.
    async fn create_around_table(&self, draft: &Draft, run: &Run) -> Result<Attempt, Error> {
        self.wait_for_queue_names(&draft.desired, &run.deadline).await?;
        let unprotected = self.protect_table(&run.deadline).await?;
        let started = self
            .create_by_change_set(draft, &draft.desired, true, &run.deadline)
            .await;
        if started.is_err()
            && unprotected
            && let Some(text) = self.unprotect_table(&draft.desired, &run.deadline).await
        {
            self.tell(&Event::Warning { text });
        }
        let Some(stack) = self.created(started?, run).await? else {
            return Ok(Attempt::Overtaken);
        };
        let mut warnings = Vec::new();
        if unprotected {
            warnings.extend(self.unprotect_table(&draft.desired, &run.deadline).await);
        }
        warnings.extend(self.table_drift(&stack.id, &run.deadline).await);
        Ok(Attempt::Done {
            stack: Box::new(stack),
            change: Change::Imported,
            warnings,
        })
    }

    async fn create_from_nothing(
        &self,
        desired: &Desired,
        deadline: &Deadline,
    ) -> Result<Option<String>, Error> {
        let (name, token) = (self.name.as_str(), desired.fingerprint.token());
        let template = self.template_source(desired).await?;
        let create = || self.cloud.create_stack(name, desired, &template, &token);
        match patiently(deadline, create).await {
            Ok(id) => {
                self.tell(&Event::Started { operation: "create" });
                Ok(Some(id))
            }
            Err(failure) if failure.is("AlreadyExistsException") => Ok(None),
            Err(failure) => Err(failure.into()),
        }
    }

    /// Only a change set can import a table.
    async fn create_by_change_set(
        &self,
        draft: &Draft,
        desired: &Desired,
        imports: bool,
        deadline: &Deadline,
    ) -> Result<Option<String>, Error> {
        let started = self.start_change_set(imports, desired, deadline).await;
        if started.is_err() && draft.deployed.is_none() {
            self.drop_shell().await;
        }
        started
    }

    async fn start_change_set(
        &self,
        imports: bool,
        desired: &Desired,
        deadline: &Deadline,
    ) -> Result<Option<String>, Error> {
        let name = self.name.as_str();
        let reviewed = self
            .review(name, Purpose::Create, None, desired, deadline)
            .await?;
        let (change_set, changes) = match reviewed {
            Reviewed::Changes { change_set, changes } => (change_set, changes),
            Reviewed::Busy => return Ok(None),
            Reviewed::Nothing => {
                return Err(Error::ChangeSet {
                    reason: "it sees nothing to create".to_owned(),
                });
            }
        };
        if imports && !imports_table(&changes) {
            self.cloud.discard(name, &change_set.arn).await;
            return Err(Error::NotImported {
                table: name.to_owned(),
                reason: describe_table_change(&changes),
            });
        }
        let token = desired.fingerprint.token();
        match patiently(deadline, || self.cloud.execute(name, &change_set.arn, &token)).await {
            Ok(()) => {
                self.tell(&Event::Started {
                    operation: if imports { "import" } else { "create" },
                });
                Ok(Some(change_set.stack_id))
            }
            Err(failure) if overtaken(&failure) => Ok(None),
            Err(failure) => {
                self.cloud.discard(name, &change_set.arn).await;
                Err(failure.into())
            }
        }
    }

    /// Deletes the empty stack that our change set has created, unless it has other change sets too. If that fails, the next
    /// deployment reuses the stack.
    async fn drop_shell(&self) {
        let name = self.name.as_str();
        let Ok(Some(shell)) = self.cloud.describe(name).await else {
            return;
        };
        let empty = shell.situation() == Situation::Review
            && self
                .cloud
                .change_set_names(&shell.id)
                .await
                .is_ok_and(|names| names.is_empty());
        if empty && let Err(failure) = self.cloud.delete_stack(&shell.id, &[]).await {
            let reason = failure.message();
            tracing::debug!(stack = name, reason, "could not delete the empty stack");
        }
    }

    /// Waits for the end of a creation; `None` if another process creates the stack.
    async fn created(&self, started: Option<String>, run: &Run) -> Result<Option<Described>, Error> {
        let Some(id) = started else {
            return Ok(None);
        };
        match self.finished(&id, None, &run.deadline).await? {
            Some(stack) if !stack.situation().succeeded() => Err(self.failure(&stack, &run.deadline).await),
            stack => Ok(stack),
        }
    }

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
        let template = self.template_source(&draft.desired).await?;
        let token = draft.desired.fingerprint.token();
        match patiently(deadline, || {
            self.cloud
                .update_stack(&created.id, &draft.desired, &template, &token)
        })
        .await
        {
            Ok(()) => self.tell(&Event::Started { operation: "update" }),
            Err(failure) if failure.busy() => return Ok(Attempt::Overtaken),
            Err(failure) => return Err(failure.into()),
        }
        self.updated(created, deadline).await
    }

    /// Waits until SQS frees the names of the queues that the last stack of this name had. Without this, the creation around
    /// an imported table would fail and roll back.
    pub(super) async fn wait_for_queue_names(
        &self,
        desired: &Desired,
        deadline: &Deadline,
    ) -> Result<(), Error> {
        let queue =
            |resource: &Value| resource.get("Type").and_then(Value::as_str) == Some("AWS::SQS::Queue");
        if !desired.template.resources().any(|(_, resource)| queue(resource)) {
            return Ok(());
        }
        let deleted = match patiently(deadline, || self.cloud.last_deletion(self.name.as_str())).await {
            Ok(deleted) => deleted,
            Err(failure) => {
                self.tell(&Event::NotChecked {
                    what: "names of deleted queues".to_owned(),
                    reason: failure.message().to_owned(),
                });
                return Ok(());
            }
        };
        let age = deleted.map(|time| SystemTime::now().duration_since(time).unwrap_or(Duration::ZERO));
        let Some(left) = age.and_then(|age| QUEUE_NAME_BLOCKED.checked_sub(age)) else {
            return Ok(());
        };
        self.in_time(deadline, "wait for the names of deleted queues")?;
        self.tell(&Event::TryingAgain {
            reason: "SQS blocks the names of deleted queues for 60 seconds".to_owned(),
            after_seconds: left.as_secs() + 1,
        });
        sleep(left + Duration::from_secs(1)).await;
        Ok(())
    }

    /// Whether a stack whose creation failed may be deleted: if the caller allows it, or on a retry, if it failed for a
    /// temporary reason. Another failure on a retry is an error.
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

/// The changes of a creation.
pub(super) fn creation_changes(imports: bool, desired: &Desired) -> Vec<ResourceChange> {
    let mut changes = compare::resources(None, &desired.template);
    for change in &mut changes {
        if imports && change.logical_id == ids::TABLE.as_str() {
            change.kind = Kind::Import;
        }
    }
    changes
}

/// What a change set would do to the table, in words.
fn describe_table_change(changes: &[ResourceChange]) -> String {
    let id = ids::TABLE;
    let change = changes.iter().find(|change| change.logical_id == id.as_str());
    change.map_or_else(
        || format!("{id} is not in its change set"),
        |change| format!("it would {:?} {id}", change.kind).to_lowercase(),
    )
}

fn tag_stays(table: &str, failure: &Failure) -> String {
    format!(
        "tag {IMPORT_PROTECTION_TAG} of table {table} could not be removed: {}; remove it, or the next import of the table turns \
         deletion protection off",
        failure.message()
    )
}

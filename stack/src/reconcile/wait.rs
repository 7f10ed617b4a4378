//! Waiting for CloudFormation, reporting events meanwhile, and the error of an operation that failed.

use std::collections::HashSet;
use std::time::Duration;

use aws_sdk_dynamodb::types::{TableDescription, TableStatus};
use tokio::time::Instant;

use crate::advised::{CONTINUE_ROLLBACK, DELETE, RECREATE, RETAIN, RETRY, SKIP};
use crate::cause::Cause;
use crate::cloud::change_set::{ChangeSet, gone};
use crate::deployed::Described;
use crate::events::{Event, ResourceEvent};
use crate::patience::{Deadline, Pace, patiently};
use crate::situation::Situation;
use crate::{Error, Stack};

/// An operation that was started shows in the stack's status within this time.
const LATENESS: Duration = Duration::from_secs(30);

/// The events that were reported already.
#[derive(Debug, Default)]
struct Watch {
    told: HashSet<String>,
    blind: bool,
}

impl Watch {
    /// Reports new events, if the caller has an observer. Without the permission to read events, waiting goes on without
    /// them.
    async fn tell(&mut self, stack: &Stack, id: &str) {
        if self.blind || !stack.observed {
            return;
        }
        match stack.cloud.newest_operation(id).await {
            Ok(events) => {
                for event in events.into_iter().rev() {
                    if self.told.insert(event.id.clone()) {
                        stack.tell(&Event::Resource(event));
                    }
                }
            }
            Err(failure) if failure.throttled() => {}
            Err(failure) => {
                self.blind = true;
                let reason = failure.message().to_owned();
                stack.tell(&Event::NotChecked {
                    what: "events of the stack".to_owned(),
                    reason,
                });
            }
        }
    }
}

impl Stack {
    /// Reports an operation that another process has started, and waits for its end.
    pub(super) async fn attach(&self, stack: &Described, deadline: &Deadline) -> Result<(), Error> {
        self.tell(&Event::Awaiting {
            status: stack.status.clone(),
        });
        let (mut pace, mut watch) = (Pace::attached_polls(), Watch::default());
        loop {
            pace.pause().await;
            let Some(stack) = self.poll(&stack.id, deadline).await? else {
                return Ok(());
            };
            watch.tell(self, &stack.id).await;
            match stack.situation() {
                Situation::Busy | Situation::CleaningUp => self.in_time(deadline, &stack.status)?,
                _ => return Ok(()),
            }
        }
    }

    async fn poll(&self, id: &str, deadline: &Deadline) -> Result<Option<Described>, Error> {
        Ok(patiently(deadline, || self.cloud.describe(id)).await?)
    }

    /// Waits for the end of an operation that was just started on a stack that was like `before`. An update ends when it takes
    /// effect, even if cleanup is still running.
    pub(super) async fn finished(
        &self,
        id: &str,
        before: Option<&Described>,
        deadline: &Deadline,
    ) -> Result<Option<Described>, Error> {
        let (mut pace, mut watch) = (Pace::polls(), Watch::default());
        let shown_by = Instant::now() + LATENESS;
        loop {
            let Some(stack) = self.poll(id, deadline).await? else {
                return Ok(None);
            };
            // The operation may not show yet; the result of the last one must not be taken for its result.
            let unmoved = before.is_some_and(|before| {
                (&before.status, before.changed_at()) == (&stack.status, stack.changed_at())
            });
            let late = (unmoved || stack.situation() == Situation::Review) && Instant::now() < shown_by;
            if !late {
                watch.tell(self, id).await;
            }
            match stack.situation() {
                Situation::Gone => return Ok(None),
                _ if late => {}
                Situation::Busy => self.in_time(deadline, &stack.status)?,
                _ => return Ok(Some(stack)),
            }
            pace.pause().await;
        }
    }

    /// The table of this name. If it is being deleted, waits until it is gone.
    pub(super) async fn table_that_stays(
        &self,
        name: &str,
        deadline: &Deadline,
    ) -> Result<Option<TableDescription>, Error> {
        let mut pace = Pace::polls();
        loop {
            let table = patiently(deadline, || self.cloud.table(name)).await?;
            let going = |table: &TableDescription| table.table_status() == Some(&TableStatus::Deleting);
            if !table.as_ref().is_some_and(going) {
                return Ok(table);
            }
            self.in_time(deadline, &format!("deletion of table {name}"))?;
            pace.pause().await;
        }
    }

    /// Waits until CloudFormation has computed a change set; `None` if it was deleted, as happens when another change set is
    /// executed.
    pub(super) async fn computed(
        &self,
        stack: &str,
        arn: &str,
        deadline: &Deadline,
    ) -> Result<Option<ChangeSet>, Error> {
        let mut pace = Pace::polls();
        loop {
            let change_set = match patiently(deadline, || self.cloud.change_set(stack, arn)).await {
                Ok(change_set) => change_set,
                Err(failure) if gone(&failure) => return Ok(None),
                Err(failure) => return Err(failure.into()),
            };
            if !change_set.pending() {
                return Ok(Some(change_set));
            }
            self.in_time(deadline, &change_set.status)?;
            pace.pause().await;
        }
    }

    /// The error for a stack whose last operation failed: the first cause, and how to go on.
    pub(super) async fn failure(&self, stack: &Described, deadline: &Deadline) -> Error {
        // Without the permission to read events, only the status is known.
        let operation = patiently(deadline, || self.cloud.newest_operation(&stack.id)).await;
        let operation = operation.unwrap_or_default();
        let whole = || stack.reason.as_ref().map(|reason| of_stack(stack, reason));
        let cause = Cause::of(&operation).or_else(whole);
        Error::Failed {
            stack: self.name.to_string(),
            status: stack.status.clone(),
            cause: cause.map(Box::new),
            advice: advice(stack.situation(), &operation),
        }
    }
}

fn of_stack(stack: &Described, reason: &str) -> Cause {
    Cause {
        logical_id: stack.name.clone(),
        resource_type: "AWS::CloudFormation::Stack".to_owned(),
        reason: reason.to_owned(),
        advice: None,
    }
}

fn advice(situation: Situation, operation: &[ResourceEvent]) -> String {
    let stuck = stuck_on(operation).join(", ");
    match situation {
        Situation::CreateFailed => {
            format!("`{RECREATE}` deletes the failed stack and creates it again")
        }
        Situation::RolledBack => {
            format!(
                "the stack is as it was before; change the options, or retry the same change with `{RETRY}`"
            )
        }
        Situation::RollbackFailed => format!(
            "the rollback failed too, on {stuck}; repair that and continue with `{CONTINUE_ROLLBACK}` \
             (ContinueUpdateRollback), or skip what cannot be repaired with `{SKIP} ID`"
        ),
        Situation::ImportRollbackFailed => format!(
            "CloudFormation cannot continue this rollback; delete the stack with `{DELETE}`, which keeps the table, and deploy \
             again to import it"
        ),
        Situation::UpdateFailed => format!(
            "the update stopped halfway; roll it back with `{CONTINUE_ROLLBACK}` (RollbackStack) and deploy again"
        ),
        Situation::DeleteFailed => {
            format!("repair {stuck} and delete again, or delete the stack without it (`{RETAIN} {stuck}`)")
        }
        _ => String::new(),
    }
}

/// The resources on which the last phase of an operation, its rollback or deletion, failed.
fn stuck_on(operation: &[ResourceEvent]) -> Vec<String> {
    let failed = operation
        .iter()
        .take_while(|event| !(event.is_of_stack() && event.status.ends_with("ROLLBACK_IN_PROGRESS")));
    let failed = failed.filter(|event| !event.is_of_stack() && event.status.ends_with("_FAILED"));
    let mut ids: Vec<_> = failed.map(|event| event.logical_id.clone()).collect();
    ids.sort();
    ids.dedup();
    if ids.is_empty() {
        vec!["the resource that its events name".to_owned()]
    } else {
        ids
    }
}

//! Waiting for CloudFormation, and reporting events meanwhile.

use std::collections::HashSet;
use std::time::Duration;

use aws_sdk_dynamodb::types::{TableDescription, TableStatus};
use tokio::time::{Instant, sleep};

use crate::cloud::change_set::{ChangeSet, gone};
use crate::deployed::Described;
use crate::events::Event;
use crate::situation::Situation;
use crate::{Error, Stack};

/// Shortest and longest time between two polls of our own operation.
const PACE: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(5));

/// The same while waiting for the operation of another process. Many processes may wait at once.
const ATTACHED_PACE: (Duration, Duration) = (Duration::from_secs(15), Duration::from_secs(30));

/// An operation that was started shows in the stack's status within this time.
const LATENESS: Duration = Duration::from_secs(30);

/// When to stop waiting.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadline {
    ends: Instant,
    allowed: Duration,
}

/// Growing pauses between polls, with jitter so that many processes do not poll in step.
#[derive(Debug)]
pub(super) struct Pace {
    next: Duration,
    longest: Duration,
}

impl Pace {
    pub(super) fn new() -> Self {
        Self::between(PACE)
    }

    fn between((next, longest): (Duration, Duration)) -> Self {
        Self { next, longest }
    }

    pub(super) async fn pause(&mut self) {
        sleep(self.next.mul_f64(0.8 + 0.4 * fastrand::f64())).await;
        self.next = self.next.mul_f64(1.5).min(self.longest);
    }
}

impl Stack {
    pub(super) fn deadline(&self) -> Deadline {
        Deadline {
            ends: Instant::now() + self.timeout,
            allowed: self.timeout,
        }
    }

    pub(super) fn in_time(&self, deadline: &Deadline, status: &str) -> Result<(), Error> {
        if Instant::now() < deadline.ends {
            return Ok(());
        }
        Err(Error::TimedOut {
            stack: self.name.to_string(),
            status: status.to_owned(),
            after: deadline.allowed,
        })
    }

    /// Reports an operation that another process has started, and waits for its end.
    pub(super) async fn attach(&self, stack: &Described, deadline: &Deadline) -> Result<(), Error> {
        self.tell(&Event::Awaiting {
            status: stack.status.clone(),
        });
        let (mut pace, mut watch) = (Pace::between(ATTACHED_PACE), Watch::default());
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

    /// The stack. Throttling is not an error while there is time left.
    async fn poll(&self, id: &str, deadline: &Deadline) -> Result<Option<Described>, Error> {
        let mut pace = Pace::between(ATTACHED_PACE);
        loop {
            match self.cloud.describe(id).await {
                Err(failure) if failure.throttled() => {
                    self.in_time(deadline, "unknown status (throttled)")?;
                }
                described => return Ok(described?),
            }
            pace.pause().await;
        }
    }

    /// Waits for the end of an operation that was just started on a stack that was like `before`. An update ends when it takes
    /// effect, even if cleanup is still running.
    pub(super) async fn finished(
        &self,
        id: &str,
        before: Option<&Described>,
        deadline: &Deadline,
    ) -> Result<Option<Described>, Error> {
        let (mut pace, mut watch) = (Pace::new(), Watch::default());
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
        let mut pace = Pace::new();
        loop {
            let table = self.cloud.table(name).await?;
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
        let mut pace = Pace::new();
        loop {
            let change_set = match self.cloud.change_set(stack, arn).await {
                Ok(change_set) => Some(change_set),
                Err(failure) if gone(&failure) => return Ok(None),
                Err(failure) if failure.throttled() => None,
                Err(failure) => return Err(failure.into()),
            };
            let status = match change_set {
                Some(change_set) if !change_set.pending() => return Ok(Some(change_set)),
                Some(change_set) => change_set.status,
                None => "unknown status (throttled)".to_owned(),
            };
            self.in_time(deadline, &status)?;
            pace.pause().await;
        }
    }
}

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

//! The reconciler.

use tokio::time::sleep;
use zae_limiter_template::{AUDIT_RETENTION_DAYS, VERSION};

use super::Attempt;
use super::wait::{Deadline, Pace};
use crate::cause::Cause;
use crate::cause::advice::QUEUE_NAME_BLOCKED;
use crate::code::Loaded;
use crate::deployed::{Deployed, Described};
use crate::desired::Desired;
use crate::events::Event;
use crate::outcome::{Change, Outcome};
use crate::situation::Situation;
use crate::{Error, Stack};

/// What one look at the stack led to.
enum Round {
    Done(Outcome),
    /// Somebody else was at work: look again.
    Again,
}

impl Stack {
    /// Brings the stack to what the options say, whatever state it is in, and waits until it is there.
    ///
    /// A stack that is as it should be costs two calls. Any number of processes may do this at the same time: one makes
    /// the change, the others wait for it.
    pub async fn ensure(&self) -> Result<Outcome, Error> {
        let loaded = self.code.load(&self.options).await?;
        let deadline = self.deadline();
        let (mut pace, mut awaited, mut healed) = (Pace::new(), false, false);
        loop {
            match self.round(&loaded, &deadline, awaited, healed).await {
                Ok(Round::Done(outcome)) => return Ok(outcome),
                Ok(Round::Again) => awaited = true,
                Err(Error::Failed {
                    cause: Some(cause), ..
                }) if cause.heals() && !healed => {
                    healed = true;
                    self.rest(&cause).await;
                }
                Err(error) => return Err(error),
            }
            self.in_time(&deadline, "change by others")?;
            pace.pause().await;
        }
    }

    pub(super) async fn rest(&self, cause: &Cause) {
        let after_seconds = QUEUE_NAME_BLOCKED.as_secs();
        self.tell(&Event::TryingAgain {
            reason: cause.to_string(),
            after_seconds,
        });
        sleep(QUEUE_NAME_BLOCKED).await;
    }

    async fn round(
        &self,
        loaded: &Loaded,
        deadline: &Deadline,
        awaited: bool,
        healed: bool,
    ) -> Result<Round, Error> {
        let Some(deployed) = self.observe().await? else {
            let desired = self.desired(loaded, None)?;
            return Ok(self.concluded(self.create(None, &desired, loaded, deadline).await?));
        };
        self.own(&deployed)?;
        let stack = &deployed.stack;
        match stack.situation() {
            Situation::Busy => self.attach(stack, deadline).await,
            Situation::Review => {
                let desired = self.desired(loaded, None)?;
                Ok(self.concluded(self.create(Some(&deployed), &desired, loaded, deadline).await?))
            }
            Situation::Settled | Situation::CleaningUp | Situation::RolledBack => {
                if let Some(warning) = self.newer(&deployed) {
                    return Ok(Round::Done(self.unchanged(&deployed, awaited, vec![warning])));
                }
                let desired = self.desired(loaded, Some(&deployed))?;
                if desired.is(&deployed) {
                    return Ok(Round::Done(self.unchanged(&deployed, awaited, vec![])));
                }
                match stack.situation() {
                    Situation::CleaningUp => return self.attach(stack, deadline).await,
                    Situation::RolledBack if !healed => self.not_again(stack, &desired).await?,
                    _ => {}
                }
                Ok(self.concluded(self.update(&deployed, &desired, loaded, deadline).await?))
            }
            Situation::FailedCreate if self.permissions.recreate => {
                self.clear(stack, deadline).await?;
                Ok(Round::Again)
            }
            Situation::FailedCreate if healed => {
                self.clear_healed(stack, deadline).await?;
                Ok(Round::Again)
            }
            _ => Err(self.failure(stack).await),
        }
    }

    async fn attach(&self, stack: &Described, deadline: &Deadline) -> Result<Round, Error> {
        self.tell(&Event::Awaiting {
            status: stack.status.clone(),
        });
        self.settled(&stack.id, deadline).await?;
        Ok(Round::Again)
    }

    /// An error if this very change was tried last and rolled back.
    pub(super) async fn not_again(&self, stack: &Described, desired: &Desired) -> Result<(), Error> {
        if self.permissions.retry {
            return Ok(());
        }
        match self.tried_before(stack, desired).await? {
            Some(cause) => Err(Error::RolledBackBefore {
                stack: self.name.to_string(),
                cause: cause.map(Box::new),
            }),
            None => Ok(()),
        }
    }

    /// The cause why this very change was rolled back, if it was the last that was tried.
    pub(super) async fn tried_before(
        &self,
        stack: &Described,
        desired: &Desired,
    ) -> Result<Option<Option<Cause>>, Error> {
        let operation = self.cloud.newest_operation(&stack.id).await?;
        let token = operation.last().and_then(|event| event.token.as_deref());
        let same = token.is_some_and(|token| desired.fingerprint.made(token));
        Ok(same.then(|| Cause::of(&operation)))
    }

    /// Deletes what a creation left that failed because of something that time heals, and nothing else.
    pub(super) async fn clear_healed(&self, stack: &Described, deadline: &Deadline) -> Result<(), Error> {
        match self.failure(stack).await {
            Error::Failed {
                cause: Some(cause), ..
            } if cause.heals() => self.clear(stack, deadline).await,
            other => Err(other),
        }
    }

    /// Deletes what a failed creation left. Nothing of it is retained.
    pub(super) async fn clear(&self, stack: &Described, deadline: &Deadline) -> Result<(), Error> {
        self.tell(&Event::Started { operation: "delete" });
        self.cloud.delete_stack(&stack.id, &[]).await?;
        match self.finished(&stack.id, Some(stack), deadline).await? {
            None => Ok(()),
            Some(stack) => Err(self.failure(&stack).await),
        }
    }

    fn concluded(&self, attempt: Attempt) -> Round {
        match attempt {
            Attempt::Overtaken => Round::Again,
            Attempt::Done {
                stack,
                change,
                warnings,
            } => Round::Done(self.outcome(&stack, change, VERSION, warnings)),
        }
    }

    pub(super) fn unchanged(&self, deployed: &Deployed, awaited: bool, warnings: Vec<String>) -> Outcome {
        let change = if awaited { Change::Awaited } else { Change::None };
        let version = deployed
            .template
            .as_ref()
            .and_then(|template| template.version())
            .unwrap_or(VERSION);
        self.outcome(&deployed.stack, change, version, warnings)
    }

    pub(super) fn outcome(
        &self,
        stack: &Described,
        change: Change,
        version: &str,
        warnings: Vec<String>,
    ) -> Outcome {
        let retention = stack.outputs.get(AUDIT_RETENTION_DAYS);
        // A plan may be of other options than these.
        let retention = retention.and_then(|days| days.parse().ok());
        Outcome {
            change,
            stack_id: stack.id.clone(),
            outputs: stack.outputs.clone(),
            audit_retention_days: retention.unwrap_or(self.options.audit_retention_days),
            version: version.to_owned(),
            warnings,
        }
    }
}

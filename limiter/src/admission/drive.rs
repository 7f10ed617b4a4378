//! Carrying out what a lane's desk decides, until nothing is left to do.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use zae_limiter_schema::bucket::{Attributes, BucketWrite};

use super::desk::{Completion, Desk, LATE_DELIVERY, Step};
use super::lane::Lane;
use crate::backend::WriteOutcome;
use crate::cache::BucketImage;
use crate::{Error, Result};

/// From the third refusal in a row on, attempts are spread over this time.
const CONTENTION_PAUSE: Duration = Duration::from_millis(20);
const FIRST_OUTAGE_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_OUTAGE_PAUSE: Duration = Duration::from_secs(1);
/// A write without an answer is sent again so many times before its callers are told.
const RESENDS_WHEN_LOST: u32 = 1;

/// Works on a lane until its queue is empty and every write has been accounted for.
pub(super) fn drive(lane: Arc<Lane>) -> impl Future<Output = ()> + Send + 'static {
    // Made before the first poll: a task that a runtime drops unpolled must give up the lane too.
    let mut driver = Driver {
        lane,
        refusals: 0,
        outages: 0,
        idle: false,
    };
    async move {
        while !driver.idle {
            driver.step().await;
        }
    }
}

struct Driver {
    lane: Arc<Lane>,
    /// Refused writes in a row.
    refusals: u32,
    /// Calls without a usable answer in a row.
    outages: u32,
    idle: bool,
}

/// A driver whose runtime is shut down leaves the lane to the next one.
impl Drop for Driver {
    fn drop(&mut self) {
        if !self.idle {
            self.lane.abandoned();
        }
    }
}

impl Driver {
    async fn step(&mut self) {
        let (step, completions) = self.lane.next(self.lane.hub().moment());
        self.lane.finish(completions);
        match step {
            Step::Idle => self.idle = true,
            Step::Again => {}
            Step::Read => {
                let result = self.read().await;
                self.after_reading(result).await;
            }
            Step::Later(pause) => {
                if tokio::time::timeout(pause, self.lane.asked()).await.is_err() {
                    let result = self.read().await;
                    self.after_reading(result).await;
                }
            }
            Step::Reload => {
                let result = self.reload().await;
                self.after_reading(result).await;
            }
            Step::Send(write) => self.send(&write).await,
        }
    }

    async fn read(&self) -> Result<()> {
        let hub = self.lane.hub();
        let found = hub.backend.read_bucket(self.lane.key(), true).await?;
        self.lane.reread(found.as_ref(), hub.moment())
    }

    async fn reload(&self) -> Result<()> {
        let (hub, key) = (self.lane.hub(), self.lane.key());
        let lookup = hub.cache.reload_consistent(&key.entity, &key.resource).await?;
        let terms = Arc::new(hub.terms(&lookup.resolved, None));
        let found = match &lookup.bucket {
            BucketImage::Present(item) => Some(Attributes::from_item(item)),
            BucketImage::Absent | BucketImage::NotRead => None,
        };
        self.lane.reloaded(&terms, found.as_ref(), hub.moment())
    }

    async fn after_reading(&mut self, result: Result<()>) {
        match result {
            Ok(()) => self.answered(),
            Err(error) if error.is_unavailable() => {
                self.finish(|desk| desk.unreadable(&error));
                self.pause_for_outage(&error).await;
            }
            Err(error) => self.finish(|desk| desk.failed(&error)),
        }
    }

    /// Sends a write until it is answered, or nobody waits for it any more.
    async fn send(&mut self, write: &BucketWrite) {
        let mut lost = 0;
        let started = self.lane.hub().clock.elapsed();
        loop {
            let hub = self.lane.hub().clone();
            let sent = tokio::time::timeout(hub.attempt_timeout(), hub.backend.write_bucket(write)).await;
            let outcome = sent.unwrap_or_else(|_| WriteOutcome::Lost("no answer in time".to_owned()));
            let (reason, again) = match outcome {
                WriteOutcome::Done(attributes) => return self.done(&attributes),
                WriteOutcome::Refused(attributes) => return self.refused(attributes.as_ref()).await,
                WriteOutcome::Failed(error) => return self.finish(|desk| desk.failed(&error)),
                WriteOutcome::Lost(reason) => {
                    lost += 1;
                    let wanted = self.lane.with_desk(|desk| desk.lost(hub.clock.elapsed()));
                    (reason, wanted && lost <= RESENDS_WHEN_LOST)
                }
                WriteOutcome::Throttled(reason) | WriteOutcome::Conflict(reason) => {
                    #[cfg(test)]
                    if self.counts_conflicts_as_refusals(write) {
                        return;
                    }
                    // After that whoever waited is gone; changes go back to the queue, where they expire.
                    let in_time = hub.clock.elapsed().saturating_sub(started) < hub.settings.time_budget;
                    (reason, in_time && self.lane.with_desk(|desk| desk.wants_resend()))
                }
            };
            let error = hub.unavailable(&reason);
            if !again {
                self.finish(|desk| desk.give_up_current(&error));
                return self.pause_for_outage(&error).await;
            }
            self.pause_for_outage(&error).await;
        }
    }

    fn done(&mut self, attributes: &Attributes) {
        self.answered();
        self.refusals = 0;
        match attributes.decode() {
            Ok(decoded) => {
                let moment = self.lane.hub().moment();
                self.finish(|desk| desk.done(decoded, moment));
            }
            Err(malformed) => {
                // It happened, and nobody can be told what is left: what was taken goes back once it can be read.
                let now = self.lane.hub().clock.elapsed();
                self.lane.with_desk(|desk| desk.lost(now));
                self.finish(|desk| desk.failed(&malformed.into()));
            }
        }
    }

    async fn refused(&mut self, attributes: Option<&Attributes>) {
        self.answered();
        self.refusals += 1;
        match attributes.map(Attributes::decode).transpose() {
            Ok(decoded) => {
                let moment = self.lane.hub().moment();
                self.lane
                    .hub()
                    .note_refill(self.lane.image().as_deref(), decoded.as_ref());
                self.finish(|desk| desk.refused(decoded, moment));
            }
            Err(malformed) => self.finish(|desk| desk.failed(&malformed.into())),
        }
        if self.refusals >= 3 {
            tokio::time::sleep(self.lane.hub().entropy.up_to(CONTENTION_PAUSE)).await;
        }
    }

    fn answered(&mut self) {
        self.outages = 0;
    }

    /// Waits a little longer each time, gives up changes that have waited too long, and stops looking for writes that
    /// can no longer arrive.
    async fn pause_for_outage(&mut self, error: &Error) {
        let hub = self.lane.hub().clone();
        let now = hub.clock.elapsed();
        self.outages += 1;
        if let Some(older_than) = now.checked_sub(hub.settings.settle_budget) {
            self.finish(|desk| desk.expire(older_than, error));
        }
        if let Some(sent_before) = now.checked_sub(LATE_DELIVERY) {
            self.lane.with_desk(|desk| desk.rest(sent_before));
        }
        let most = FIRST_OUTAGE_PAUSE
            .saturating_mul(1 << self.outages.min(7))
            .min(LONGEST_OUTAGE_PAUSE)
            // Whoever comes at the end of the outage must not spend all its time in the pause.
            .min(hub.settings.time_budget / 4);
        tokio::time::sleep(hub.entropy.up_to(most)).await;
    }

    fn finish(&self, act: impl FnOnce(&mut Desk) -> Vec<Completion>) {
        let completions = self.lane.with_desk(act);
        self.lane.finish(completions);
    }

    #[cfg(test)]
    fn counts_conflicts_as_refusals(&mut self, _: &BucketWrite) -> bool {
        let mutated =
            self.lane.hub().settings.mutation == Some(crate::simulation::Mutation::ConflictsAreRefusals);
        if mutated {
            self.finish(Desk::refuse_current);
        }
        mutated
    }
}

//! Carrying out what a queue's state decides, until nothing is left to do.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use zae_limiter_schema::bucket::{Attributes, BucketWrite};

use super::queue::BucketQueue;
use super::state::{BucketState, Completion, LATE_DELIVERY, Step};
use crate::config::cache::BucketImage;
use crate::store::WriteOutcome;
use crate::{Error, Result};

const FIRST_OUTAGE_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_OUTAGE_PAUSE: Duration = Duration::from_secs(1);
/// A write without an answer is sent again so many times before its callers are told.
const RESENDS_WHEN_LOST: u32 = 1;

/// Works on a queue until its queue is empty and every write has been accounted for.
pub(crate) fn run(queue: Arc<BucketQueue>) -> impl Future<Output = ()> + Send + 'static {
    // Made before the first poll: a task that a runtime drops unpolled must give up the queue too.
    let mut worker = Worker {
        queue,
        outages: 0,
        idle: false,
    };
    async move {
        while !worker.idle {
            worker.step().await;
        }
    }
}

struct Worker {
    queue: Arc<BucketQueue>,
    /// Calls without a usable answer in a row.
    outages: u32,
    idle: bool,
}

/// A worker whose runtime is shut down leaves the queue to the next one.
impl Drop for Worker {
    fn drop(&mut self) {
        if !self.idle {
            self.queue.abandoned();
        }
    }
}

impl Worker {
    async fn step(&mut self) {
        let (step, completions) = self.queue.next(self.queue.shared().moment());
        self.queue.finish(completions);
        match step {
            Step::Idle => self.idle = true,
            Step::Again => {}
            Step::Read => {
                let result = self.read().await;
                self.after_reading(result).await;
            }
            Step::Later(pause) => {
                if tokio::time::timeout(pause, self.queue.asked()).await.is_err() {
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
        let shared = self.queue.shared();
        let found = shared.store.read_bucket(self.queue.key(), true).await?;
        self.queue.reread(found.as_ref(), shared.moment())
    }

    async fn reload(&self) -> Result<()> {
        let (shared, key) = (self.queue.shared(), self.queue.key());
        let lookup = shared.cache.reload_consistent(&key.entity, &key.resource).await?;
        let config = shared.config(&lookup.configs, None);
        let found = match &lookup.bucket {
            BucketImage::Present(item) => Some(Attributes::from_item(item)),
            BucketImage::Absent | BucketImage::NotRead => None,
        };
        self.queue.reloaded(&config, found.as_ref(), shared.moment())
    }

    async fn after_reading(&mut self, result: Result<()>) {
        match result {
            Ok(()) => self.answered(),
            Err(error) if error.is_unavailable() => {
                self.finish(|state| state.unreadable(&error));
                self.pause_for_outage(&error).await;
            }
            Err(error) => self.finish(|state| state.failed(&error)),
        }
    }

    /// Sends a write until it is answered, or nobody waits for it any more.
    async fn send(&mut self, write: &BucketWrite) {
        let mut lost = 0;
        let started = self.queue.shared().clock.elapsed();
        loop {
            let shared = self.queue.shared().clone();
            let sent = tokio::time::timeout(shared.attempt_timeout(), shared.store.write_bucket(write)).await;
            let outcome = sent.unwrap_or_else(|_| WriteOutcome::Lost("no answer in time".to_owned()));
            let (reason, again) = match outcome {
                WriteOutcome::Done(attributes) => return self.done(&attributes),
                WriteOutcome::Refused(attributes) => return self.refused(attributes.as_ref()),
                WriteOutcome::Failed(error) => return self.finish(|state| state.failed(&error)),
                WriteOutcome::Lost(reason) => {
                    lost += 1;
                    let wanted = self.queue.with_state(|state| state.lost(shared.clock.elapsed()));
                    (reason, wanted && lost <= RESENDS_WHEN_LOST)
                }
                WriteOutcome::Throttled(reason) | WriteOutcome::Conflict(reason) => {
                    #[cfg(test)]
                    if self.counts_conflicts_as_refusals(write) {
                        return;
                    }
                    // After that whoever waited is gone; changes go back to the queue, where they expire.
                    let in_time =
                        shared.clock.elapsed().saturating_sub(started) < shared.settings.time_budget;
                    (
                        reason,
                        in_time && self.queue.with_state(|state| state.wants_resend()),
                    )
                }
            };
            let error = shared.unavailable(&reason);
            if !again {
                self.finish(|state| state.give_up_current(&error));
                return self.pause_for_outage(&error).await;
            }
            self.pause_for_outage(&error).await;
        }
    }

    fn done(&mut self, attributes: &Attributes) {
        self.answered();
        match attributes.decode() {
            Ok(decoded) => {
                let moment = self.queue.shared().moment();
                self.finish(|state| state.done(decoded, moment));
            }
            Err(malformed) => {
                // It happened, and nobody can be told what is left: what was taken goes back once it can be read.
                let now = self.queue.shared().clock.elapsed();
                self.queue.with_state(|state| state.lost(now));
                self.finish(|state| state.failed(&malformed.into()));
            }
        }
    }

    fn refused(&mut self, attributes: Option<&Attributes>) {
        self.answered();
        match attributes.map(Attributes::decode).transpose() {
            Ok(decoded) => {
                let moment = self.queue.shared().moment();
                self.queue
                    .shared()
                    .note_refill(self.queue.image().as_deref(), decoded.as_ref());
                self.finish(|state| state.refused(decoded, moment));
            }
            Err(malformed) => self.finish(|state| state.failed(&malformed.into())),
        }
    }

    fn answered(&mut self) {
        self.outages = 0;
    }

    /// Waits a little longer each time, gives up changes that have waited too long, and stops looking for writes that
    /// can no longer arrive.
    async fn pause_for_outage(&mut self, error: &Error) {
        let shared = self.queue.shared().clone();
        let now = shared.clock.elapsed();
        self.outages += 1;
        if let Some(older_than) = now.checked_sub(shared.settings.settle_budget) {
            self.finish(|state| state.expire(older_than, error));
        }
        if let Some(sent_before) = now.checked_sub(LATE_DELIVERY) {
            self.queue.with_state(|state| state.rest(sent_before));
        }
        let most = FIRST_OUTAGE_PAUSE
            .saturating_mul(1 << self.outages.min(7))
            .min(LONGEST_OUTAGE_PAUSE)
            // Whoever comes at the end of the outage must not spend all its time in the pause.
            .min(shared.settings.time_budget / 4);
        tokio::time::sleep(shared.entropy.up_to(most)).await;
    }

    fn finish(&self, act: impl FnOnce(&mut BucketState) -> Vec<Completion>) {
        let completions = self.queue.with_state(act);
        self.queue.finish(completions);
    }

    #[cfg(test)]
    fn counts_conflicts_as_refusals(&mut self, _: &BucketWrite) -> bool {
        let mutated =
            self.queue.shared().settings.mutation == Some(crate::simulation::Mutation::ConflictsAreRefusals);
        if mutated {
            self.finish(BucketState::refuse_current);
        }
        mutated
    }
}

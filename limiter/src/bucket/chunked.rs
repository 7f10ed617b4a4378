//! How a bucket's queue uses the tokens in hand.

use std::sync::Arc;
use std::time::Duration;

use zae_limiter_schema::bucket::{BucketConfig, Evaluation, Image};

use super::chunk::{Chunks, GiveBack};
use super::deltas::Deltas;
use super::grant::Grant;
use super::queue::{BucketQueue, Locked};
use super::request::{Outcome, Reply, RequestKind};
use super::state::{Moment, QueueState};

impl BucketQueue {
    /// Takes what is asked from the tokens in hand, if they cover it: no write, no waiting. Otherwise the call counts for the
    /// rate all the same, so that more is taken ahead.
    pub(crate) fn spend_now(self: &Arc<Self>, amounts: &Deltas, config: &Arc<BucketConfig>) -> Option<Grant> {
        if !self.takes_chunks {
            return None;
        }
        let now = self.shared().clock.elapsed();
        if let Some(image) = self.spend(amounts, config, now) {
            return Some(Grant::new(self.clone(), config.clone(), amounts.clone(), image));
        }
        let is_low = self.with_chunks(&mut self.lock(), |chunks, _| {
            chunks.note(amounts, now);
            chunks.is_low(now)
        });
        if is_low == Some(true) {
            self.top_up(config);
        }
        None
    }

    /// Takes what is asked from the tokens in hand, if they cover it. Takes more ahead when they run low. Returns the bucket
    /// after the debit that took them.
    pub(super) fn spend(
        self: &Arc<Self>,
        amounts: &Deltas,
        config: &Arc<BucketConfig>,
        now: Duration,
    ) -> Option<Arc<Image>> {
        let mut locked = self.lock();
        let (image, is_low) = self.with_chunks(&mut locked, |chunks, state| {
            let image = chunks.spend(amounts, config, state.image().map(AsRef::as_ref), now)?;
            chunks.note(amounts, now);
            Some((image, chunks.is_low(now)))
        })??;
        let has_worker = locked.has_worker;
        drop(locked);
        if is_low {
            self.top_up(config);
        }
        if !has_worker {
            self.work();
        }
        self.shared().counters().spent_from_chunk();
        Some(image)
    }

    /// Queues a debit for more tokens in hand, if there is enough in the bucket.
    fn top_up(self: &Arc<Self>, config: &Arc<BucketConfig>) {
        let moment = self.shared().moment();
        let queued = self.with_chunks(&mut self.lock(), |chunks, state| {
            // Looked at under the lock: a shutdown gives back what is in hand under the same lock, and waits for what is queued.
            if self.shared().is_closing() {
                return false;
            }
            let Some(image) = state.image().filter(|image| config.matches(image)).cloned() else {
                return false;
            };
            let level = Evaluation::live(&image, config, moment.now);
            let level = |limit: &_| {
                let outlook = level.outlook(limit, &zae_limiter_schema::bucket::Batch::default(), 0);
                outlook.map_or(0, |(available, _)| available)
            };
            let Some(debit) = chunks.debit(level, moment.elapsed) else {
                return false;
            };
            let work = RequestKind::Acquire {
                amounts: debit.amounts,
                config: config.clone(),
                given: false,
                anew: false,
                reply: Reply::Chunk,
            };
            state.push_counting(work, debit.calls, moment.elapsed);
            true
        });
        if queued == Some(true) {
            self.hurry();
            self.work();
        }
    }

    /// What became of a debit for tokens in hand.
    pub(super) fn chunk_answered(
        self: &Arc<Self>,
        calls: u32,
        amounts: Deltas,
        config: Arc<BucketConfig>,
        outcome: Outcome<Arc<Image>>,
    ) {
        let now = self.shared().clock.elapsed();
        let closing = self.shared().is_closing();
        self.change_chunks(|chunks| match outcome {
            Outcome::Granted(image) => {
                let outdated = chunks.arrived(amounts, config, image, now);
                let all = closing.then(|| chunks.give_back()).flatten();
                [outdated, all]
            }
            Outcome::Refused(_) => {
                chunks.failed(calls, now);
                [chunks.short(now), None]
            }
            Outcome::Failed(_) => {
                chunks.failed(calls, now);
                [None, None]
            }
        });
    }

    /// A call was refused: what is in hand goes back.
    pub(super) fn chunk_short(self: &Arc<Self>) {
        let now = self.shared().clock.elapsed();
        self.change_chunks(|chunks| [chunks.short(now), None]);
    }

    /// Books a change on the tokens in hand. False if it must be written.
    pub(super) fn settle(&self, changes: &Deltas, incarnation: &str) -> bool {
        let now = self.shared().clock.elapsed();
        let settled = self.with_chunks(&mut self.lock(), |chunks, _| {
            chunks.settle(changes, incarnation, now)
        });
        settled == Some(true)
    }

    /// The item was throttled.
    pub(super) fn widen_chunks(&self) {
        self.with_chunks(&mut self.lock(), |chunks, _| chunks.widen());
    }

    /// Gives back what is in hand, or reports it if the table is away: it is worth no waiting, since refill replaces it.
    pub(crate) fn give_back_chunk(self: &Arc<Self>) {
        let Some(error) = self.shared().breaker_error() else {
            return self.change_chunks(|chunks| [chunks.give_back(), None]);
        };
        let back = self.with_chunks(&mut self.lock(), |chunks, _| chunks.give_back());
        if let Some(Some(back)) = back {
            self.unwritten(&back.changes, &error.to_string(), false);
        }
    }

    fn change_chunks(self: &Arc<Self>, act: impl FnOnce(&mut Chunks) -> [Option<GiveBack>; 2]) {
        let now = self.shared().clock.elapsed();
        let queued = self.with_chunks(&mut self.lock(), |chunks, state| {
            let back = act(chunks);
            let queued = back.iter().any(Option::is_some);
            back.into_iter().flatten().for_each(|back| push(state, back, now));
            queued
        });
        if queued == Some(true) {
            self.hurry();
            self.work();
        }
    }

    /// Queues what goes back by now.
    pub(super) fn tend(&self, locked: &mut Locked, moment: Moment) {
        self.with_chunks(locked, |chunks, state| {
            if let Some(back) = chunks.tend(state.image().map(AsRef::as_ref), moment.elapsed) {
                push(state, back, moment.elapsed);
            }
        });
    }

    /// Acts on the tokens in hand, where they are allowed, and counts how many there are.
    fn with_chunks<T>(
        &self,
        locked: &mut Locked,
        act: impl FnOnce(&mut Chunks, &mut QueueState) -> T,
    ) -> Option<T> {
        let chunks = locked.chunks.as_mut()?;
        let before = chunks.tokens();
        let result = act(chunks, &mut locked.state);
        let change = chunks.tokens() - before;
        if !breaks!(chunks.mutation, ChunkNotCounted) {
            self.shared().counters().chunk_tokens_changed(change);
        }
        Some(result)
    }
}

fn push(state: &mut QueueState, back: GiveBack, now: Duration) {
    let work = RequestKind::Adjust {
        changes: back.changes,
        incarnation: back.incarnation,
        done: None,
    };
    state.push_counting(work, back.calls, now);
}

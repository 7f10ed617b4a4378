//! Calls and changes as they arrive: decided from memory where that is possible, queued otherwise.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use zae_limiter_schema::LimitName;
use zae_limiter_schema::bucket::{Batch, BucketConfig, Evaluation, Image};

use super::super::grant::Grant;
use super::super::origin::Origin;
use super::chunks::GiveBack;
use super::request::{Outcome, Reply, RequestKind, Taken};
use super::{Amounts, Core, Now};
use crate::status::LimitStatus;

/// What a call takes from one bucket.
#[derive(Debug, Clone)]
pub(crate) struct BucketCall {
    pub(crate) amounts: Amounts,
    pub(crate) config: Arc<BucketConfig>,
    /// The limits came with the call: nothing stored can correct them.
    pub(crate) call_limits: bool,
    /// Other calls were asked to return what it needs: an older image must not refuse it.
    pub(crate) fresh: bool,
}

/// What becomes of a call as it arrives.
#[derive(Debug)]
pub(crate) enum Arrival {
    /// Tokens taken ahead cover it. The bucket after the debit that took them.
    Granted(Arc<Image>),
    /// The last image has too little.
    Refused(Vec<LimitStatus>),
    /// It waits for the next write.
    Queued(oneshot::Receiver<Outcome<Grant>>),
}

impl Core {
    /// A call arrives. `is_quiet` is true if nothing is being done about the bucket, which might make room for it.
    pub(crate) fn call_arrived(&mut self, call: BucketCall, is_quiet: bool, now: Now) -> Arrival {
        if !call.call_limits
            && let Some(image) = self.spend_chunk(&call.amounts, &call.config, now)
        {
            return Arrival::Granted(image);
        }
        if is_quiet
            && !call.fresh
            && let Some(statuses) = self.refuse_now(&call, now)
        {
            if let Some(chunks) = &mut self.chunks {
                let back = chunks.short(now.elapsed);
                self.enqueue_returned(back, now.elapsed);
            }
            return Arrival::Refused(statuses);
        }
        let (reply, outcome) = oneshot::channel();
        let kind = RequestKind::Acquire {
            amounts: call.amounts,
            config: call.config,
            call_limits: call.call_limits,
            fresh: call.fresh,
            reply: Reply::Caller(reply),
        };
        self.enqueue(kind, 1, true, now.elapsed);
        Arrival::Queued(outcome)
    }

    /// A change of a caller arrives. True if tokens taken ahead absorb it, so that nothing must be written.
    pub(crate) fn absorbs(&mut self, changes: &Amounts, incarnation: &str, elapsed: Duration) -> bool {
        let chunks = self.chunks.as_mut();
        chunks.is_some_and(|chunks| chunks.absorb(changes, incarnation, elapsed))
    }

    /// Queues a change of a caller.
    pub(crate) fn change_arrived(
        &mut self,
        changes: Amounts,
        origin: Origin,
        done: oneshot::Sender<crate::Result<()>>,
        elapsed: Duration,
    ) {
        let kind = RequestKind::Adjust {
            changes,
            origin,
            done: Some(done),
        };
        self.enqueue(kind, 0, true, elapsed);
    }

    /// Takes a call from the tokens taken ahead, if they cover it. More are taken ahead when they run low.
    pub(crate) fn spend_chunk(
        &mut self,
        amounts: &Amounts,
        config: &Arc<BucketConfig>,
        now: Now,
    ) -> Option<Arc<Image>> {
        let stored = |(limit, _): &(LimitName, i128)| config.limits().get(limit);
        if !amounts
            .iter()
            .filter_map(stored)
            .all(|limit| limit.rate().is_some())
        {
            // Only tokens that refill are taken ahead.
            return None;
        }
        let bucket = self.image().cloned();
        let chunks = self.chunks.as_mut()?;
        let spent = chunks.spend(amounts, config, bucket.as_deref(), now.elapsed);
        chunks.note(amounts, now.elapsed);
        if chunks.is_low(now.elapsed) {
            self.take_ahead(config, now);
        }
        spent
    }

    /// Queues a debit for more tokens ahead, if there is enough in the bucket.
    fn take_ahead(&mut self, config: &Arc<BucketConfig>, now: Now) {
        let image = self.image().filter(|image| config.matches(image)).cloned();
        let (Some(image), Some(chunks), false) = (image, &mut self.chunks, self.closing) else {
            return;
        };
        let evaluation = Evaluation::live(&image, config, now.calendar);
        let level = |limit: &_| {
            let outlook = evaluation.outlook(limit, &Batch::default(), 0);
            outlook.map_or(0, |outlook| outlook.left)
        };
        let Some(debit) = chunks.debit(level, now.elapsed) else {
            return;
        };
        let kind = RequestKind::Acquire {
            amounts: debit.amounts,
            config: config.clone(),
            call_limits: false,
            fresh: false,
            reply: Reply::Chunk,
        };
        self.enqueue(kind, debit.calls, false, now.elapsed);
    }

    /// The outcome of a debit for tokens ahead.
    pub(crate) fn chunk_decided(
        &mut self,
        calls: u32,
        amounts: Amounts,
        config: Arc<BucketConfig>,
        outcome: Outcome<Taken>,
        elapsed: Duration,
    ) {
        let Some(chunks) = &mut self.chunks else { return };
        let back = match outcome {
            Outcome::Granted(taken) => {
                let outdated = chunks.arrived(amounts, config, taken.image, elapsed);
                let all = if self.closing { chunks.give_back() } else { None };
                [outdated, all]
            }
            Outcome::Refused(_) => {
                chunks.failed(calls, elapsed);
                [chunks.short(elapsed), None]
            }
            Outcome::Failed(_) => {
                chunks.failed(calls, elapsed);
                [None, None]
            }
        };
        for back in back {
            self.enqueue_returned(back, elapsed);
        }
    }

    /// A call was refused: tokens taken ahead go back.
    pub(crate) fn return_chunk_after_refusal(&mut self, elapsed: Duration) {
        let back = self.chunks.as_mut().and_then(|chunks| chunks.short(elapsed));
        self.enqueue_returned(back, elapsed);
    }

    /// The limiter is shutting down: tokens taken ahead go back. If nothing can be written, they are returned to be
    /// reported instead: they are not worth waiting for, since refill replaces them.
    pub(crate) fn close(&mut self, can_write: bool, elapsed: Duration) -> Option<Amounts> {
        self.closing = true;
        let back = self.chunks.as_mut().and_then(|chunks| chunks.give_back())?;
        if !can_write {
            return Some(back.changes);
        }
        self.enqueue_returned(Some(back), elapsed);
        None
    }

    /// Tokens taken ahead that nobody spends any more, or that the bucket has outdated, go back.
    pub(super) fn return_unused_chunk(&mut self, elapsed: Duration) {
        let bucket = self.image().cloned();
        let chunks = self.chunks.as_mut();
        let back = chunks.and_then(|chunks| chunks.unused(bucket.as_deref(), elapsed));
        self.enqueue_returned(back, elapsed);
    }

    fn enqueue_returned(&mut self, back: Option<GiveBack>, elapsed: Duration) {
        if let Some(back) = back {
            let kind = RequestKind::Adjust {
                changes: back.changes,
                origin: Origin::of_bucket(back.incarnation),
                done: None,
            };
            self.enqueue(kind, back.calls, false, elapsed);
        }
    }

    /// The tokens taken ahead, in millitokens.
    pub(crate) fn chunk_tokens(&self) -> i128 {
        self.chunks.as_ref().map_or(0, |chunks| chunks.tokens())
    }
}

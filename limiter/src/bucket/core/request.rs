//! One call that waits for its bucket's next write.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use zae_limiter_schema::bucket::{Batch, BucketConfig, Demand, Evaluation, Image};
use zae_limiter_schema::{LimitName, Timestamp};

use super::super::amounts::{Amounts, amount_of};
use super::super::grant::Grant;
use super::super::origin::{Holdings, Origin};
use super::super::permits::PermitLot;
use crate::Error;
use crate::status::LimitStatus;

/// What became of an acquire on one bucket.
///
/// `T` is what a grant comes with: the image of the bucket afterwards, and for the caller the tokens themselves.
#[derive(Debug)]
pub(crate) enum Outcome<T> {
    /// The tokens are taken.
    Granted(T),
    /// There is too little. Nothing was taken.
    Refused(Vec<LimitStatus>),
    /// Nothing is known to be taken, for another reason.
    Failed(Error),
}

/// What a write took for a call.
#[derive(Debug)]
pub(crate) struct Taken {
    /// The bucket afterwards.
    pub(crate) image: Arc<Image>,
    pub(crate) holdings: Holdings,
}

/// What a request does to the bucket.
#[derive(Debug)]
pub(crate) enum RequestKind {
    /// Takes tokens if they are there, all or none.
    Acquire {
        amounts: Amounts,
        config: Arc<BucketConfig>,
        /// The limits came with the call: nothing stored can correct them.
        call_limits: bool,
        /// Other calls were asked to return what it needs: an older image must not refuse it.
        fresh: bool,
        reply: Reply,
    },
    /// Writes what an earlier grant used more or less, or returns it.
    Adjust {
        changes: Amounts,
        /// What the grant was taken from.
        origin: Origin,
        done: Option<oneshot::Sender<Result<(), Error>>>,
    },
}

/// Who gets the outcome of an acquire.
#[derive(Debug)]
pub(crate) enum Reply {
    /// The caller, if it still waits.
    Caller(oneshot::Sender<Outcome<Grant>>),
    /// The tokens taken ahead: nobody waits.
    Chunk,
}

/// A call in the queue.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) id: u64,
    pub(crate) kind: RequestKind,
    /// How many acquires it counts as: one call, or those that spent tokens taken ahead.
    pub(crate) calls: u32,
    /// A caller made it. Anything else that is returned, refill replaces.
    pub(crate) by_caller: bool,
    /// When it came, on the clock's time scale.
    pub(crate) since: Duration,
    /// It has waited once for the outcome of earlier calls that it did not fit beside.
    pub(crate) passed_over: bool,
    /// How many writes that carried it were refused because others had changed the bucket.
    pub(crate) conflicts: u32,
    /// A write that carried it had no response, and none can come any more: it may have happened.
    pub(crate) maybe_written: bool,
}

impl Request {
    /// True if its caller still waits, or never did and it must be done anyway.
    pub(crate) fn is_wanted(&self) -> bool {
        match &self.kind {
            RequestKind::Acquire {
                reply: Reply::Caller(caller),
                ..
            } => !caller.is_closed(),
            RequestKind::Acquire { .. } | RequestKind::Adjust { .. } => true,
        }
    }

    /// True if somebody waits for its tokens.
    pub(crate) fn has_caller(&self) -> bool {
        let is_chunk = matches!(
            self.kind,
            RequestKind::Acquire {
                reply: Reply::Chunk,
                ..
            }
        );
        self.is_acquire() && !is_chunk && self.is_wanted()
    }

    /// True if only an image that is newer than the call may refuse it.
    pub(crate) fn needs_fresh_image(&self) -> bool {
        matches!(self.kind, RequestKind::Acquire { fresh: true, .. })
    }

    /// The bucket was just seen.
    pub(crate) fn fresh_image_seen(&mut self) {
        if let RequestKind::Acquire { fresh, .. } = &mut self.kind {
            *fresh = false;
        }
    }

    pub(crate) fn is_acquire(&self) -> bool {
        matches!(self.kind, RequestKind::Acquire { .. })
    }

    /// True if it takes nothing: others can only gain by it.
    pub(crate) fn only_returns(&self) -> bool {
        match &self.kind {
            RequestKind::Acquire { .. } => false,
            RequestKind::Adjust { changes, .. } => changes.iter().all(|(_, change)| *change <= 0),
        }
    }

    /// Adds what it takes or returns to a batch. Credits for an earlier incarnation of the bucket only correct the count.
    pub(crate) fn add_to(
        &self,
        batch: &mut Batch,
        evaluation: &Evaluation<'_>,
        bucket: &str,
        now: Timestamp,
    ) {
        batch.acquires = batch.acquires.saturating_add(self.calls);
        match &self.kind {
            RequestKind::Acquire { amounts, .. } => {
                for (limit, amount) in amounts {
                    batch.add(limit, Demand::debit(*amount));
                }
            }
            RequestKind::Adjust { changes, origin, .. } => {
                let same_bucket = *origin.incarnation == *bucket;
                for (limit, change) in changes {
                    evaluation.book(batch, limit, *change, origin.held(limit, now), same_bucket);
                }
            }
        }
    }

    /// How many permits of a lot it gives back.
    pub(crate) fn releases_of(&self, lot: &Arc<PermitLot>) -> i128 {
        let RequestKind::Adjust { changes, origin, .. } = &self.kind else {
            return 0;
        };
        let own = origin.lots().filter(|(_, own)| Arc::ptr_eq(own, lot));
        own.map(|(limit, _)| -amount_of(changes, limit)).sum()
    }

    /// It is over: the permits that it gives back are no longer held, whatever became of it. True if there are any.
    pub(crate) fn ends_holdings(&self) -> bool {
        let RequestKind::Adjust { changes, origin, .. } = &self.kind else {
            return false;
        };
        for (limit, lot) in origin.lots() {
            lot.leave(-amount_of(changes, limit));
        }
        origin.lots().next().is_some()
    }

    /// Who waits for a change to be written, if anybody still does.
    pub(crate) fn take_done(&mut self) -> Option<oneshot::Sender<Result<(), Error>>> {
        match &mut self.kind {
            RequestKind::Acquire { .. } => None,
            RequestKind::Adjust { done, .. } => done.take(),
        }
    }

    /// What must be returned if it turns out that its debit happened though nobody holds it.
    pub(crate) fn debit(&self) -> Amounts {
        match &self.kind {
            RequestKind::Acquire { amounts, .. } => amounts
                .iter()
                .map(|(limit, amount)| (limit.clone(), -amount))
                .collect(),
            RequestKind::Adjust { .. } => Amounts::new(),
        }
    }
}

impl Request {
    /// The changes that it writes; none if it is an acquire.
    pub(crate) fn changes(&self) -> &[(LimitName, i128)] {
        match &self.kind {
            RequestKind::Adjust { changes, .. } => changes,
            RequestKind::Acquire { .. } => &[],
        }
    }
}

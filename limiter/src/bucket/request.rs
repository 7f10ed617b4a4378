//! One call that waits for its bucket's next write.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use zae_limiter_schema::bucket::{Batch, BucketConfig, Demand};

use super::deltas::Deltas;
use super::grant::Grant;
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

/// What is asked of the bucket.
#[derive(Debug)]
pub(crate) enum RequestKind {
    /// Takes tokens if they are there, all or none.
    Acquire {
        amounts: Deltas,
        config: Arc<BucketConfig>,
        /// The limits came with the call: nothing stored can correct them.
        given: bool,
        /// Others were asked to give back what it needs: an image from before may not refuse it.
        anew: bool,
        reply: Reply,
    },
    /// Books what an earlier grant used more or less, or gives it back.
    Adjust {
        changes: Deltas,
        /// The incarnation of the bucket that the grant was taken from.
        incarnation: Arc<str>,
        done: Option<oneshot::Sender<Result<(), Error>>>,
    },
}

/// Who gets the answer to an acquire.
#[derive(Debug)]
pub(crate) enum Reply {
    /// The caller, if it still waits.
    Caller(oneshot::Sender<Outcome<Grant>>),
    /// The tokens in hand: nobody waits.
    Chunk,
}

/// A call in the queue.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) id: u64,
    pub(crate) work: RequestKind,
    /// How many acquires it counts as: one call, or those that tokens in hand were spent on.
    pub(crate) calls: u32,
    /// A caller has asked for it. Whatever else is given back, refill replaces.
    pub(crate) by_caller: bool,
    /// When it came, on the clock's time scale.
    pub(crate) since: Duration,
    /// It has waited once for the answer of earlier calls that it did not fit beside.
    pub(crate) passed_over: bool,
    /// A write that carried it had no answer, and none can come any more: it may have happened.
    pub(crate) in_doubt: bool,
}

impl Request {
    /// True if its caller still waits, or never did and it must be done anyway.
    pub(crate) fn is_wanted(&self) -> bool {
        match &self.work {
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
            self.work,
            RequestKind::Acquire {
                reply: Reply::Chunk,
                ..
            }
        );
        self.is_acquire() && !is_chunk && self.is_wanted()
    }

    /// True if the bucket must be looked at before it is refused.
    pub(crate) fn needs_a_look(&self) -> bool {
        matches!(self.work, RequestKind::Acquire { anew: true, .. })
    }

    /// The bucket was just seen.
    pub(crate) fn looked(&mut self) {
        if let RequestKind::Acquire { anew, .. } = &mut self.work {
            *anew = false;
        }
    }

    pub(crate) fn is_acquire(&self) -> bool {
        matches!(self.work, RequestKind::Acquire { .. })
    }

    /// True if it takes nothing: others can only gain by it.
    pub(crate) fn only_gives_back(&self) -> bool {
        match &self.work {
            RequestKind::Acquire { .. } => false,
            RequestKind::Adjust { changes, .. } => changes.iter().all(|(_, change)| *change <= 0),
        }
    }

    /// Adds what it asks to a batch. Credits for an earlier incarnation of the bucket only correct the count.
    pub(crate) fn add_to(&self, batch: &mut Batch, bucket: &str) {
        batch.acquires = batch.acquires.saturating_add(self.calls);
        match &self.work {
            RequestKind::Acquire { amounts, .. } => {
                for (limit, amount) in amounts {
                    batch.add(limit, Demand::debit(*amount));
                }
            }
            RequestKind::Adjust {
                changes, incarnation, ..
            } => {
                for (limit, change) in changes {
                    let demand = match *change {
                        taken @ 0.. => Demand {
                            adjust: taken,
                            ..Demand::default()
                        },
                        back if **incarnation == *bucket => Demand::credit(-back),
                        back => Demand {
                            recount: back,
                            ..Demand::default()
                        },
                    };
                    batch.add(limit, demand);
                }
            }
        }
    }

    /// Who waits for a change to be booked, if anybody still does.
    pub(crate) fn take_done(&mut self) -> Option<oneshot::Sender<Result<(), Error>>> {
        match &mut self.work {
            RequestKind::Acquire { .. } => None,
            RequestKind::Adjust { done, .. } => done.take(),
        }
    }

    /// What must be given back if it turns out that its debit happened though nobody holds it.
    pub(crate) fn debit(&self) -> Deltas {
        match &self.work {
            RequestKind::Acquire { amounts, .. } => amounts
                .iter()
                .map(|(limit, amount)| (limit.clone(), -amount))
                .collect(),
            RequestKind::Adjust { .. } => Deltas::new(),
        }
    }
}

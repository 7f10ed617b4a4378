//! Telling callers what became of their calls.

use std::sync::Arc;

use zae_limiter_schema::LimitName;
use zae_limiter_schema::bucket::Image;

use super::super::deltas::Deltas;
use super::super::grant::Grant;
use super::super::request::{Outcome, Reply, Request, RequestKind};
use super::super::state::Completion;
use super::BucketQueue;
use crate::{Error, Result};

impl BucketQueue {
    /// Tells callers what became of their calls. Not under the lock: a grant that nobody takes goes back into the
    /// queue.
    pub(crate) fn finish(self: &Arc<Self>, completions: Vec<Completion>) {
        for completion in completions {
            match completion {
                Completion::Answer(request, reply) => self.answer(request, reply),
                Completion::Booked(request) => {
                    let lost = self.without_a_limit(changes(&request));
                    self.unwritten(&lost, "the bucket no longer has this limit", false);
                    self.lock().booked |= !changes(&request).is_empty();
                    booked(request, Ok(()));
                }
                Completion::Postponed(done, error) => drop(done.send(Err(error))),
                Completion::Unwritten(request, error) => {
                    self.unwritten(changes(&request), &error.to_string(), request.in_doubt);
                    booked(request, Err(error));
                }
                Completion::Gone(request) => {
                    self.unwritten(changes(&request), "the bucket no longer exists", request.in_doubt);
                    booked(request, Ok(()));
                }
            }
        }
    }

    pub(in crate::bucket) fn unwritten(&self, changes: &[(LimitName, i128)], reason: &str, in_doubt: bool) {
        self.shared.unwritten(&self.key, changes, reason, in_doubt);
    }

    /// Of changes that were just booked those whose limit is not on the bucket, so that nothing was booked on it.
    fn without_a_limit(&self, changes: &[(LimitName, i128)]) -> Deltas {
        let Some(image) = self.image() else {
            return Deltas::new();
        };
        let lost = changes
            .iter()
            .filter(|(limit, _)| !image.limits.contains_key(limit));
        lost.cloned().collect()
    }

    fn answer(self: &Arc<Self>, request: Request, reply: Outcome<Arc<Image>>) {
        let RequestKind::Acquire {
            amounts,
            config,
            reply: to,
            ..
        } = request.work
        else {
            return;
        };
        let caller = match to {
            Reply::Caller(caller) => caller,
            Reply::Chunk => return self.chunk_answered(request.calls, amounts, config, reply),
        };
        if matches!(reply, Outcome::Refused(_)) {
            self.chunk_short();
        }
        let answer = match reply {
            Outcome::Granted(image) => Outcome::Granted(Grant::new(self.clone(), config, amounts, image)),
            Outcome::Refused(statuses) => Outcome::Refused(statuses),
            Outcome::Failed(error) => Outcome::Failed(error),
        };
        // A caller that has gone meanwhile drops a grant here, which gives it back.
        drop(caller.send(answer));
    }
}

fn changes(request: &Request) -> &[(LimitName, i128)] {
    match &request.work {
        RequestKind::Adjust { changes, .. } => changes,
        RequestKind::Acquire { .. } => &[],
    }
}

fn booked(request: Request, result: Result<(), Error>) {
    if let RequestKind::Adjust { done: Some(done), .. } = request.work {
        // Nobody needs to wait for it.
        drop(done.send(result));
    }
}

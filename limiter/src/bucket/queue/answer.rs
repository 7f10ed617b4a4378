//! The answer to an acquire, which is still to come.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::super::grant::Grant;
use super::super::request::Outcome;
use super::BucketQueue;

/// A caller takes up the work of runtimes that have ended at most this many times.
const MAX_TAKEOVERS: usize = 3;

/// The answer to an acquire, which is still to come.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(super) queue: Arc<BucketQueue>,
    pub(super) outcome: oneshot::Receiver<Outcome<Grant>>,
}

impl Answer {
    /// Waits for it. If the runtime of whoever works on the queue ends meanwhile, the work goes on on the caller's.
    pub(crate) async fn outcome(mut self) -> Option<Outcome<Grant>> {
        for _ in 0..MAX_TAKEOVERS {
            let abandoned = self.queue.abandoned.notified();
            tokio::pin!(abandoned);
            abandoned.as_mut().enable();
            if self.queue.has_waiting() {
                self.queue.work();
            }
            tokio::select! {
                biased;
                outcome = &mut self.outcome => return outcome.ok(),
                () = abandoned => {}
            }
        }
        self.outcome.await.ok()
    }
}

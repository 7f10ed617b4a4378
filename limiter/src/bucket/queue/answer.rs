//! The answer to an acquire, which is still to come.

use std::future::{Future as _, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::sync::oneshot;

use super::super::grant::Grant;
use super::super::inline_worker::WorkerId;
use super::super::request::Outcome;
use super::BucketQueue;

/// A caller takes up the work of runtimes that have ended at most this many times.
const MAX_TAKEOVERS: usize = 3;

/// The answer to an acquire, which is still to come. Whoever waits for it may have to drive the bucket's worker meanwhile.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(super) queue: Arc<BucketQueue>,
    pub(super) outcome: oneshot::Receiver<Outcome<Grant>>,
    /// The worker to drive.
    pub(super) drives: Option<WorkerId>,
}

/// Nobody drives the worker any more: it goes on as a task.
impl Drop for Answer {
    fn drop(&mut self) {
        if self.drives.is_some() {
            self.queue.detach();
        }
    }
}

impl Answer {
    /// Waits for it. If the runtime of whoever works on the queue ends meanwhile, the work goes on on the caller's.
    pub(crate) async fn outcome(mut self) -> Option<Outcome<Grant>> {
        for _ in 0..MAX_TAKEOVERS {
            let queue = self.queue.clone();
            let mut abandoned = pin!(queue.abandoned.notified());
            abandoned.as_mut().enable();
            if queue.has_waiting() {
                queue.work();
            }
            let answered = poll_fn(|context| match self.poll_outcome(context) {
                Poll::Ready(outcome) => Poll::Ready(Some(outcome)),
                Poll::Pending => abandoned.as_mut().poll(context).map(|()| None),
            });
            if let Some(outcome) = answered.await {
                return outcome;
            }
        }
        poll_fn(|context| self.poll_outcome(context)).await
    }

    fn poll_outcome(&mut self, context: &mut Context<'_>) -> Poll<Option<Outcome<Grant>>> {
        if let Some(worker_id) = self.drives
            && self.queue.poll_worker(worker_id, context).is_ready()
        {
            self.drives = None;
        }
        Pin::new(&mut self.outcome).poll(context).map(Result::ok)
    }
}

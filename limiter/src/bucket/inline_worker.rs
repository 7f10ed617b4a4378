//! The worker that a caller drives on its own task: a bucket that nobody else uses needs no task of its own. As soon as somebody
//! else needs the bucket, or the caller goes away, the worker becomes a task, so that nobody depends on whether that caller is
//! polled.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use tokio::runtime::Handle;

/// The work on a bucket until nothing is left to do.
pub(super) struct Work {
    future: Pin<Box<dyn Future<Output = ()> + Send>>,
    /// The caller's runtime, to which the timers and connections of the work belong.
    runtime: Handle,
}

impl Work {
    /// The work of a caller on this runtime. Tasks that are ready to run go first: what they ask of the same bucket goes into
    /// the same write.
    pub(super) fn after_others(work: impl Future<Output = ()> + Send + 'static, runtime: Handle) -> Self {
        let mut others_ran = false;
        let others = poll_fn(move |context| {
            if std::mem::replace(&mut others_ran, true) {
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            Poll::Pending
        });
        let future = Box::pin(async move {
            others.await;
            work.await;
        });
        Self { future, runtime }
    }

    /// Goes on as a task. A runtime that has ended drops it, which leaves the bucket to the next worker.
    pub(super) fn into_task(self) {
        drop(self.runtime.spawn(self.future));
    }
}

/// Which worker a caller drives: a later one is not its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WorkerId(u64);

/// The worker that a caller drives, if one does.
#[derive(Default)]
pub(super) struct InlineWorker(Mutex<Held>);

#[derive(Default)]
struct Held {
    state: WorkerState,
    last: u64,
}

#[derive(Default)]
enum WorkerState {
    /// There is none: nobody works on the bucket, or a task does.
    #[default]
    None,
    /// Between two polls of its caller.
    Parked(WorkerId, Work),
    /// Its caller polls it at this moment.
    Polled(WorkerId),
    /// The same, and it is to become a task afterwards.
    Wanted(WorkerId),
}

impl InlineWorker {
    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leaves a new worker to its caller. There is one at a time: the one before has nothing left to do.
    pub(super) fn park(&self, work: Work) -> WorkerId {
        let mut held = self.held();
        held.last += 1;
        let worker_id = WorkerId(held.last);
        held.state = WorkerState::Parked(worker_id, work);
        worker_id
    }

    /// Takes the worker away from whoever drives it. One that is polled at this moment goes to the `spawn` of its caller.
    pub(super) fn take(&self) -> Option<Work> {
        let mut held = self.held();
        match std::mem::take(&mut held.state) {
            WorkerState::None => None,
            WorkerState::Parked(_, work) => Some(work),
            WorkerState::Polled(worker_id) | WorkerState::Wanted(worker_id) => {
                held.state = WorkerState::Wanted(worker_id);
                None
            }
        }
    }

    /// Polls the worker for its caller. Ready once there is nothing left to drive of this worker.
    pub(super) fn poll(
        &self,
        worker_id: WorkerId,
        context: &mut Context<'_>,
        spawn: impl FnOnce(Work),
    ) -> Poll<()> {
        let Some(mut work) = self.held().start(worker_id) else {
            return Poll::Ready(());
        };
        let polled = work.future.as_mut().poll(context);
        let mut held = self.held();
        let is_wanted = held.state.is_wanted(worker_id);
        match polled {
            Poll::Ready(()) => {
                held.end(worker_id);
                Poll::Ready(())
            }
            Poll::Pending if is_wanted => {
                held.end(worker_id);
                drop(held);
                spawn(work);
                Poll::Ready(())
            }
            Poll::Pending => {
                held.state = WorkerState::Parked(worker_id, work);
                Poll::Pending
            }
        }
    }
}

impl Held {
    /// The work of this worker, to be polled.
    fn start(&mut self, worker_id: WorkerId) -> Option<Work> {
        match std::mem::take(&mut self.state) {
            WorkerState::Parked(own, work) if own == worker_id => {
                self.state = WorkerState::Polled(worker_id);
                Some(work)
            }
            other => {
                self.state = other;
                None
            }
        }
    }

    /// The caller of this worker drives nothing any more. The next caller may have parked its own worker meanwhile.
    fn end(&mut self, worker_id: WorkerId) {
        if matches!(self.state, WorkerState::Polled(own) | WorkerState::Wanted(own) if own == worker_id) {
            self.state = WorkerState::None;
        }
    }
}

impl WorkerState {
    fn is_wanted(&self, worker_id: WorkerId) -> bool {
        matches!(self, Self::Wanted(own) if *own == worker_id)
    }
}

impl fmt::Debug for InlineWorker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InlineWorker")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::panic, clippy::unwrap_used)]

    use std::task::Waker;

    use super::*;

    fn work(future: impl Future<Output = ()> + Send + 'static) -> Work {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        Work {
            future: Box::pin(future),
            runtime: runtime.handle().clone(),
        }
    }

    fn pending() -> Work {
        work(std::future::pending())
    }

    fn poll(worker: &InlineWorker, worker_id: WorkerId) -> Poll<()> {
        let mut context = Context::from_waker(Waker::noop());
        worker.poll(worker_id, &mut context, |_| panic!("nobody else wants it"))
    }

    #[test]
    fn its_caller_drives_it_until_somebody_takes_it() {
        let worker = InlineWorker::default();
        let worker_id = worker.park(pending());
        assert!(poll(&worker, worker_id).is_pending());
        assert!(worker.take().is_some());
        assert!(worker.take().is_none());
        assert!(poll(&worker, worker_id).is_ready());
    }

    #[test]
    fn one_that_is_taken_while_it_is_polled_becomes_a_task() {
        let worker = std::sync::Arc::new(InlineWorker::default());
        let taken = worker.clone();
        let worker_id = worker.park(work(poll_fn(move |_| {
            assert!(taken.take().is_none(), "it is polled");
            Poll::Pending
        })));
        let mut spawned = false;
        let mut context = Context::from_waker(Waker::noop());
        let polled = worker.poll(worker_id, &mut context, |_| spawned = true);
        assert!(polled.is_ready());
        assert!(spawned);
        assert!(worker.take().is_none());
    }

    #[test]
    fn the_next_caller_may_park_its_worker_while_the_last_poll_returns() {
        let worker = std::sync::Arc::new(InlineWorker::default());
        let parked = worker.clone();
        let worker_id = worker.park(work(poll_fn(move |_| {
            parked.park(pending());
            Poll::Ready(())
        })));
        assert!(poll(&worker, worker_id).is_ready());
        assert!(worker.take().is_some(), "the next worker is still there");
    }
}

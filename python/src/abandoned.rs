//! Leases that nobody takes: the task that awaited one was cancelled before it got it.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use tokio::sync::{Notify, watch};

use crate::error::Failure;
use crate::lease::{Shared, WeakShared};

/// Counts the abandoned acquires of a limiter whose tokens are not on their way back yet.
#[derive(Debug, Default)]
pub(crate) struct Abandoned {
    count: watch::Sender<usize>,
}

impl Abandoned {
    /// Waits until there are none.
    pub(crate) async fn none(&self) {
        // It cannot end without a value: this one holds the sender.
        drop(self.count.subscribe().wait_for(|count| *count == 0).await);
    }
}

/// An acquire, as the caller and the work see it.
#[derive(Debug)]
pub(crate) struct Acquiring {
    abandoned: Arc<Abandoned>,
    state: Mutex<State>,
    given_up: Notify,
}

#[derive(Debug)]
enum State {
    /// The work goes on, or its lease is on the way to the caller.
    Underway,
    /// So it is, and the caller has gone. Counted in `abandoned`.
    GivenUp,
    /// The caller can have it.
    HandedOver(WeakShared),
    /// It failed, or the lease was dropped.
    Ended,
}

impl Acquiring {
    fn new(abandoned: Arc<Abandoned>) -> Arc<Self> {
        Arc::new(Self {
            abandoned,
            state: Mutex::new(State::Underway),
            given_up: Notify::new(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The caller does not wait any more: what was taken goes back, or will.
    pub(crate) fn give_up(&self) {
        let mut state = self.state();
        match &*state {
            State::Underway => {
                self.abandoned.count.send_modify(|count| *count += 1);
                *state = State::GivenUp;
                self.given_up.notify_one();
            }
            State::HandedOver(lease) => {
                let lease = lease.upgrade();
                *state = State::Ended;
                drop(state);
                if let Some(lease) = lease {
                    take_back(&lease);
                }
            }
            State::GivenUp | State::Ended => {}
        }
    }
}

/// The side of the work. Dropped after the lease.
#[derive(Debug)]
pub(crate) struct Work(Arc<Acquiring>);

impl Work {
    pub(crate) fn new(abandoned: Arc<Abandoned>) -> (Self, Arc<Acquiring>) {
        let acquiring = Acquiring::new(abandoned);
        (Self(acquiring.clone()), acquiring)
    }

    /// Carries out the work and drops it, at once if the caller gives it up.
    pub(crate) async fn run<T>(&self, work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
        let (mut given_up, mut work) = (pin!(self.0.given_up.notified()), pin!(work));
        poll_fn(|context| match given_up.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(Failure::invalid("acquire", "", "it was cancelled"))),
            Poll::Pending => work.as_mut().poll(context),
        })
        .await
    }

    /// Hands the lease over, or takes its tokens back if nobody waits for it.
    pub(crate) fn hand_over(self, lease: &Shared) {
        let mut state = self.0.state();
        if matches!(*state, State::Underway) {
            *state = State::HandedOver(Arc::downgrade(lease));
        } else {
            drop(state);
            take_back(lease);
        }
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        let mut state = self.0.state();
        match *state {
            State::HandedOver(_) => return,
            State::GivenUp => self.0.abandoned.count.send_modify(|count| *count -= 1),
            State::Underway | State::Ended => {}
        }
        *state = State::Ended;
    }
}

/// Drops the lease, which queues its refund.
fn take_back(lease: &Shared) {
    // Only the caller could hold the lock, and it never got the lease.
    if let Ok(mut lease) = lease.try_lock() {
        drop(lease.take());
    }
}

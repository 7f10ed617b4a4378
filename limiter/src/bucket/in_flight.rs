//! Counting what is under way, and waiting for its end.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

/// How many of something are under way.
#[derive(Debug, Default)]
pub(crate) struct InFlight {
    count: AtomicUsize,
    /// Those who wait for the end of all.
    waiting: AtomicUsize,
    none_left: Notify,
}

/// One that is under way, until this is dropped: also by a panic, or with the runtime that it ran on.
#[derive(Debug)]
pub(crate) struct InFlightGuard<R: Deref<Target = InFlight> = Arc<InFlight>>(R);

/// One who waits, until this is dropped.
struct Waiting<'a>(&'a InFlight);

impl InFlight {
    pub(crate) fn enter(self: &Arc<Self>) -> InFlightGuard {
        self.count.fetch_add(1, Ordering::SeqCst);
        InFlightGuard(self.clone())
    }

    /// The same for something that ends in the scope where it began.
    pub(crate) fn enter_briefly(&self) -> InFlightGuard<&Self> {
        self.count.fetch_add(1, Ordering::SeqCst);
        InFlightGuard(self)
    }

    /// Waits until none is under way.
    pub(crate) async fn none(&self) {
        // Before the count is looked at: the last one to leave sees that somebody waits, or is not counted any more.
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let _waiting = Waiting(self);
        loop {
            let none_left = self.none_left.notified();
            if self.count.load(Ordering::SeqCst) == 0 {
                return;
            }
            none_left.await;
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

impl<R: Deref<Target = InFlight>> Drop for InFlightGuard<R> {
    fn drop(&mut self) {
        if self.0.count.fetch_sub(1, Ordering::SeqCst) == 1 && self.0.waiting.load(Ordering::SeqCst) > 0 {
            self.0.none_left.notify_waiters();
        }
    }
}

//! The future of an acquire.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tracing::Instrument as _;

use super::call::Acquire;
use super::lease::Lease;
use crate::Result;

/// The future of an [`Acquire`]: the [`Lease`], or why there is none. Nothing happens before it is polled. A call that memory
/// decides is ready with its first poll.
#[must_use = "an acquire does nothing until it is awaited"]
pub struct AcquireFuture(State);

#[allow(
    clippy::large_enum_variant,
    reason = "a box would be what it is there to save"
)]
enum State {
    /// Not polled yet.
    New(Acquire),
    Running(Pin<Box<dyn Future<Output = Result<Lease>> + Send>>),
    /// Ready, and not to be polled again.
    Done,
}

impl AcquireFuture {
    pub(super) fn new(acquire: Acquire) -> Self {
        Self(State::New(acquire))
    }
}

impl Future for AcquireFuture {
    type Output = Result<Lease>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut running = match std::mem::replace(&mut self.0, State::Done) {
            State::New(acquire) => {
                let (entity, resource) = acquire.target.names();
                let span = tracing::debug_span!("acquire", entity, resource);
                if let Some(result) = span.in_scope(|| acquire.at_once()) {
                    return Poll::Ready(result);
                }
                Box::pin(acquire.acquire().instrument(span))
            }
            State::Running(running) => running,
            State::Done => return Poll::Pending,
        };
        let polled = running.as_mut().poll(context);
        if polled.is_pending() {
            self.0 = State::Running(running);
        }
        polled
    }
}

impl fmt::Debug for AcquireFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AcquireFuture").finish_non_exhaustive()
    }
}

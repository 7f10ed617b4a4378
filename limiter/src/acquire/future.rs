//! The future of an acquire.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tracing::level_filters::LevelFilter;
use tracing::{Instrument as _, Span};

use super::call::Acquire;
use super::lease::Lease;
use crate::Result;

/// The future of an [`Acquire`]: the [`Lease`], or why there is none. Nothing happens before it is polled. A call that memory
/// decides is ready with its first poll.
///
/// It is fused: polled again after it was ready, it stays pending. A loop with `select!` may keep a call that has ended.
#[must_use = "an acquire does nothing until it is awaited"]
pub struct AcquireFuture(State);

#[allow(
    clippy::large_enum_variant,
    reason = "a box is the allocation that this state avoids"
)]
enum State {
    /// Not polled yet.
    New(Acquire),
    Running(Pin<Box<dyn Future<Output = Result<Lease>> + Send>>),
    /// It was ready.
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
        if let State::New(acquire) = &mut self.0 {
            // Usually nobody subscribes; then no span is created.
            let span = if LevelFilter::current() >= LevelFilter::DEBUG {
                let (entity, resource) = acquire.target.names();
                tracing::debug_span!("acquire", entity, resource)
            } else {
                Span::none()
            };
            let grant = match span.in_scope(|| acquire.at_once()) {
                // The call is dropped in its place: moving it would be much of what a refusal costs.
                Some(Err(error)) => {
                    self.0 = State::Done;
                    return Poll::Ready(Err(error));
                }
                Some(Ok(grant)) => Some(grant),
                None => None,
            };
            if let State::New(acquire) = std::mem::replace(&mut self.0, State::Done) {
                if let Some(grant) = grant {
                    return Poll::Ready(Ok(Lease::from_memory(acquire, grant)));
                }
                self.0 = State::Running(Box::pin(acquire.acquire().instrument(span)));
            }
        }
        let State::Running(running) = &mut self.0 else {
            return Poll::Pending;
        };
        let polled = running.as_mut().poll(context);
        if polled.is_ready() {
            self.0 = State::Done;
        }
        polled
    }
}

impl fmt::Debug for AcquireFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AcquireFuture").finish_non_exhaustive()
    }
}

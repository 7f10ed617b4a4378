//! Repeating a call until it succeeds, cannot succeed, or its time is over.

use std::future::Future;
use std::time::Duration;

use tokio::time::Instant;

use crate::{CallError, Entropy, attempt};

/// The longest pause between two attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause before the second attempt; it doubles from there.
const FIRST_PAUSE: Duration = Duration::from_millis(25);

/// The time that an operation has, and how much of it one attempt may take.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    attempt: Duration,
    deadline: Instant,
}

impl Budget {
    /// A budget of `total`, which starts now. One attempt may take `attempt`.
    pub fn starting_now(total: Duration, attempt: Duration) -> Self {
        Self::until(Instant::now() + total, attempt)
    }

    /// The budget of an operation that must be over at `deadline`. One attempt may take `attempt`.
    pub fn until(deadline: Instant, attempt: Duration) -> Self {
        Self { attempt, deadline }
    }

    /// When it ends.
    pub(crate) fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Waits with full jitter before retry number `retry`, starting at 1. Returns false if no time is left for it.
    pub async fn pause(&self, entropy: &Entropy, retry: u32) -> bool {
        let longest = FIRST_PAUSE
            .saturating_mul(1 << retry.clamp(1, 10).saturating_sub(1))
            .min(LONGEST_PAUSE);
        let until = Instant::now() + entropy.up_to(longest);
        if until >= self.deadline {
            return false;
        }
        tokio::time::sleep_until(until).await;
        true
    }

    /// Repeats the call while its error is transient and the budget lasts. Returns the error of the last attempt that
    /// got an response. The call must be one that may be carried out twice.
    ///
    /// ```
    /// use std::cell::Cell;
    /// use std::time::Duration;
    /// use zae_limiter_dynamo::{Budget, CallError, Entropy};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let (entropy, attempts) = (Entropy::from_system(), Cell::new(0));
    /// let budget = Budget::starting_now(Duration::from_secs(5), Duration::from_secs(1));
    /// let response = budget.retry(&entropy, || async {
    ///     attempts.set(attempts.get() + 1);
    ///     if attempts.get() < 3 { Err(CallError::Throttled("slow down".into())) } else { Ok("done") }
    /// });
    /// assert_eq!((response.await, attempts.get()), (Ok("done"), 3));
    /// # }
    /// ```
    pub async fn retry<T, Called>(
        &self,
        entropy: &Entropy,
        mut call: impl FnMut() -> Called,
    ) -> Result<T, CallError>
    where
        Called: Future<Output = Result<T, CallError>>,
    {
        let mut retries = 0;
        let mut previous = None;
        loop {
            // The SDK's futures are large and deeply nested. Boxed, they do not make the caller's so.
            let error = match attempt(self.attempt, self.deadline, Box::pin(call())).await {
                Ok(Ok(response)) => return Ok(response),
                Ok(Err(error)) => error,
                // An earlier response says more than a timeout.
                Err(timed_out) => previous.take().unwrap_or_else(|| timed_out.into()),
            };
            retries += 1;
            if !error.is_transient() || !self.pause(entropy, retries).await {
                return Err(error);
            }
            tracing::debug!(retries, %error, "calling again");
            previous = Some(error);
        }
    }
}

#[cfg(test)]
mod tests;

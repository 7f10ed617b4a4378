//! Repeating a call until it succeeds, cannot succeed, or its time is over.

use std::future::Future;
use std::time::Duration;

use tokio::time::Instant;

use crate::{CallError, Entropy};

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
    /// got an answer. The call must be one that may be carried out twice.
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
    /// let answer = budget.retry(&entropy, || async {
    ///     attempts.set(attempts.get() + 1);
    ///     if attempts.get() < 3 { Err(CallError::Throttled("slow down".into())) } else { Ok("done") }
    /// });
    /// assert_eq!((answer.await, attempts.get()), (Ok("done"), 3));
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
            let timeout = self.deadline.min(Instant::now() + self.attempt);
            // The SDK's futures are large and deeply nested. Boxed, they do not make the caller's so.
            let error = match tokio::time::timeout_at(timeout, Box::pin(call())).await {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(error)) => error,
                // An earlier answer says more than a timeout.
                Err(_) => previous.take().unwrap_or_else(CallError::timeout),
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
mod tests {
    use std::cell::Cell;

    use super::*;

    const TOTAL: Duration = Duration::from_secs(10);

    fn budget() -> Budget {
        Budget::starting_now(TOTAL, TOTAL / 2)
    }

    #[tokio::test(start_paused = true)]
    async fn retries_go_on_while_there_is_time_and_end_within_the_budget() {
        let (started, calls) = (Instant::now(), Cell::new(0));
        let result: Result<(), _> = budget()
            .retry(&Entropy::seeded(1), || {
                calls.set(calls.get() + 1);
                async { Err(CallError::Throttled("slow down".to_owned())) }
            })
            .await;
        assert_eq!(result, Err(CallError::Throttled("slow down".to_owned())));
        assert!(started.elapsed() <= TOTAL && calls.get() > 10, "{calls:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn an_attempt_without_an_answer_ends_and_is_repeated() {
        let calls = Cell::new(0);
        let result = budget()
            .retry(&Entropy::seeded(1), || {
                calls.set(calls.get() + 1);
                let hangs = calls.get() == 1;
                async move {
                    if hangs {
                        std::future::pending::<()>().await;
                    }
                    Ok(7)
                }
            })
            .await;
        assert_eq!((result, calls.get()), (Ok(7), 2));
    }

    #[tokio::test(start_paused = true)]
    async fn a_timeout_does_not_hide_what_an_earlier_attempt_was_answered() {
        let calls = Cell::new(0);
        let result: Result<(), _> = budget()
            .retry(&Entropy::seeded(1), || {
                calls.set(calls.get() + 1);
                let answers = calls.get() == 1;
                async move {
                    if !answers {
                        std::future::pending::<()>().await;
                    }
                    Err(CallError::Conflict("busy".to_owned()))
                }
            })
            .await;
        assert_eq!(result, Err(CallError::Conflict("busy".to_owned())));
    }

    #[tokio::test(start_paused = true)]
    async fn what_cannot_succeed_is_called_once() {
        let calls = Cell::new(0);
        let result: Result<(), _> = budget()
            .retry(&Entropy::seeded(1), || {
                calls.set(calls.get() + 1);
                async { Err(CallError::TableMissing) }
            })
            .await;
        assert_eq!((result, calls.get()), (Err(CallError::TableMissing), 1));
    }
}

//! The time of one invocation, and retries within it.

use std::time::{Duration, SystemTime};

use zae_limiter_dynamo::{Budget, CallError, Entropy};

/// The time that an invocation has. Calls are retried within it, with jitter.
#[derive(Debug)]
pub struct Invocation {
    budget: Budget,
    entropy: Entropy,
}

impl Invocation {
    /// Reserved for the response to Lambda: every call has ended by then.
    pub const RESERVE: Duration = Duration::from_secs(3);
    /// The timeout of one attempt.
    const ATTEMPT: Duration = Duration::from_secs(5);

    /// An invocation that Lambda ends at this time.
    pub fn until(deadline: SystemTime) -> Self {
        Self::within(deadline.duration_since(SystemTime::now()).unwrap_or_default())
    }

    /// An invocation that ends this much later.
    pub fn within(time: Duration) -> Self {
        Self {
            budget: Budget::starting_now(time.saturating_sub(Self::RESERVE), Self::ATTEMPT),
            entropy: Entropy::from_system(),
        }
    }

    /// Retries a call until it succeeds, fails with a permanent error, or runs out of time.
    pub async fn retry<T, F>(&self, call: impl FnMut() -> F) -> Result<T, CallError>
    where
        F: Future<Output = Result<T, CallError>>,
    {
        self.budget.retry(&self.entropy, call).await
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn retries_go_on_for_as_long_as_the_invocation_has_time_and_end_before_it_does() {
        let (started, calls) = (tokio::time::Instant::now(), Cell::new(0));
        let invocation = Invocation::within(Duration::from_secs(30));
        let result: Result<(), _> = invocation
            .retry(|| {
                calls.set(calls.get() + 1);
                async { Err(CallError::Throttled("slow down".to_owned())) }
            })
            .await;
        assert!(result.is_err() && calls.get() > 10, "{calls:?}");
        let spent = started.elapsed();
        assert!(
            spent > Duration::from_secs(25) && spent <= Duration::from_secs(27),
            "{spent:?}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn an_invocation_without_time_fails_at_once() {
        let started = tokio::time::Instant::now();
        let result: Result<(), _> = Invocation::within(Duration::ZERO)
            .retry(std::future::pending)
            .await;
        assert!(result.is_err_and(|error| error.is_transient()));
        assert_eq!(started.elapsed(), Duration::ZERO);
    }
}

//! How long to wait for AWS, and how often to ask.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::Error;
use crate::cloud::failure::Failure;

/// Shortest and longest pause between two polls of our own operation.
const POLLS: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(5));

/// The same while waiting for the operation of another process. Many processes may wait at once.
const ATTACHED_POLLS: (Duration, Duration) = (Duration::from_secs(15), Duration::from_secs(30));

/// The same after a throttled call, which the SDK has already repeated with pauses of its own.
const THROTTLED: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(20));

/// The longest wait of a call that only reads what is there. The SDK's own attempts at one throttled call may take 71 seconds.
pub(crate) const READING: Duration = Duration::from_secs(2 * 60);

/// When to stop waiting.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline {
    ends: Instant,
    pub(crate) allowed: Duration,
}

impl Deadline {
    pub(crate) fn after(allowed: Duration) -> Self {
        Self {
            ends: Instant::now() + allowed,
            allowed,
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.left().is_zero()
    }

    fn left(&self) -> Duration {
        self.ends.saturating_duration_since(Instant::now())
    }
}

/// Growing pauses, with jitter so that many processes do not call in step.
#[derive(Debug)]
pub(crate) struct Pace {
    next: Duration,
    longest: Duration,
}

impl Pace {
    /// For polls of our own operation.
    pub(crate) fn polls() -> Self {
        Self::between(POLLS)
    }

    /// For polls of another process's operation.
    pub(crate) fn attached_polls() -> Self {
        Self::between(ATTACHED_POLLS)
    }

    fn between((next, longest): (Duration, Duration)) -> Self {
        Self { next, longest }
    }

    pub(crate) async fn pause(&mut self) {
        self.pause_up_to(Duration::MAX).await;
    }

    async fn pause_up_to(&mut self, most: Duration) {
        let pause = self.next.mul_f64(0.8 + 0.4 * fastrand::f64());
        sleep(pause.min(most)).await;
        self.next = self.next.mul_f64(1.5).min(self.longest);
    }
}

/// An error that may be throttling, after which the same call succeeds later.
pub(crate) trait Throttling {
    fn is_throttling(&self) -> bool;

    /// The same error, where the time is over in which the call was repeated.
    fn out_of_time(self, allowed: Duration) -> Self;
}

impl Throttling for Failure {
    fn is_throttling(&self) -> bool {
        self.throttled()
    }

    fn out_of_time(self, allowed: Duration) -> Self {
        self.repeated_for(allowed)
    }
}

impl Throttling for Error {
    fn is_throttling(&self) -> bool {
        self.throttled()
    }

    fn out_of_time(self, after: Duration) -> Self {
        let source = Box::new(self);
        Self::Throttled { after, source }
    }
}

/// Repeats a call while AWS throttles it and there is time left, the last time at the deadline. Throttling is an error only
/// then, and the error says that the time is over.
pub(crate) async fn patiently<T, E, Call>(deadline: &Deadline, mut call: impl FnMut() -> Call) -> Result<T, E>
where
    E: Throttling,
    Call: Future<Output = Result<T, E>>,
{
    let mut pace = Pace::between(THROTTLED);
    loop {
        match call().await {
            Err(error) if error.is_throttling() && !deadline.is_over() => {
                pace.pause_up_to(deadline.left()).await;
            }
            Err(error) if error.is_throttling() => return Err(error.out_of_time(deadline.allowed)),
            result => return result,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_throttled_call_is_made_for_the_last_time_at_the_deadline() {
        let throttled = || Failure::told("a:B", "c", Some("Throttling"), None);
        let (started, allowed) = (Instant::now(), Duration::from_secs(60));
        let deadline = Deadline::after(allowed);
        let result: Result<(), _> = patiently(&deadline, || std::future::ready(Err(throttled()))).await;
        let error = Error::from(result.unwrap_err());
        assert!(
            matches!(&error, Error::Throttled { after, .. } if *after == allowed),
            "{error}"
        );
        let late = started.elapsed().saturating_sub(allowed);
        assert!(deadline.is_over() && late < Duration::from_millis(10), "{late:?}");
    }
}

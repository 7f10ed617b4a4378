//! Calls to AWS: what a failure means, and when to call again.

use std::time::Duration;

use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;

use crate::Budget;

/// Why a call to AWS did not succeed, by what can be done about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallFailure {
    /// It may succeed when it is repeated: throttling, a server error, no answer.
    #[error("{0}; it is tried again")]
    Transient(String),
    /// This very request can never succeed, others can.
    #[error("{0}; the same request can never succeed")]
    Rejected(String),
    /// No request of this kind can succeed until someone changes permissions or puts a resource back.
    #[error("{0}; check the function's permissions and that the resource exists")]
    Denied(String),
}

/// Codes by which AWS asks for patience without a status that says so.
const THROTTLING: [&str; 11] = [
    "InternalServerError",
    "LimitExceededException",
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "RequestThrottled",
    "RequestTimeout",
    "SlowDown",
    "Throttling",
    "ThrottlingException",
    "TransactionConflictException",
    "TransactionInProgressException",
];

/// Codes that speak about the request and nothing else.
const REJECTING: [&str; 5] = [
    "InvalidMessageContents",
    "ItemCollectionSizeLimitExceededException",
    "EntityTooLarge",
    "KeyTooLongError",
    "ValidationException",
];

impl CallFailure {
    /// Sorts an error of the SDK.
    pub fn of<E>(error: &SdkError<E, HttpResponse>) -> Self
    where
        E: ProvideErrorMetadata,
    {
        match error {
            SdkError::ConstructionFailure(_) => Self::Rejected("the request could not be built".to_owned()),
            SdkError::TimeoutError(_) => Self::Transient("the call timed out".to_owned()),
            SdkError::DispatchFailure(_) => Self::Transient("the service could not be reached".to_owned()),
            SdkError::ServiceError(answer) => {
                let code = answer.err().code().unwrap_or("an unnamed error");
                let text = match answer.err().message() {
                    Some(message) => format!("{code}: {message}"),
                    None => code.to_owned(),
                };
                Self::sorted(answer.raw().status().as_u16(), code, text)
            }
            _ => Self::Transient("the answer could not be read".to_owned()),
        }
    }

    fn sorted(status: u16, code: &str, text: String) -> Self {
        if status >= 500 || status == 429 || THROTTLING.contains(&code) {
            Self::Transient(text)
        } else if REJECTING.contains(&code) {
            Self::Rejected(text)
        } else {
            Self::Denied(text)
        }
    }
}

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Calls until it succeeds, fails for good, or the budget has no time for another attempt.
///
/// Pauses double up to two seconds, and each is drawn between nothing and that, so that functions that were throttled
/// together do not come back together.
pub async fn retrying<T, F>(budget: &Budget, mut call: impl FnMut() -> F) -> Result<T, CallFailure>
where
    F: Future<Output = Result<T, CallFailure>>,
{
    let mut longest = FIRST_PAUSE;
    loop {
        let limit = budget.for_one_call();
        let failure = match tokio::time::timeout(limit, call()).await {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(failure)) => failure,
            Err(_) => CallFailure::Transient(format!("no answer within {} ms", limit.as_millis())),
        };
        let pause = longest.mul_f64(fastrand::f64());
        if !matches!(failure, CallFailure::Transient(_)) || !budget.allows(pause) {
            return Err(failure);
        }
        tokio::time::sleep(pause).await;
        longest = (longest * 2).min(LONGEST_PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn sorted(status: u16, code: &str) -> CallFailure {
        CallFailure::sorted(status, code, String::new())
    }

    #[test]
    fn throttling_and_server_errors_are_worth_another_attempt_and_denials_are_not() {
        assert!(matches!(
            sorted(400, "ThrottlingException"),
            CallFailure::Transient(_)
        ));
        assert!(matches!(sorted(503, "anything"), CallFailure::Transient(_)));
        assert!(matches!(
            sorted(400, "ValidationException"),
            CallFailure::Rejected(_)
        ));
        assert!(matches!(
            sorted(400, "AccessDeniedException"),
            CallFailure::Denied(_)
        ));
        assert!(matches!(
            sorted(400, "ResourceNotFoundException"),
            CallFailure::Denied(_)
        ));
    }

    #[tokio::test(start_paused = true)]
    async fn retries_go_on_for_as_long_as_the_invocation_has_time_and_end_before_it_does() {
        let started = tokio::time::Instant::now();
        let calls = Cell::new(0);
        let budget = Budget::of(Duration::from_secs(30));
        let result: Result<(), _> = retrying(&budget, || {
            calls.set(calls.get() + 1);
            async { Err(CallFailure::Transient("slow down".to_owned())) }
        })
        .await;
        assert!(result.is_err());
        let spent = started.elapsed();
        assert!(
            spent > Duration::from_secs(24) && spent <= Duration::from_secs(27),
            "{spent:?}"
        );
        assert!(calls.get() > 10);
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_without_an_answer_is_given_up_and_repeated() {
        let calls = Cell::new(0);
        let budget = Budget::of(Duration::from_mins(1));
        let result = retrying(&budget, || {
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
    async fn what_cannot_succeed_is_called_once() {
        let calls = Cell::new(0);
        let result: Result<(), _> = retrying(&Budget::of(Duration::from_mins(1)), || {
            calls.set(calls.get() + 1);
            async { Err(CallFailure::Denied("AccessDenied".to_owned())) }
        })
        .await;
        assert!(matches!(result, Err(CallFailure::Denied(_))));
        assert_eq!(calls.get(), 1);
    }
}

//! Calls to AWS: what a failure means, and when to retry.

use std::time::Duration;

use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;

use crate::Budget;

/// Why a call to AWS failed, by what can be done about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallFailure {
    /// A retry may succeed: throttling, a server error, no response.
    #[error("{0}; it is retried")]
    Transient(String),
    /// This request fails, whatever others do. Errors that nobody knows are here: one record must not block its shard.
    #[error("{0}; the same request is not retried")]
    Rejected(String),
    /// No request succeeds until somebody fixes permissions, credentials, keys or a missing resource.
    #[error("{0}; check the function's permissions and that the resource exists")]
    Denied(String),
}

/// Error codes that ask for a retry, whatever the status.
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

/// Beginnings of error codes that concern every request alike: permissions, credentials, encryption keys, and resources
/// that are gone.
const DENYING: [&str; 22] = [
    "AccessDenied",
    "AccountProblem",
    "AllAccessDisabled",
    "AuthFailure",
    "ExpiredToken",
    "IncompleteSignature",
    "InvalidAccessKeyId",
    "InvalidAddress",
    "InvalidClientTokenId",
    "InvalidSecurity",
    "InvalidSignature",
    "InvalidToken",
    "KMS",
    "Kms",
    "MissingAuthenticationToken",
    "NoSuchBucket",
    "NotAuthorized",
    "OptInRequired",
    "ResourceNotFound",
    "SignatureDoesNotMatch",
    "TableNotFound",
    "UnrecognizedClient",
];

/// The queue is gone. SQS has two names for it.
const NO_QUEUE: [&str; 2] = ["AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist"];

impl CallFailure {
    /// Classifies an error of the SDK.
    pub fn of<E>(error: &SdkError<E, HttpResponse>) -> Self
    where
        E: ProvideErrorMetadata,
    {
        match error {
            SdkError::ConstructionFailure(_) => Self::Rejected("the request could not be built".to_owned()),
            SdkError::TimeoutError(_) => Self::Transient("the call timed out".to_owned()),
            SdkError::DispatchFailure(_) => Self::Transient("the service cannot be reached".to_owned()),
            SdkError::ServiceError(answer) => {
                let code = answer.err().code().unwrap_or("an unnamed error");
                let text = match answer.err().message() {
                    Some(message) => format!("{code}: {message}"),
                    None => code.to_owned(),
                };
                Self::classify(answer.raw().status().as_u16(), code, text)
            }
            _ => Self::Transient("the response cannot be read".to_owned()),
        }
    }

    fn classify(status: u16, code: &str, text: String) -> Self {
        let denies = |code: &str| DENYING.iter().any(|start| code.starts_with(start));
        if status >= 500 || status == 429 || THROTTLING.contains(&code) {
            Self::Transient(text)
        } else if matches!(status, 401 | 403) || denies(code) || NO_QUEUE.contains(&code) {
            Self::Denied(text)
        } else {
            Self::Rejected(text)
        }
    }
}

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Retries a call until it succeeds, fails for good, or the budget has no time for another attempt.
///
/// Pauses double up to two seconds with full jitter, so that functions that were throttled together do not retry
/// together.
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
            Err(_) => CallFailure::Transient(format!("no response within {} ms", limit.as_millis())),
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

    fn classify(status: u16, code: &str) -> CallFailure {
        CallFailure::classify(status, code, String::new())
    }

    #[test]
    fn throttling_is_retried_a_missing_permission_blocks_and_unknown_errors_concern_one_record() {
        assert!(matches!(
            classify(400, "ThrottlingException"),
            CallFailure::Transient(_)
        ));
        assert!(matches!(classify(503, "anything"), CallFailure::Transient(_)));
        assert!(matches!(
            classify(400, "ValidationException"),
            CallFailure::Rejected(_)
        ));
        assert!(matches!(
            classify(400, "AccessDeniedException"),
            CallFailure::Denied(_)
        ));
        for (status, code) in [
            (400, "ResourceNotFoundException"),
            (400, "ExpiredTokenException"),
            (400, "KMSDisabledException"),
            (400, "KMS.DisabledException"),
            (400, "AWS.SimpleQueueService.NonExistentQueue"),
            (404, "NoSuchBucket"),
            (403, "SomethingNew"),
        ] {
            assert!(matches!(classify(status, code), CallFailure::Denied(_)), "{code}");
        }
        for code in [
            "FutureException",
            "ItemCollectionSizeLimitExceededException",
            "an unnamed error",
        ] {
            assert!(matches!(classify(400, code), CallFailure::Rejected(_)), "{code}");
        }
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

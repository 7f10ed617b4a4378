//! Why one call failed, by what can be done about it.

use std::error::Error as StdError;
use std::path::PathBuf;

use aws_credential_types::provider::error::CredentialsError;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;

/// One failed call, by what can be done about it. Works for every AWS service, not only for DynamoDB.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// Credentials are missing, wrong or lack permission, or an encryption key, bucket or queue cannot be used. No request
    /// succeeds until somebody fixes that.
    #[error("{0}")]
    Denied(String),
    /// There is no such table.
    #[error("no such table")]
    TableMissing,
    /// This request is malformed. Others may succeed.
    #[error("{0}")]
    Invalid(String),
    /// The request was refused with a code that this crate does not know.
    #[error("{0}")]
    Refused(String),
    /// The condition of a single write was false.
    #[error("the condition was false")]
    ConditionFailed,
    /// A transaction was canceled.
    #[error("{0}")]
    Canceled(String),
    /// Another transaction is using the item. Transient.
    #[error("{0}")]
    Conflict(String),
    /// Too many requests. Transient.
    #[error("{0}")]
    Throttled(String),
    /// No connection, no answer in time, or the service failed. The request may have been carried out. Transient.
    #[error("{0}")]
    Unavailable(String),
    /// The request never left the process: the connection was refused, or credentials could not be fetched. Transient.
    #[error("{0}")]
    NotSent(String),
    /// Another process has locked the embedded store's file. The request was not carried out. Transient.
    #[error("another process holds {}", .0.display())]
    FileHeld(PathBuf),
}

/// How codes begin that concern every request alike: permissions, credentials, encryption keys, and the bucket or queue.
const DENIED: [&str; 24] = [
    "AWS.SimpleQueueService.NonExistentQueue",
    "AccessDenied",
    "AccountProblem",
    "AllAccessDisabled",
    "AuthFailure",
    "AuthorizationHeaderMalformed",
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
    "NonExistentQueue",
    "NotAuthorized",
    "OptInRequired",
    "QueueDoesNotExist",
    "SignatureDoesNotMatch",
    "UnrecognizedClient",
];

impl CallError {
    /// True if the same request may succeed a moment later.
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::Conflict(_)
                | Self::Throttled(_)
                | Self::Unavailable(_)
                | Self::NotSent(_)
                | Self::FileHeld(_)
        )
    }

    pub(crate) fn timeout() -> Self {
        Self::Unavailable("no answer in time".to_owned())
    }

    fn from_code(code: &str, message: &str, status: u16) -> Self {
        let text = if message.is_empty() {
            format!("{code} (status {status})")
        } else {
            format!("{code}: {message}")
        };
        // Codes arrive with or without "Exception", and sometimes behind a namespace.
        let code = code.rsplit('#').next().unwrap_or(code);
        match code.strip_suffix("Exception").unwrap_or(code) {
            "ConditionalCheckFailed" => Self::ConditionFailed,
            "TransactionCanceled" => Self::Canceled(text),
            "ResourceNotFound" | "TableNotFound" => Self::TableMissing,
            "TransactionConflict" | "TransactionInProgress" | "ReplicatedWriteConflict" => {
                Self::Conflict(text)
            }
            "ProvisionedThroughputExceeded"
            | "Throttling"
            | "RequestLimitExceeded"
            | "RequestThrottled"
            | "TooManyRequests"
            | "LimitExceeded"
            | "SlowDown" => Self::Throttled(text),
            "InternalServerError" | "RequestTimeout" => Self::Unavailable(text),
            code if DENIED.iter().any(|start| code.starts_with(start)) => Self::Denied(text),
            "Validation"
            | "Serialization"
            | "ItemCollectionSizeLimitExceeded"
            | "EntityTooLarge"
            | "KeyTooLongError"
            | "InvalidMessageContents" => Self::Invalid(text),
            _ if status >= 500 => Self::Unavailable(text),
            _ if status == 429 => Self::Throttled(text),
            _ if status == 403 || status == 401 => Self::Denied(text),
            _ => Self::Refused(text),
        }
    }
}

impl<E> From<&SdkError<E, HttpResponse>> for CallError
where
    E: ProvideErrorMetadata + StdError + 'static,
{
    fn from(error: &SdkError<E, HttpResponse>) -> Self {
        match error {
            SdkError::ServiceError(answer) => Self::from_code(
                answer.err().code().unwrap_or_default(),
                answer.err().message().unwrap_or_default(),
                answer.raw().status().as_u16(),
            ),
            SdkError::TimeoutError(_) => Self::timeout(),
            SdkError::ResponseError(answer) if answer.raw().status().as_u16() < 500 => {
                Self::Unavailable(format!("unreadable answer: {}", with_causes(error)))
            }
            other => from_causes(other),
        }
    }
}

/// The error and its causes as people read them. The SDK's own form appends a dump of everything.
fn with_causes(error: &(dyn StdError + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(current) = cause {
        let next = current.to_string();
        if !text.contains(&next) {
            text = format!("{text}: {next}");
        }
        cause = current.source();
    }
    text
}

fn from_causes<E>(error: &SdkError<E, HttpResponse>) -> CallError
where
    E: StdError + 'static,
{
    let text = with_causes(error);
    let mut cause = error.source();
    while let Some(current) = cause {
        #[cfg(feature = "embedded")]
        if let Some(held) = current.downcast_ref::<crate::embedded::FileHeld>() {
            return CallError::FileHeld(held.path.clone());
        }
        #[cfg(feature = "embedded")]
        if let Some(waits) = current.downcast_ref::<crate::embedded::WaitsForFile>() {
            return CallError::Unavailable(waits.to_string());
        }
        if let Some(credentials) = current.downcast_ref::<CredentialsError>() {
            return match credentials {
                CredentialsError::CredentialsNotLoaded(_) | CredentialsError::InvalidConfiguration(_) => {
                    CallError::Denied(text)
                }
                _ => CallError::NotSent(text),
            };
        }
        // Only opening a connection is ever refused.
        if let Some(io) = current.downcast_ref::<std::io::Error>()
            && io.kind() == std::io::ErrorKind::ConnectionRefused
        {
            return CallError::NotSent(text);
        }
        cause = current.source();
    }
    match error {
        // The request could not even be built: a missing region, an endpoint that is no URL.
        SdkError::ConstructionFailure(_) => CallError::Invalid(text),
        SdkError::DispatchFailure(failure) if failure.is_user() => CallError::Invalid(text),
        _ => CallError::Unavailable(text),
    }
}

#[cfg(test)]
#[allow(clippy::panic)]
mod tests {
    use super::*;

    fn from_code(code: &str, status: u16) -> CallError {
        CallError::from_code(code, "text", status)
    }

    #[test]
    fn denials_missing_tables_and_bad_requests_are_not_repeated() {
        for code in [
            "AccessDeniedException",
            "UnrecognizedClientException",
            "ResourceNotFoundException",
            "ValidationException",
            "SomethingNew",
        ] {
            assert!(!from_code(code, 400).is_transient(), "{code}");
        }
    }

    #[test]
    fn throttling_conflicts_and_server_errors_are_repeated() {
        for (code, status) in [
            ("ProvisionedThroughputExceededException", 400),
            ("ThrottlingException", 400),
            ("RequestLimitExceeded", 400),
            ("TransactionConflictException", 400),
            ("TransactionInProgressException", 400),
            ("InternalServerError", 500),
            ("", 503),
        ] {
            assert!(from_code(code, status).is_transient(), "{code} {status}");
        }
    }

    #[test]
    fn a_request_is_invalid_only_if_its_code_says_so() {
        assert!(matches!(
            from_code("ValidationException", 400),
            CallError::Invalid(_)
        ));
        assert!(matches!(from_code("SomethingNew", 400), CallError::Refused(_)));
        assert!(matches!(from_code("SomethingNew", 403), CallError::Denied(_)));
    }

    #[test]
    fn what_fails_every_request_until_somebody_fixes_it_is_a_denial() {
        for (status, code) in [
            (400, "AccessDeniedException"),
            (400, "ExpiredTokenException"),
            (400, "KMSDisabledException"),
            (400, "KMS.DisabledException"),
            (400, "AWS.SimpleQueueService.NonExistentQueue"),
            (400, "QueueDoesNotExist"),
            (404, "NoSuchBucket"),
            (403, "SomethingNew"),
        ] {
            assert!(matches!(from_code(code, status), CallError::Denied(_)), "{code}");
        }
    }

    #[test]
    fn a_message_includes_its_causes_and_no_dump() {
        let cause = std::io::Error::new(std::io::ErrorKind::ConnectionRefused, "connection refused");
        let error: SdkError<aws_sdk_dynamodb::operation::get_item::GetItemError, HttpResponse> =
            SdkError::dispatch_failure(aws_smithy_runtime_api::client::result::ConnectorError::io(
                cause.into(),
            ));
        let CallError::NotSent(text) = CallError::from(&error) else {
            panic!("not refused")
        };
        assert!(text.ends_with("connection refused"), "{text}");
        assert!(!text.contains('{'), "{text}");
    }

    #[test]
    fn a_connection_that_broke_may_have_carried_the_request() {
        use std::io::ErrorKind::{BrokenPipe, ConnectionReset, TimedOut, UnexpectedEof};

        for kind in [ConnectionReset, BrokenPipe, UnexpectedEof, TimedOut] {
            let cause = std::io::Error::from(kind);
            let error: SdkError<aws_sdk_dynamodb::operation::get_item::GetItemError, HttpResponse> =
                SdkError::dispatch_failure(aws_smithy_runtime_api::client::result::ConnectorError::io(
                    cause.into(),
                ));
            let failed = CallError::from(&error);
            assert!(matches!(failed, CallError::Unavailable(_)), "{kind:?}");
        }
    }

    #[test]
    fn a_code_behind_a_namespace_is_the_same_code() {
        let code = "com.amazonaws.dynamodb.v20120810#ResourceNotFoundException";
        assert_eq!(from_code(code, 400), CallError::TableMissing);
    }
}

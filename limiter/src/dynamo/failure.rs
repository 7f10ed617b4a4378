//! What kind of failure an answer of DynamoDB, or its absence, is.

use std::error::Error as StdError;
use std::path::PathBuf;
use std::time::Duration;

use aws_credential_types::provider::error::CredentialsError;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;

use crate::Error;

/// One failed call, by what can be done about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failure {
    /// Credentials missing, wrong or without permission. Never unavailability.
    Denied(String),
    /// No such table. Never unavailability.
    MissingTable,
    /// The request is malformed. Never unavailability.
    Invalid(String),
    /// The condition of a single write was false.
    ConditionFailed,
    /// A transaction was cancelled; its reasons say why.
    Canceled(String),
    /// Another transaction is at work on the item. Sending again is right.
    Conflict(String),
    /// Too many requests. Sending again later is right.
    Throttled(String),
    /// No connection, no answer in time, or the service failed. Whether the request was carried out is not known.
    Unavailable(String),
    /// The embedded store's file is locked elsewhere. The request was not carried out.
    #[cfg_attr(not(feature = "embedded"), allow(dead_code))]
    Held(PathBuf),
}

impl Failure {
    /// True if the same request may succeed a moment later.
    pub(crate) fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::Conflict(_) | Self::Throttled(_) | Self::Unavailable(_) | Self::Held(_)
        )
    }

    fn text(self) -> String {
        match self {
            Self::Denied(text)
            | Self::Invalid(text)
            | Self::Canceled(text)
            | Self::Conflict(text)
            | Self::Throttled(text)
            | Self::Unavailable(text) => text,
            Self::MissingTable => "no such table".to_owned(),
            Self::ConditionFailed => "the condition was false".to_owned(),
            Self::Held(path) => format!("another process holds {}", path.display()),
        }
    }

    /// The error to report when nothing more is tried.
    pub(crate) fn into_error(
        self,
        operation: &'static str,
        table: &str,
        place: &str,
        within: Duration,
    ) -> Error {
        let table = table.to_owned();
        match self {
            Self::Denied(message) => Error::PermissionDenied {
                operation,
                table,
                message,
            },
            Self::MissingTable => Error::TableMissing {
                table,
                place: place.to_owned(),
            },
            Self::Held(path) => Error::FileHeld { path },
            Self::Conflict(_) | Self::Throttled(_) | Self::Unavailable(_) => Error::Unavailable {
                operation,
                table,
                reason: self.text(),
                within,
            },
            Self::Invalid(_) | Self::ConditionFailed | Self::Canceled(_) => Error::Refused {
                operation,
                table,
                message: self.text(),
            },
        }
    }
}

/// What kind of failure this is.
pub(crate) fn classify<E>(error: &SdkError<E, HttpResponse>) -> Failure
where
    E: ProvideErrorMetadata + StdError + 'static,
{
    match error {
        SdkError::ServiceError(answer) => {
            let status = answer.raw().status().as_u16();
            by_code(
                answer.err().code().unwrap_or_default(),
                answer.err().message().unwrap_or_default(),
                status,
            )
        }
        SdkError::TimeoutError(_) => Failure::Unavailable("no answer in time".to_owned()),
        SdkError::ResponseError(answer) if answer.raw().status().as_u16() < 500 => {
            Failure::Unavailable(format!("unreadable answer: {}", told(error)))
        }
        other => by_cause(other),
    }
}

fn by_code(code: &str, message: &str, status: u16) -> Failure {
    let text = if message.is_empty() {
        format!("{code} (status {status})")
    } else {
        format!("{code}: {message}")
    };
    // Codes arrive with or without "Exception", and sometimes behind a namespace.
    let code = code.rsplit('#').next().unwrap_or(code);
    match code.strip_suffix("Exception").unwrap_or(code) {
        "ConditionalCheckFailed" => Failure::ConditionFailed,
        "TransactionCanceled" => Failure::Canceled(text),
        "ResourceNotFound" => Failure::MissingTable,
        "TransactionConflict" | "TransactionInProgress" | "ReplicatedWriteConflict" => {
            Failure::Conflict(text)
        }
        "ProvisionedThroughputExceeded"
        | "Throttling"
        | "RequestLimitExceeded"
        | "TooManyRequests"
        | "LimitExceeded"
        | "SlowDown" => Failure::Throttled(text),
        "AccessDenied"
        | "UnrecognizedClient"
        | "InvalidSignature"
        | "MissingAuthenticationToken"
        | "ExpiredToken"
        | "InvalidClientTokenId"
        | "IncompleteSignature"
        | "NotAuthorized"
        | "SignatureDoesNotMatch"
        | "OptInRequired"
        | "KMSAccessDenied" => Failure::Denied(text),
        _ if status >= 500 => Failure::Unavailable(text),
        _ if status == 429 => Failure::Throttled(text),
        _ if status == 403 || status == 401 => Failure::Denied(text),
        _ => Failure::Invalid(text),
    }
}

/// The error and its causes as people read them. The SDK's own form appends a dump of everything.
fn told(error: &(dyn StdError + 'static)) -> String {
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

fn by_cause<E>(error: &SdkError<E, HttpResponse>) -> Failure
where
    E: StdError + 'static,
{
    let text = told(error);
    let mut cause = error.source();
    while let Some(current) = cause {
        #[cfg(feature = "embedded")]
        if let Some(held) = current.downcast_ref::<crate::embedded::FileHeld>() {
            return Failure::Held(held.path.clone());
        }
        #[cfg(feature = "embedded")]
        if let Some(waits) = current.downcast_ref::<crate::embedded::WaitsForFile>() {
            return Failure::Unavailable(waits.to_string());
        }
        if let Some(credentials) = current.downcast_ref::<CredentialsError>() {
            return match credentials {
                CredentialsError::CredentialsNotLoaded(_) | CredentialsError::InvalidConfiguration(_) => {
                    Failure::Denied(text)
                }
                _ => Failure::Unavailable(text),
            };
        }
        cause = current.source();
    }
    match error {
        // The request could not even be built: a missing region, an endpoint that is no URL.
        SdkError::ConstructionFailure(_) => Failure::Invalid(text),
        SdkError::DispatchFailure(failure) if failure.is_user() => Failure::Invalid(text),
        _ => Failure::Unavailable(text),
    }
}

#[cfg(test)]
#[allow(clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn denials_missing_tables_and_bad_requests_are_never_unavailability() {
        for code in [
            "AccessDeniedException",
            "UnrecognizedClientException",
            "ResourceNotFoundException",
            "ValidationException",
        ] {
            let failure = by_code(code, "text", 400);
            let error = failure.into_error("GetItem", "limiter", "eu-west-1", Duration::from_secs(1));
            assert!(!error.is_unavailable(), "{code}: {error}");
        }
    }

    #[test]
    fn throttling_conflicts_and_server_errors_are_sent_again() {
        for (code, status) in [
            ("ProvisionedThroughputExceededException", 400),
            ("ThrottlingException", 400),
            ("RequestLimitExceeded", 400),
            ("TransactionConflictException", 400),
            ("TransactionInProgressException", 400),
            ("InternalServerError", 500),
            ("", 503),
        ] {
            assert!(by_code(code, "", status).is_transient(), "{code} {status}");
        }
    }

    #[test]
    fn a_message_is_told_with_its_causes_and_without_a_dump() {
        let cause = std::io::Error::new(std::io::ErrorKind::ConnectionRefused, "connection refused");
        let error: SdkError<aws_sdk_dynamodb::operation::get_item::GetItemError, HttpResponse> =
            SdkError::dispatch_failure(aws_smithy_runtime_api::client::result::ConnectorError::io(
                cause.into(),
            ));
        let Failure::Unavailable(text) = classify(&error) else {
            panic!("not unavailable")
        };
        assert!(text.ends_with("connection refused"), "{text}");
        assert!(!text.contains('{'), "{text}");
    }

    #[test]
    fn a_code_behind_a_namespace_is_the_same_code() {
        let code = "com.amazonaws.dynamodb.v20120810#ResourceNotFoundException";
        assert_eq!(
            by_code(code, "Cannot do operations on a non-existent table", 400),
            Failure::MissingTable
        );
    }
}

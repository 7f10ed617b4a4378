//! Why one call failed, by what can be done about it.

use std::error::Error as StdError;
use std::path::PathBuf;

use aws_credential_types::provider::error::CredentialsError;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;

use crate::TimedOut;

/// One failed call, by what can be done about it. Works for every AWS service, not only for DynamoDB.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// Credentials are missing, wrong or lack permission, or an encryption key, bucket or queue cannot be used. No request
    /// succeeds until that is fixed.
    #[error("{0}")]
    Denied(String),
    /// The signature's time was refused. The SDK corrects its time by the response, so the next request may succeed. The
    /// request was not carried out. Transient.
    #[error("{0}")]
    ClockSkew(String),
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
    /// No connection, no response in time, or the service failed. The request may have been carried out. Transient.
    #[error("{0}")]
    Unavailable(String),
    /// The request never left the process: there was no connection. Transient.
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
    /// True if the same request may succeed if it is sent again.
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::Conflict(_)
                | Self::Throttled(_)
                | Self::Unavailable(_)
                | Self::NotSent(_)
                | Self::FileHeld(_)
                | Self::ClockSkew(_)
        )
    }

    pub(crate) fn timeout() -> Self {
        Self::Unavailable("no response in time".to_owned())
    }

    /// Credentials could not be loaded. An operator must provide them, so this is no outage.
    pub(crate) fn no_credentials(reason: &str) -> Self {
        Self::Denied(format!(
            "the AWS credentials could not be loaded: {reason}; set AWS_PROFILE or AWS_ACCESS_KEY_ID, or sign in with \
             `aws sso login`"
        ))
    }

    /// The error that a service names by this code. A part of a request that failed on its own has the status 400.
    pub fn from_code(code: &str, message: &str, status: u16) -> Self {
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
            "RequestTimeTooSkewed" | "RequestExpired" => Self::ClockSkew(text),
            "InvalidSignature" if is_about_time(message) => Self::ClockSkew(text),
            "Internal" | "InternalFailure" | "InternalServerError" | "RequestTimeout" => {
                Self::Unavailable(text)
            }
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

/// Whether a refused signature was made with a wrong time.
fn is_about_time(message: &str) -> bool {
    ["Signature expired", "Signature not yet current"]
        .iter()
        .any(|start| message.starts_with(start))
}

impl From<TimedOut> for CallError {
    fn from(timed_out: TimedOut) -> Self {
        match timed_out {
            TimedOut::Sent => Self::timeout(),
            TimedOut::NotSent => Self::NotSent("no connection in time".to_owned()),
        }
    }
}

impl<E> From<&SdkError<E, HttpResponse>> for CallError
where
    E: ProvideErrorMetadata + StdError + 'static,
{
    fn from(error: &SdkError<E, HttpResponse>) -> Self {
        match error {
            // The SDK reports a success that it cannot read as an error of the service.
            SdkError::ServiceError(response) if response.raw().status().is_success() => {
                Self::Unavailable(format!("unreadable response: {}", with_causes(error)))
            }
            SdkError::ServiceError(response) => Self::from_code(
                response.err().code().unwrap_or_default(),
                response.err().message().unwrap_or_default(),
                response.raw().status().as_u16(),
            ),
            SdkError::TimeoutError(_) => Self::timeout(),
            SdkError::ResponseError(response) if response.raw().status().as_u16() < 500 => {
                Self::Unavailable(format!("unreadable response: {}", with_causes(error)))
            }
            other => from_causes(other),
        }
    }
}

/// The error and its causes as people read them. The SDK's own form appends a dump of everything.
pub(crate) fn with_causes(error: &(dyn StdError + 'static)) -> String {
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
            return CallError::no_credentials(&with_causes(credentials));
        }
        // Name lookup, connecting and the TLS handshake: no byte of the request was sent.
        if let Some(http) = current.downcast_ref::<hyper_util::client::legacy::Error>()
            && http.is_connect()
        {
            return CallError::NotSent(text);
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
mod tests;

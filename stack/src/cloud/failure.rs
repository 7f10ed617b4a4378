//! A failed call to AWS.

use std::time::Duration;

use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;

use crate::Error;
use crate::patience::Throttling;

const DENIED: [&str; 6] = [
    "AccessDenied",
    "AccessDeniedException",
    "AuthorizationError",
    "AuthorizationErrorException",
    "Forbidden",
    "UnauthorizedOperation",
];

/// Whether an error code means that the caller makes too many requests.
pub(crate) fn is_throttling(code: &str) -> bool {
    let codes = [
        "Throttling",
        "ThrottlingException",
        "ThrottledException",
        "RequestThrottled",
        "RequestLimitExceeded",
        "TooManyRequestsException",
        "SlowDown",
    ];
    codes.contains(&code)
}

/// The action, its resource, and the error.
#[derive(Debug)]
pub(crate) struct Failure {
    action: &'static str,
    resource: String,
    code: Option<String>,
    status: Option<u16>,
    message: String,
    /// How long the call was repeated because AWS throttled it, if it was repeated to the end.
    repeated_for: Option<Duration>,
}

impl Failure {
    pub(crate) fn of<E>(
        action: &'static str,
        resource: impl Into<String>,
        error: &SdkError<E, HttpResponse>,
    ) -> Self
    where
        E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
    {
        let service = error.as_service_error();
        let said = service.and_then(ProvideErrorMetadata::message).map(str::to_owned);
        Self {
            action,
            resource: resource.into(),
            code: service.and_then(ProvideErrorMetadata::code).map(str::to_owned),
            status: error.raw_response().map(|response| response.status().as_u16()),
            message: said.unwrap_or_else(|| chain(error)),
            repeated_for: None,
        }
    }

    /// An error inside a successful response.
    pub(crate) fn told(
        action: &'static str,
        resource: impl Into<String>,
        code: Option<&str>,
        message: Option<&str>,
    ) -> Self {
        let message = message.unwrap_or("no reason reported").to_owned();
        Self {
            action,
            resource: resource.into(),
            code: code.map(str::to_owned),
            status: None,
            message,
            repeated_for: None,
        }
    }

    /// The failure of a throttled call that was repeated for as long as there was time.
    pub(crate) fn repeated_for(self, time: Duration) -> Self {
        Self {
            repeated_for: Some(time),
            ..self
        }
    }

    pub(crate) fn is(&self, code: &str) -> bool {
        self.code.as_deref() == Some(code)
    }

    pub(crate) fn status(&self) -> Option<u16> {
        self.status
    }

    pub(crate) fn says(&self, words: &str) -> bool {
        self.message.contains(words)
    }

    /// The stack does not exist. CloudFormation has no error code for this.
    pub(crate) fn no_such_stack(&self) -> bool {
        self.is("ValidationError") && self.says("does not exist")
    }

    /// Another operation is running on the stack.
    pub(crate) fn busy(&self) -> bool {
        self.says("_IN_PROGRESS") || self.is("OperationInProgressException")
    }

    /// Another process created the stack before our change set. CloudFormation has no error code for this either.
    pub(crate) fn created_meanwhile(&self) -> bool {
        self.is("AlreadyExistsException")
            || (self.is("ValidationError") && self.says("already exists and cannot be created again"))
    }

    pub(crate) fn nothing_to_update(&self) -> bool {
        self.says("No updates are to be performed")
    }

    /// The service asks to slow down.
    pub(crate) fn throttled(&self) -> bool {
        self.code.as_deref().is_some_and(is_throttling)
    }

    pub(crate) fn denied(&self) -> bool {
        match &self.code {
            Some(code) => DENIED.contains(&code.as_str()),
            // The response to a HEAD request has no body, so no error code.
            None => self.status == Some(403),
        }
    }

    /// The endpoint responded with something that is not a response of the service, as a local cloud does that lacks it.
    pub(crate) fn unsupported(&self) -> bool {
        self.code.is_none() && self.status.is_some_and(|status| status != 403 && status != 404)
    }

    /// The action that was called.
    pub(crate) fn action(&self) -> &'static str {
        self.action
    }

    /// The resource does not exist, by the error codes of all services.
    pub(crate) fn absent(&self) -> bool {
        let words = [
            "NoSuchEntity",
            "ResourceNotFoundException",
            "NotFound",
            "NotFoundException",
            "NoSuchKey",
            "NoSuchBucket",
        ];
        match &self.code {
            Some(code) => words.contains(&code.as_str()),
            None => self.status == Some(404),
        }
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }
}

/// An error and its causes in one line, without the SDK's debug output.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.ends_with(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        next = cause.source();
    }
    text
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        if failure.denied() {
            let (action, resource) = refused(&failure.message).unwrap_or((failure.action, &failure.resource));
            return Self::Denied {
                action: action.to_owned(),
                resource: resource.to_owned(),
                message: failure.message,
            };
        }
        let call = Self::Call {
            action: failure.action,
            resource: failure.resource,
            code: failure.code.unwrap_or_else(|| "no response".to_owned()),
            message: failure.message,
        };
        match failure.repeated_for {
            Some(time) => call.out_of_time(time),
            None => call,
        }
    }
}

/// The action and the resource in `… is not authorized to perform: ACTION on resource: RESOURCE …`.
pub(crate) fn refused(message: &str) -> Option<(&str, &str)> {
    let (_, rest) = message.split_once("not authorized to perform: ")?;
    let (action, rest) = rest.split_once(" on resource: ")?;
    let resource = rest.split_whitespace().next().unwrap_or(rest);
    Some((action.trim(), resource.trim_end_matches(['.', ',', ')'])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_action_and_resource() {
        let said = "User: arn:aws:iam::123456789012:user/app is not authorized to perform: cloudformation:CreateStack \
                    on resource: arn:aws:cloudformation:eu-west-1:123456789012:stack/demo/* because no identity-based \
                    policy allows the action";
        let resource = "arn:aws:cloudformation:eu-west-1:123456789012:stack/demo/*";
        assert_eq!(refused(said), Some(("cloudformation:CreateStack", resource)));
        assert_eq!(refused("Access Denied"), None);
    }
}

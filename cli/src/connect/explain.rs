//! Library errors, explained in terms of commands and options.

use zae_limiter::Error;
use zae_limiter::error::{Conflict, Internal, NotFound, Unavailable};
use zae_limiter::stack::Error as StackError;

const NO_CREDENTIALS: &str = "no AWS credentials were found; set AWS_PROFILE or AWS_ACCESS_KEY_ID, sign in with \
     `aws sso login`, or for a local cloud run: eval \"$(zae-limiter local env)\"";

/// The error message with the next step as a command, and without SDK debug output.
pub(crate) fn explain(error: &Error) -> String {
    match error {
        Error::PermissionDenied { message, .. } if lacks_credentials(message) => NO_CREDENTIALS.to_owned(),
        Error::PermissionDenied { message, .. } if fails_on_credentials(message) => {
            credentials_not_loaded(message)
        }
        Error::PermissionDenied {
            operation,
            table,
            message,
        } => format!(
            "{operation} on table {table} was denied: {}; check the credentials and their policy",
            cause(message)
        ),
        Error::NotFound(NotFound::Table { table, place }) => format!(
            "table {table} does not exist in {place}; deploy it with `zae-limiter deploy --name {table}`, \
             or check --name, --region, and --endpoint-url"
        ),
        Error::Unavailable(Unavailable::NoResponse {
            operation,
            table,
            reason,
            within,
        }) => format!(
            "{operation} on table {table} got no response within {} s: {}; check --region, --endpoint-url, and the \
             network, or try again later",
            within.as_secs_f64(),
            cause(reason)
        ),
        Error::Internal(Internal::BadRequest {
            operation,
            table,
            message,
        }) => format!(
            "{operation} on table {table} was refused: {}",
            without_debug_output(message)
        ),
        Error::NotFound(NotFound::Limits { entity, resource }) => format!(
            "no limits for entity {entity} on {resource}: none are set at the entity, resource, or system level; set \
             defaults with `zae-limiter system set-defaults -l rpm:100`"
        ),
        Error::NotFound(NotFound::Prices { resource }) => {
            format!("resource {resource} has no prices; set some with `zae-limiter prices set {resource}`")
        }
        Error::Internal(Internal::IncompatibleSchema { .. }) => {
            format!("{error}; run `zae-limiter check` for details")
        }
        other => other.to_string(),
    }
}

/// Whether a later attempt may succeed: the table did not respond, or other writers were faster. Credentials that cannot
/// be loaded are a different error.
pub(crate) fn is_unavailable(error: &Error) -> bool {
    match error {
        Error::Unavailable(Unavailable::NoResponse { reason, .. }) => !fails_on_credentials(reason),
        Error::Unavailable(_) | Error::Conflict(Conflict::Concurrent { .. }) => true,
        _ => false,
    }
}

/// The same for errors of stack operations.
pub(crate) fn explain_stack(error: &StackError) -> String {
    match error {
        StackError::Denied { message, .. } | StackError::Call { message, .. }
            if lacks_credentials(message) =>
        {
            NO_CREDENTIALS.to_owned()
        }
        StackError::Call {
            action,
            resource,
            message,
            ..
        } if is_unreachable(error) => format!(
            "{action} on {resource} got no response: {}; check --region, --endpoint-url, and the network",
            cause(message)
        ),
        StackError::Denied { message, .. } | StackError::Call { message, .. }
            if fails_on_credentials(message) =>
        {
            credentials_not_loaded(message)
        }
        StackError::NoSuchStack { stack, place } => format!(
            "stack {stack} does not exist in {place}; deploy it with `zae-limiter deploy -n {stack}`, or check --name, --region, \
             and --endpoint-url"
        ),
        StackError::NoRegion => crate::error::Error::NoRegion.to_string(),
        other => without_debug_output(&other.to_string()).to_owned(),
    }
}

/// Whether the call failed because there were no usable credentials.
pub(crate) fn is_without_credentials(error: &StackError) -> bool {
    matches!(error, StackError::Call { message, .. } if lacks_credentials(message) || fails_on_credentials(message))
}

/// Whether the endpoint could not be reached.
pub(crate) fn is_unreachable(error: &StackError) -> bool {
    let signs = ["dispatch failure", "connect", "timed out", "timeout"];
    let matches_sign = |message: &str| {
        let message = message.to_lowercase();
        signs.iter().any(|sign| message.contains(sign))
    };
    matches!(error, StackError::Call { message, .. } if matches_sign(message))
        && !is_without_credentials(error)
}

/// Whether the service could not be asked: the caller may not, it does not respond, or the endpoint does not have it.
pub(crate) fn cannot_be_asked(error: &StackError) -> bool {
    let refused = matches!(error, StackError::Denied { .. });
    refused || is_without_credentials(error) || is_unreachable(error) || is_unsupported(error)
}

/// Whether the endpoint does not have the service: a local cloud without it, or one for which the credentials are not valid.
fn is_unsupported(error: &StackError) -> bool {
    let StackError::Call { code, message, .. } = error else {
        return false;
    };
    let codes = [
        // The response is not one of the service.
        "no response",
        "InvalidAction",
        "InvalidClientTokenId",
        "NotImplemented",
        "UnknownOperationException",
        "UnrecognizedClientException",
        "UnsupportedOperation",
    ];
    // In the messages of local clouds that lack a service.
    let signs = [
        "not implemented",
        "not yet implemented",
        "not enabled",
        "not supported",
    ];
    codes.contains(&code.as_str()) || signs.iter().any(|sign| message.contains(sign))
}

fn lacks_credentials(message: &str) -> bool {
    let signs = [
        "no providers in chain",
        "CredentialsNotLoaded",
        "credential provider was not enabled",
    ];
    signs.iter().any(|sign| message.contains(sign))
}

fn fails_on_credentials(message: &str) -> bool {
    let signs = [
        "while loading credentials",
        // The words of the library, and of the SDK for a provider that hangs.
        "the AWS credentials could not be loaded",
        "identity resolver timed out",
    ];
    signs.iter().any(|sign| message.contains(sign))
}

fn credentials_not_loaded(message: &str) -> String {
    // The library's own words around the reason.
    let reason = message
        .strip_prefix("the AWS credentials could not be loaded: ")
        .unwrap_or(message);
    let reason = reason.split("; set AWS_PROFILE").next().unwrap_or(reason);
    let reason = match reason.find("profile `") {
        Some(start) => &reason[start..],
        None => last_cause(without_debug_output(reason)),
    };
    format!(
        "the AWS credentials could not be loaded: {reason}; set AWS_PROFILE or AWS_ACCESS_KEY_ID, sign in with \
         `aws sso login`, or for a local cloud run: eval \"$(zae-limiter local env)\""
    )
}

/// The last cause of a chain of SDK errors; `-v` shows the whole chain.
fn cause(message: &str) -> &str {
    let message = without_debug_output(message);
    if message.starts_with("dispatch failure") {
        return last_cause(message);
    }
    message.trim_end_matches('.')
}

fn last_cause(chain: &str) -> &str {
    let last = chain.rsplit(": ").next().unwrap_or(chain);
    last.trim_end_matches('.')
}

/// Removes the debug output that the SDK appends to its messages in parentheses.
pub(crate) fn without_debug_output(message: &str) -> &str {
    let debug = [
        "(DispatchFailure(",
        "(ConstructionFailure(",
        "(TimeoutError(",
        "(ResponseError(",
        "(ServiceError(",
    ]
    .iter()
    .filter_map(|sign| message.find(sign))
    .min();
    message[..debug.unwrap_or(message.len())].trim_end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_output_is_removed_from_messages() {
        assert_eq!(
            without_debug_output(
                "dispatch failure: io error: refused (DispatchFailure(DispatchFailure { source: .. }))"
            ),
            "dispatch failure: io error: refused"
        );
        assert_eq!(
            cause("dispatch failure: io error: Connection refused (os error 111)"),
            "Connection refused (os error 111)"
        );
        assert_eq!(cause("AccessDenied: no: never"), "AccessDenied: no: never");
        assert_eq!(
            without_debug_output("AccessDenied: you (all) may not"),
            "AccessDenied: you (all) may not"
        );
    }

    #[test]
    fn credentials_that_fail_to_load_are_explained_in_one_sentence() {
        let library = "the AWS credentials could not be loaded: an error occurred while loading credentials: failed to load \
                       IMDS session token: IMDS is disabled.; set AWS_PROFILE or AWS_ACCESS_KEY_ID, or sign in";
        let sdk = "dispatch failure: other: an error occurred while loading credentials: IMDS is disabled.";
        for message in [library, sdk] {
            let text = credentials_not_loaded(message);
            let start = "the AWS credentials could not be loaded: IMDS is disabled; set AWS_PROFILE";
            assert!(
                text.starts_with(start) && text.matches("AWS_PROFILE").count() == 1,
                "{text}"
            );
        }
        let profile = "the AWS credentials could not be loaded: profile `ops` does not exist or provides no credentials: no; set \
                       AWS_PROFILE";
        assert!(credentials_not_loaded(profile).contains("loaded: profile `ops` does not exist"));
    }

    #[test]
    fn a_service_that_is_denied_unreachable_or_missing_cannot_be_asked() {
        let denied = StackError::Denied {
            action: "lambda:ListEventSourceMappings".to_owned(),
            resource: "*".to_owned(),
            message: "no".to_owned(),
        };
        assert!(cannot_be_asked(&denied));
        let call = |code: &str, message: &str| StackError::Call {
            action: "cloudformation:DescribeStacks",
            resource: "demo".to_owned(),
            code: code.to_owned(),
            message: message.to_owned(),
        };
        for (code, message) in [
            ("no response", "dispatch failure: io error: Connection refused"),
            ("no response", "unhandled error: invalid root"),
            ("UnknownOperationException", ""),
            ("InternalFailure", "Service 'lambda' is not enabled."),
        ] {
            assert!(cannot_be_asked(&call(code, message)), "{code}: {message}");
        }
        for (code, message) in [
            ("Throttling", "Rate exceeded"),
            ("ValidationError", "1 validation error detected"),
            ("InternalFailure", "try again"),
        ] {
            assert!(!cannot_be_asked(&call(code, message)), "{code}: {message}");
        }
    }
}

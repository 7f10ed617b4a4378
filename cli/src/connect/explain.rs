//! The limiter's errors in the words of the command line.

use zae_limiter::Error;
use zae_limiter::stack::Error as StackError;

const NO_CREDENTIALS: &str = "no AWS credentials were found; set AWS_PROFILE or AWS_ACCESS_KEY_ID, sign in with \
     `aws sso login`, or for a local cloud run: eval \"$(zae-limiter local env)\"";

/// The error, with what to do next in terms of commands, and without what only a debugger wants.
pub(crate) fn explain(error: &Error) -> String {
    match error {
        Error::PermissionDenied { message, .. } if lacks_credentials(message) => NO_CREDENTIALS.to_owned(),
        Error::Unavailable { reason, .. } if fails_on_credentials(reason) => unloaded(reason),
        Error::PermissionDenied {
            operation,
            table,
            message,
        } => format!(
            "{operation} on table {table} was denied: {}; check the credentials and their policy",
            cause(message)
        ),
        Error::TableMissing { table, place } => format!(
            "there is no table {table} in {place}; deploy it with `zae-limiter deploy --name {table}`, \
             or check --name, --region and --endpoint-url"
        ),
        Error::Unavailable {
            operation,
            table,
            reason,
            within,
        } => format!(
            "{operation} on table {table} got no answer within {} s: {}; check --region, --endpoint-url and the \
             network, or try again later",
            within.as_secs_f64(),
            cause(reason)
        ),
        Error::Refused {
            operation,
            table,
            message,
        } => format!("{operation} on table {table} was refused: {}", plain(message)),
        Error::NoLimits { entity, resource } => format!(
            "no limits for entity {entity} on {resource}: none are stored at entity, resource or system level; store \
             some with `zae-limiter system set-defaults -l rpm:100`"
        ),
        Error::IncompatibleSchema { .. } => format!("{error}; `zae-limiter check` tells more"),
        other => other.to_string(),
    }
}

/// Whether the table did not answer. Credentials that cannot be loaded are not that.
pub(crate) fn is_unavailable(error: &Error) -> bool {
    error.is_unavailable()
        && !matches!(error, Error::Unavailable { reason, .. } if fails_on_credentials(reason))
}

/// The same for stacks.
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
            "{action} on {resource} got no answer: {}; check --region, --endpoint-url and the network",
            cause(message)
        ),
        StackError::NoSuchStack { stack } => format!(
            "there is no stack {stack}; deploy it with `zae-limiter deploy -n {stack}`, or check --name, --region and \
             --endpoint-url"
        ),
        StackError::NoRegion => crate::error::Error::NoRegion.to_string(),
        other => plain(&other.to_string()).to_owned(),
    }
}

/// Whether nobody could be asked, for want of credentials.
pub(crate) fn is_without_credentials(error: &StackError) -> bool {
    matches!(error, StackError::Call { message, .. } if lacks_credentials(message) || fails_on_credentials(message))
}

/// Whether nobody answered.
pub(crate) fn is_unreachable(error: &StackError) -> bool {
    let signs = ["dispatch failure", "connect", "timed out", "timeout"];
    let told = |message: &str| {
        let message = message.to_lowercase();
        signs.iter().any(|sign| message.contains(sign))
    };
    matches!(error, StackError::Call { message, .. } if told(message)) && !is_without_credentials(error)
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
    message.contains("while loading credentials")
}

fn unloaded(message: &str) -> String {
    format!(
        "the AWS credentials could not be loaded: {}; set AWS_PROFILE or AWS_ACCESS_KEY_ID, sign in with \
         `aws sso login`, or for a local cloud run: eval \"$(zae-limiter local env)\"",
        cause(message)
    )
}

/// The last of a chain of causes, if the text is one; `-v` tells the whole.
fn cause(message: &str) -> &str {
    let message = plain(message);
    let chained = message.starts_with("dispatch failure");
    let last = message.rsplit(": ").next().filter(|_| chained);
    last.unwrap_or(message).trim_end_matches('.')
}

/// Without the debug form of the SDK's error, which follows its text in brackets.
pub(crate) fn plain(message: &str) -> &str {
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
    fn a_message_ends_where_its_debug_form_begins() {
        assert_eq!(
            plain("dispatch failure: io error: refused (DispatchFailure(DispatchFailure { source: .. }))"),
            "dispatch failure: io error: refused"
        );
        assert_eq!(
            cause("dispatch failure: io error: Connection refused (os error 111)"),
            "Connection refused (os error 111)"
        );
        assert_eq!(cause("AccessDenied: no: never"), "AccessDenied: no: never");
        assert_eq!(
            plain("AccessDenied: you (all) may not"),
            "AccessDenied: you (all) may not"
        );
    }
}

//! Why a part of a page could not be loaded, shown where it would be.

use maud::{Markup, html};
use zae_limiter::Error;
use zae_limiter::error::{Conflict, Internal, Invalid, NotFound, Unavailable};

/// Why something could not be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    /// What is the matter, in a few words.
    pub(crate) title: &'static str,
    /// The cause.
    pub(crate) cause: String,
    /// What to do about it.
    pub(crate) advice: &'static str,
    /// True if the request, and not the table, is at fault.
    pub(crate) invalid: bool,
}

impl Failure {
    pub(crate) fn invalid(field: &str, value: &str, rule: &str) -> Self {
        Self {
            title: "This cannot be looked up",
            cause: format!("{field} {value:?} is invalid: {rule}"),
            advice: "Correct the value and try again.",
            invalid: true,
        }
    }

    pub(crate) fn to_html(&self) -> Markup {
        html! {
            div.alert role="alert" {
                p.alert-title { (self.title) }
                p.cause { (self.cause) }
                p { (self.advice) }
            }
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let (title, advice, invalid) = match &error {
            Error::NotFound(NotFound::Table { .. }) => (
                "The table does not exist",
                "Deploy the stack, or start the command with another --name, --region or --endpoint-url.",
                false,
            ),
            Error::PermissionDenied { .. } => (
                "Access was denied",
                "Use credentials that may read the table; `zae-limiter policy` prints the policies.",
                false,
            ),
            Error::Unavailable(Unavailable::FileLocked { .. }) => (
                "Another process holds the file",
                "Stop the other process, then reload this page.",
                false,
            ),
            Error::Internal(Internal::IncompatibleSchema { .. }) => (
                "The table has another format",
                "Use the release that the message names, or migrate the table.",
                false,
            ),
            Error::Invalid(Invalid::Name(_) | Invalid::Limit(_) | Invalid::Argument { .. }) => (
                "This cannot be looked up",
                "Correct the value and try again.",
                true,
            ),
            Error::Conflict(Conflict::Concurrent { .. }) => (
                "This was changed at the same time",
                "Reload the page and look at what is stored now.",
                false,
            ),
            unavailable if unavailable.is_unavailable() => (
                "The table does not respond",
                "Reload this page. If the problem persists, check the network, the region and the state of the table.",
                false,
            ),
            _ => ("This could not be loaded", "Reload this page.", false),
        };
        Self {
            title,
            cause: error.to_string(),
            advice,
            invalid,
        }
    }
}

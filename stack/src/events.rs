//! Progress events.

use std::fmt;

use aws_smithy_types::DateTime;
use aws_smithy_types::date_time::Format;
use serde::{Deserialize, Serialize};
use zae_limiter_template::LambdaFunction;

/// A step of [`ensure`](crate::Stack::ensure), [`apply`](crate::Stack::apply) or [`delete`](crate::Stack::delete).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The bucket for the functions' archives was created.
    BucketCreated {
        /// Its name.
        bucket: String,
    },
    /// A function's archive was uploaded.
    Uploaded {
        /// The function.
        function: LambdaFunction,
        /// Its key in the bucket.
        key: String,
        /// Its size.
        bytes: usize,
    },
    /// An operation was started.
    Started {
        /// `create`, `import`, `update` or `delete`.
        operation: &'static str,
    },
    /// Another process has started an operation; waiting for its end.
    Awaiting {
        /// The stack's status.
        status: String,
    },
    /// A resource, or the stack itself, has a new status.
    Resource(ResourceEvent),
    /// A step failed for a temporary reason and is retried once.
    TryingAgain {
        /// What failed.
        reason: String,
        /// Seconds until the retry.
        after_seconds: u64,
    },
    /// A check before the change could not be made.
    NotChecked {
        /// What was not checked.
        what: String,
        /// Why.
        reason: String,
    },
    /// Cleaning up after a failure failed too, and is left to do by hand.
    Warning {
        /// What is left, and why.
        text: String,
    },
    /// A retained table or bucket was deleted by a purge.
    Purged {
        /// What it was.
        what: String,
    },
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BucketCreated { bucket } => write!(f, "created bucket {bucket}"),
            Self::Uploaded { function, key, bytes } => {
                write!(f, "uploaded the {function} ({bytes} bytes) as {key}")
            }
            Self::Started { operation } => write!(f, "started: {operation} stack"),
            Self::Awaiting { status } => write!(f, "waiting for a running operation ({status})"),
            Self::Resource(event) => event.fmt(f),
            Self::TryingAgain {
                reason,
                after_seconds,
            } => write!(f, "retrying in {after_seconds} s: {reason}"),
            Self::NotChecked { what, reason } => write!(f, "not checked: {what} ({reason})"),
            Self::Warning { text } => write!(f, "warning: {text}"),
            Self::Purged { what } => write!(f, "deleted {what}"),
        }
    }
}

/// Receives [`Event`]s. Any `Fn(&Event)` is one.
///
/// ```
/// use zae_limiter_stack::{Event, Observer};
///
/// let print = |event: &Event| println!("{event}");
/// print.observe(&Event::Started { operation: "create" });
/// ```
pub trait Observer: Send + Sync {
    /// Called for each event, in order. Must return quickly: the reconciler waits for it.
    fn observe(&self, event: &Event);
}

impl<F: Fn(&Event) + Send + Sync> Observer for F {
    fn observe(&self, event: &Event) {
        self(event);
    }
}

/// An event of a stack or resource, from CloudFormation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceEvent {
    /// CloudFormation's id of the event.
    pub id: String,
    /// The resource in the template; the stack's name for the stack itself.
    pub logical_id: String,
    /// The resource in the account.
    pub physical_id: String,
    /// Such as `AWS::DynamoDB::Table`.
    pub resource_type: String,
    /// Such as `CREATE_IN_PROGRESS`.
    pub status: String,
    /// The reason, if CloudFormation gives one.
    pub reason: Option<String>,
    /// When, as RFC 3339.
    pub time: String,
    /// The token of the request that started the operation.
    pub token: Option<String>,
}

impl ResourceEvent {
    pub(crate) fn of(event: &aws_sdk_cloudformation::types::StackEvent) -> Self {
        let text = |value: Option<&str>| value.unwrap_or_default().to_owned();
        let filled = |value: Option<&str>| value.filter(|value| !value.is_empty()).map(str::to_owned);
        Self {
            id: text(event.event_id()),
            logical_id: text(event.logical_resource_id()),
            physical_id: text(event.physical_resource_id()),
            resource_type: text(event.resource_type()),
            status: event
                .resource_status()
                .map(|status| status.as_str().to_owned())
                .unwrap_or_default(),
            reason: filled(event.resource_status_reason()),
            time: event.timestamp().map(timestamp).unwrap_or_default(),
            token: filled(event.client_request_token()),
        }
    }

    /// Whether it is an event of the stack itself.
    pub fn is_of_stack(&self) -> bool {
        self.resource_type == "AWS::CloudFormation::Stack"
    }
}

impl fmt::Display for ResourceEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.time, self.status, self.logical_id)?;
        self.reason.iter().try_for_each(|reason| write!(f, ": {reason}"))
    }
}

/// Whether an operation on the stack starts with this event. A rollback belongs to the operation that it undoes.
pub(crate) fn starts_operation(event: &ResourceEvent) -> bool {
    let starts = [
        "CREATE_IN_PROGRESS",
        "UPDATE_IN_PROGRESS",
        "DELETE_IN_PROGRESS",
        "IMPORT_IN_PROGRESS",
        "REVIEW_IN_PROGRESS",
    ];
    event.is_of_stack() && starts.contains(&event.status.as_str())
}

/// RFC 3339; empty for a time that it cannot express.
pub(crate) fn timestamp(time: &DateTime) -> String {
    time.fmt(Format::DateTime).unwrap_or_default()
}

//! What a failed call means for the records that it was about.

use zae_limiter_dynamo::CallError;

/// What has to happen to the records that a failed call was about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remedy {
    /// They are delivered again: the same call may succeed later.
    Redelivery,
    /// They become dead letters, since the same call never succeeds. Unknown errors are here: one record must not
    /// block its shard.
    DeadLetter,
    /// The whole shard waits until an operator fixes permissions, credentials, keys or a missing resource.
    Repair,
}

impl Remedy {
    /// The remedy for an error.
    ///
    /// ```
    /// use zae_limiter_function::{CallError, Remedy};
    ///
    /// assert_eq!(Remedy::of(&CallError::Throttled("slow down".into())), Remedy::Redelivery);
    /// assert_eq!(Remedy::of(&CallError::Refused("FutureException".into())), Remedy::DeadLetter);
    /// assert_eq!(Remedy::of(&CallError::Denied("AccessDenied".into())), Remedy::Repair);
    /// ```
    pub fn of(error: &CallError) -> Self {
        match error {
            CallError::Denied(_) | CallError::TableMissing => Self::Repair,
            error if error.is_transient() => Self::Redelivery,
            _ => Self::DeadLetter,
        }
    }
}

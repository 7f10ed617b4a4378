//! What can go wrong, to what, and what to do about it.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use zae_limiter_schema::bucket::{BucketConfig, BucketKey};
use zae_limiter_schema::{EntityId, InvalidLimit, InvalidName, LimitName, Malformed, Resource};

use crate::status::RateLimitExceeded;

/// The result of most operations of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Everything that an operation can fail with.
///
/// ```
/// use zae_limiter::{Error, NewEntity};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> zae_limiter::Result<()> {
/// # let repository = zae_limiter::RateLimiter::embedded().build_repository().await?;
/// match repository.create_entity(NewEntity::new("user#1")).await {
///     Err(Error::Name(invalid)) => assert_eq!(invalid.field(), "entity id"),
///     other => panic!("unexpected: {other:?}"),
/// }
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A name breaks a rule. Nothing was sent.
    #[error(transparent)]
    Name(#[from] InvalidName),

    /// A limit breaks a rule. Nothing was sent.
    #[error(transparent)]
    Limit(#[from] InvalidLimit),

    /// An argument breaks a rule. Nothing was sent.
    #[error("{field} {value:?} is invalid: {rule}")]
    Invalid {
        /// Which argument.
        field: &'static str,
        /// Its value, shortened.
        value: String,
        /// The rule it breaks.
        rule: String,
    },

    /// There is too little of a limit. Nothing was taken.
    #[error(transparent)]
    RateLimitExceeded(Arc<RateLimitExceeded>),

    /// The entity that was to be created is already there.
    #[error("entity {entity} exists already; update it, or choose another id")]
    EntityExists {
        /// The entity.
        entity: EntityId,
    },

    /// There is no such entity.
    #[error("there is no entity {entity}; create it first")]
    EntityNotFound {
        /// The entity.
        entity: EntityId,
    },

    /// The parent that was named does not exist.
    #[error(
        "entity {entity} cannot have the parent {parent}: there is no such entity; create the parent first"
    )]
    ParentNotFound {
        /// The child.
        entity: EntityId,
        /// The parent that was named.
        parent: EntityId,
    },

    /// An entity would be, or was stored by another program as, its own ancestor. Nothing was written or charged. Remove
    /// a parent to repair a stored cycle.
    #[error("entity {entity} cannot have {parent} above it: {entity} is itself above {parent}")]
    ParentCycle {
        /// The entity that is its own ancestor.
        entity: EntityId,
        /// The entity above it that has it as an ancestor.
        parent: EntityId,
    },

    /// The chain of parents would be too long, or another program has stored one that is. Nothing was written or
    /// charged.
    #[error("entity {entity} cannot have {parent} above it: at most {most} levels of parents are allowed")]
    TooDeep {
        /// The entity with too many levels of parents.
        entity: EntityId,
        /// The parent that was named, or the first stored one that is too far above.
        parent: EntityId,
        /// The most levels of parents that an entity may have.
        most: usize,
    },

    /// The entity is a parent and cannot be deleted before its children.
    #[error("entity {entity} has children, such as {child}; delete them or give them another parent first")]
    HasChildren {
        /// The entity.
        entity: EntityId,
        /// One of its children.
        child: EntityId,
    },

    /// The configuration of a level is no longer stored as it was seen. Nothing was written.
    #[error("{level} has changed since it was looked at; look again, then decide")]
    ConfigChanged {
        /// The level.
        level: String,
    },

    /// No limits are configured at any level.
    #[error(
        "no limits for entity {entity} on {resource}: none are stored at entity, resource or system level; \
         store some, or pass limits with the call"
    )]
    NoLimits {
        /// The entity.
        entity: EntityId,
        /// The resource.
        resource: Resource,
    },

    /// The table does not exist.
    #[error(
        "there is no table {table} in {place}; deploy the stack {table}, or check the name, region and endpoint"
    )]
    TableMissing {
        /// The table.
        table: String,
        /// Region, endpoint or file.
        place: String,
    },

    /// The credentials are missing, wrong, or not allowed to do this.
    #[error("{operation} on table {table} was denied: {message}; check the credentials and their policy")]
    PermissionDenied {
        /// The API operation.
        operation: &'static str,
        /// The table.
        table: String,
        /// What AWS said.
        message: String,
    },

    /// The table could not be reached, or did not answer, or was too busy, for the whole time budget.
    #[error("{operation} on table {table} got no answer within {within:?}: {reason}; try again later")]
    Unavailable {
        /// The API operation.
        operation: &'static str,
        /// The table.
        table: String,
        /// What happened at the last attempt.
        reason: String,
        /// The time budget.
        within: Duration,
    },

    /// This process asks for more at a time than it can serve. Nothing was sent. The table is not at fault, so that no
    /// policy lets this pass.
    #[error(
        "there are {most} {what} already, so that entity {entity} on {resource} was not asked for; \
         make fewer calls at a time"
    )]
    Overloaded {
        /// The entity.
        entity: EntityId,
        /// The resource.
        resource: Resource,
        /// What there is too much of.
        what: &'static str,
        /// How many there may be.
        most: usize,
    },

    /// Other writers changed the same item before every attempt of this call, or changed the same field of an entity to
    /// another value. Nothing was written. Counts as
    /// [unavailable](Error::is_unavailable).
    #[error("other writers changed {what} at the same time; try again later")]
    Contended {
        /// The item, such as a bucket or an entity, or the field of an entity.
        what: String,
    },

    /// A change to a bucket got no response, and the table no longer shows whether it was applied. It is not sent
    /// again, because applying it twice would give tokens away.
    #[error("whether a change to {what} was written is unknown; it is not sent again")]
    OutcomeUnknown {
        /// The bucket.
        what: String,
    },

    /// The limiter was [shut down](crate::RateLimiter::shutdown). Nothing was sent, and no policy lets the call pass.
    #[error("the limiter of table {table} is shut down; build a new one")]
    ShutDown {
        /// The table.
        table: String,
    },

    /// The store's file is locked by another process.
    #[error("another process holds {}; stop it, or use another file", path.display())]
    FileHeld {
        /// The file.
        path: PathBuf,
    },

    /// The embedded store cannot be used.
    #[error("{place} {reason}")]
    Store {
        /// The file, or memory.
        place: String,
        /// Why not.
        reason: String,
    },

    /// The table was written for another version of this crate.
    #[error("table {table} has schema version {schema}, which this client ({client}) cannot use: {reason}")]
    IncompatibleSchema {
        /// The table.
        table: String,
        /// The table's schema version.
        schema: String,
        /// This crate's version.
        client: String,
        /// What does not fit and what to do.
        reason: String,
    },

    /// DynamoDB refused a request as malformed.
    #[error("{operation} on table {table} was refused: {message}")]
    Refused {
        /// The API operation.
        operation: &'static str,
        /// The table.
        table: String,
        /// What DynamoDB said.
        message: String,
    },

    /// The stack could not be brought to what its options say.
    #[cfg(feature = "stack")]
    #[error(transparent)]
    Stack(Arc<zae_limiter_stack::Error>),

    /// An item of the table is not what it should be.
    #[error(transparent)]
    Malformed(#[from] Malformed),
}

impl Error {
    pub(crate) fn invalid(field: &'static str, value: impl AsRef<str>, rule: impl Into<String>) -> Self {
        let value = value.as_ref();
        let shortened = match value.char_indices().nth(50) {
            Some((cut, _)) => format!("{}...", &value[..cut]),
            None => value.to_owned(),
        };
        Self::Invalid {
            field,
            value: shortened,
            rule: rule.into(),
        }
    }

    pub(crate) fn contended(what: &impl fmt::Display) -> Self {
        Self::Contended {
            what: what.to_string(),
        }
    }

    /// Reports whether the table could not be used at this moment: it could not be reached, did not respond, was
    /// throttled, other writers kept changing the same item, or another process holds its file. These are the errors
    /// that [`OnUnavailable`](crate::OnUnavailable) decides about. Invalid arguments, missing tables, denied
    /// permissions and a limiter that is shut down never count as unavailable.
    pub fn is_unavailable(&self) -> bool {
        matches!(
            self,
            Self::Unavailable { .. }
                | Self::Contended { .. }
                | Self::OutcomeUnknown { .. }
                | Self::FileHeld { .. }
        )
    }
}

impl From<zae_limiter_dynamo::Error> for Error {
    fn from(error: zae_limiter_dynamo::Error) -> Self {
        use zae_limiter_dynamo::{CallError, Error as Failed};

        match error {
            Failed::Call {
                operation,
                table,
                place,
                within,
                cause,
            } => match cause {
                CallError::Denied(message) => Self::PermissionDenied {
                    operation,
                    table,
                    message,
                },
                CallError::TableMissing => Self::TableMissing { table, place },
                CallError::FileHeld(path) => Self::FileHeld { path },
                transient if transient.is_transient() => Self::Unavailable {
                    operation,
                    table,
                    reason: transient.to_string(),
                    within,
                },
                refused => Self::Refused {
                    operation,
                    table,
                    message: refused.to_string(),
                },
            },
            Failed::FileHeld { path } => Self::FileHeld { path },
            Failed::Malformed(malformed) => Self::Malformed(malformed),
            Failed::Store { place, reason } => Self::Store { place, reason },
            other => Self::Store {
                place: "the table".to_owned(),
                reason: other.to_string(),
            },
        }
    }
}

pub(crate) fn unknown_limit(limit: &LimitName, config: &BucketConfig, key: &BucketKey) -> Error {
    let known: Vec<_> = config.limits().names().map(LimitName::as_str).collect();
    let rule = format!(
        "{} on {} has the limits {}",
        key.entity,
        key.resource,
        known.join(", ")
    );
    Error::invalid("limit", limit.as_str(), rule)
}

#[cfg(test)]
mod tests;

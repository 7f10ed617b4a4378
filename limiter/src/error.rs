//! What can go wrong, to what, and what to do about it.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use zae_limiter_schema::bucket::{BucketConfig, BucketKey};
use zae_limiter_schema::{EntityId, LimitName, Resource};

/// Why an [`EmbeddedStore`](crate::EmbeddedStore) cannot be opened.
#[cfg(feature = "embedded")]
pub use zae_limiter_dynamo::Error as StoreError;
pub use zae_limiter_schema::{InvalidLimit, InvalidName, Malformed};

use crate::config::resolution::ConfigOrigin;
use crate::status::Refusal;

/// The result of most operations of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Everything that an operation can fail with, grouped by what the caller does about it. The detail is inside.
///
/// ```
/// use zae_limiter::error::Invalid;
/// use zae_limiter::{Error, NewEntity};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> zae_limiter::Result<()> {
/// # let repository = zae_limiter::RateLimiter::embedded().build_repository().await?;
/// match repository.create_entity(NewEntity::new("user#1")).await {
///     Err(Error::Invalid(Invalid::Name(name))) => assert_eq!(name.field(), "entity id"),
///     other => panic!("unexpected: {other:?}"),
/// }
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The limits do not allow the call. Nothing was taken. Wait, or refuse your caller.
    #[error(transparent)]
    Refused(Arc<Refusal>),

    /// The entity may not use the resource: the [mode](crate::Mode) is `disabled`. Nothing was taken. Refuse your caller;
    /// waiting does not help.
    #[error("entity {entity} may not use {resource}: the mode of the {} is disabled", level(*mode_from))]
    Disabled {
        /// The entity: the one that called, or a parent that is charged too.
        entity: EntityId,
        /// The resource.
        resource: Resource,
        /// The level that says so.
        mode_from: ConfigOrigin,
    },

    /// The table cannot be used now. [`OnUnavailable`](crate::OnUnavailable) decides what happens to acquires.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),

    /// A name, a limit or another argument breaks a rule. Nothing was sent. Change the program or its input.
    #[error(transparent)]
    Invalid(#[from] Invalid),

    /// Something that the operation needs does not exist. Create it first.
    #[error(transparent)]
    NotFound(#[from] NotFound),

    /// What is stored does not allow the change. Nothing was written. Read again, then decide.
    #[error(transparent)]
    Conflict(#[from] Conflict),

    /// The credentials are missing, wrong, or not allowed to do this.
    #[error("{operation} on table {table} was denied: {message}; check the credentials and their policy")]
    PermissionDenied {
        /// The API operation.
        operation: &'static str,
        /// The table.
        table: String,
        /// The message from AWS.
        message: String,
    },

    /// This process has too many calls in progress. Nothing was sent. The table is not at fault, so no policy lets the
    /// call pass. Make fewer calls at a time.
    #[error("too many {what} (limit {limit}) for entity {entity} on {resource}; make fewer calls at a time")]
    Overloaded {
        /// The entity.
        entity: EntityId,
        /// The resource.
        resource: Resource,
        /// What there is too much of.
        what: &'static str,
        /// How many are allowed.
        limit: usize,
    },

    /// The limiter was [shut down](crate::RateLimiter::shutdown). Nothing was sent, and no policy lets the call pass.
    #[error("the limiter for table {table} is shut down; build a new one")]
    ShutDown {
        /// The table.
        table: String,
    },

    /// The stack could not be brought to the state that its options describe.
    #[cfg(feature = "stack")]
    #[error(transparent)]
    Stack(Arc<zae_limiter_stack::Error>),

    /// The table, its data or its version do not fit this client. An operator must act.
    #[error(transparent)]
    Internal(#[from] Internal),
}

/// Why an argument was rejected, inside [`Error::Invalid`].
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Invalid {
    /// A name breaks a rule.
    #[error(transparent)]
    Name(#[from] InvalidName),

    /// A limit breaks a rule.
    #[error(transparent)]
    Limit(#[from] InvalidLimit),

    /// Another argument breaks a rule.
    #[error("{field} {value:?} is invalid: {rule}")]
    Argument {
        /// Which argument.
        field: &'static str,
        /// Its value, shortened.
        value: String,
        /// The rule it breaks.
        rule: String,
    },
}

/// What does not exist, inside [`Error::NotFound`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotFound {
    /// There is no such entity.
    #[error("there is no entity {entity}; create it first")]
    Entity {
        /// The entity.
        entity: EntityId,
    },

    /// The parent does not exist.
    #[error(
        "entity {entity} cannot have the parent {parent}: there is no such entity; create the parent first"
    )]
    Parent {
        /// The child.
        entity: EntityId,
        /// The missing parent.
        parent: EntityId,
    },

    /// No limits are configured at any level.
    #[error(
        "no limits for entity {entity} on {resource}: none are stored at entity, resource or system level; \
         store some, or pass limits with the call"
    )]
    Limits {
        /// The entity.
        entity: EntityId,
        /// The resource.
        resource: Resource,
    },

    /// Neither the resource nor the system has prices.
    #[error(
        "resource {resource} has no prices, and neither has the system; set some, or count without money"
    )]
    Prices {
        /// The resource.
        resource: Resource,
    },

    /// The table does not exist.
    #[error(
        "there is no table {table} in {place}; deploy the stack {table}, or check the name, region and endpoint"
    )]
    Table {
        /// The table.
        table: String,
        /// Region, endpoint or file.
        place: String,
    },
}

/// Why a change is refused, inside [`Error::Conflict`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Conflict {
    /// The entity already exists.
    #[error("entity {entity} already exists; update it, or choose another id")]
    EntityExists {
        /// The entity.
        entity: EntityId,
    },

    /// An entity would be its own ancestor, or another program stored it that way. Remove a parent to repair a stored
    /// cycle.
    #[error("entity {entity} cannot have {parent} above it: {entity} is itself above {parent}")]
    ParentCycle {
        /// The entity that is its own ancestor.
        entity: EntityId,
        /// The entity above it that has it as an ancestor.
        parent: EntityId,
    },

    /// The chain of parents would be too long, or another program stored one that is.
    #[error("entity {entity} cannot have {parent} above it: at most {limit} levels of parents are allowed")]
    TooManyParents {
        /// The entity with too many levels of parents.
        entity: EntityId,
        /// The requested parent, or the first stored one that is too far above.
        parent: EntityId,
        /// How many levels of parents an entity may have.
        limit: usize,
    },

    /// The entity is a parent and cannot be deleted before its children.
    #[error("entity {entity} has children, such as {child}; delete them or give them another parent first")]
    HasChildren {
        /// The entity.
        entity: EntityId,
        /// One of its children.
        child: EntityId,
    },

    /// The configuration of a level is no longer what the caller read.
    #[error("{level} has changed since it was read; read it again, then decide")]
    ConfigChanged {
        /// The level.
        level: String,
    },

    /// The mode of an entity on a resource changed with every attempt to admit the call.
    #[error("the mode of entity {entity} on {resource} changed at the same time; try again")]
    ModeChanged {
        /// The entity.
        entity: EntityId,
        /// The resource.
        resource: Resource,
    },

    /// The idempotency key stands for another change of a bucket of the entity.
    #[error(
        "the idempotency key was used for another change of {entity}: {request}; use a new key for a new change"
    )]
    KeyReused {
        /// The entity.
        entity: EntityId,
        /// What was asked for with the key.
        request: String,
    },

    /// Other writers changed the same item before every attempt, or set the same field of an entity to another value.
    #[error("other writers changed {what} at the same time; try again later")]
    Concurrent {
        /// The item, such as an entity, or the field of an entity.
        what: String,
    },
}

/// Why the table cannot be used now, inside [`Error::Unavailable`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unavailable {
    /// The table could not be reached, did not respond, or was too busy, for the whole time budget.
    #[error("{operation} on table {table} got no response within {within:?}: {reason}; try again later")]
    NoResponse {
        /// The API operation.
        operation: &'static str,
        /// The table.
        table: String,
        /// What happened at the last attempt.
        reason: String,
        /// The time budget.
        within: Duration,
    },

    /// A change to a bucket got no response, and the table no longer shows whether it was applied. It is not sent
    /// again, because applying it twice would refund too much.
    #[error("the result of a change to {what} is unknown; it is not sent again")]
    OutcomeUnknown {
        /// The bucket.
        what: String,
    },

    /// Another process has locked the store's file.
    #[error("another process has locked {}; stop it, or use another file", path.display())]
    FileLocked {
        /// The file.
        path: PathBuf,
    },
}

/// What does not fit this client, inside [`Error::Internal`].
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Internal {
    /// DynamoDB rejected a request as malformed.
    #[error("DynamoDB rejected {operation} on table {table}: {message}")]
    BadRequest {
        /// The API operation.
        operation: &'static str,
        /// The table.
        table: String,
        /// The message from DynamoDB.
        message: String,
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

    /// An item of the table cannot be read.
    #[error(transparent)]
    Malformed(#[from] Malformed),

    /// The background thread of a blocking limiter does not run.
    #[error("the background thread {reason}")]
    BackgroundThread {
        /// Why not.
        reason: String,
    },
}

impl From<InvalidName> for Error {
    fn from(invalid: InvalidName) -> Self {
        Self::Invalid(invalid.into())
    }
}

impl From<InvalidLimit> for Error {
    fn from(invalid: InvalidLimit) -> Self {
        Self::Invalid(invalid.into())
    }
}

impl From<Malformed> for Error {
    fn from(malformed: Malformed) -> Self {
        Self::Internal(malformed.into())
    }
}

impl Error {
    pub(crate) fn invalid(field: &'static str, value: impl AsRef<str>, rule: impl Into<String>) -> Self {
        let value = value.as_ref();
        let shortened = match value.char_indices().nth(50) {
            Some((cut, _)) => format!("{}...", &value[..cut]),
            None => value.to_owned(),
        };
        Self::Invalid(Invalid::Argument {
            field,
            value: shortened,
            rule: rule.into(),
        })
    }

    pub(crate) fn contended(what: &impl fmt::Display) -> Self {
        Self::Conflict(Conflict::Concurrent {
            what: what.to_string(),
        })
    }

    /// Reports whether the table could not be used now: it could not be reached, did not respond, was throttled, other
    /// writers kept changing the same item, or another process has locked its file.
    /// [`OnUnavailable`](crate::OnUnavailable) decides about these errors. Invalid arguments, missing tables, denied
    /// permissions and a limiter that is shut down never count as unavailable.
    pub fn is_unavailable(&self) -> bool {
        matches!(
            self,
            Self::Unavailable(_) | Self::Conflict(Conflict::Concurrent { .. })
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
                CallError::Denied(message) | CallError::ClockSkew(message) => Self::PermissionDenied {
                    operation,
                    table,
                    message,
                },
                CallError::TableMissing => Self::NotFound(NotFound::Table { table, place }),
                CallError::FileHeld(path) => Self::Unavailable(Unavailable::FileLocked { path }),
                transient if transient.is_transient() => Self::Unavailable(Unavailable::NoResponse {
                    operation,
                    table,
                    reason: transient.to_string(),
                    within,
                }),
                rejected => Self::Internal(Internal::BadRequest {
                    operation,
                    table,
                    message: rejected.to_string(),
                }),
            },
            Failed::FileHeld { path } => Self::Unavailable(Unavailable::FileLocked { path }),
            Failed::Malformed(malformed) => malformed.into(),
            Failed::Store { place, reason } => Self::Internal(Internal::Store { place, reason }),
            other => Self::Internal(Internal::Store {
                place: "the table".to_owned(),
                reason: other.to_string(),
            }),
        }
    }
}

/// A level, in the words of an error.
const fn level(origin: ConfigOrigin) -> &'static str {
    match origin {
        ConfigOrigin::Call => "call",
        ConfigOrigin::Entity => "entity on this resource",
        ConfigOrigin::EntityDefault => "entity",
        ConfigOrigin::Resource => "resource",
        ConfigOrigin::System => "system",
        ConfigOrigin::Builder => "limiter",
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

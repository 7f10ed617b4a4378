//! The problem types of the API (RFC 9457).

use axum::http::StatusCode;

/// What kind of problem a response reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProblemKind {
    InvalidRequest,
    Unauthorized,
    Forbidden,
    Disabled,
    NotFound,
    EntityNotFound,
    LeaseNotFound,
    MethodNotAllowed,
    RequestTimeout,
    EntityExists,
    HasChildren,
    RequestInProgress,
    LeaseEnded,
    LeaseOwnerGone,
    ReplicaGone,
    BodyTooLarge,
    UnsupportedMediaType,
    IdempotencyKeyReused,
    NoLimits,
    NoPrices,
    InvalidParent,
    QuotaExceeded,
    Internal,
    Unavailable,
    Overloaded,
    ShuttingDown,
}

impl ProblemKind {
    /// Every kind, by status.
    #[cfg(test)]
    pub(crate) const ALL: [Self; 26] = [
        Self::InvalidRequest,
        Self::Unauthorized,
        Self::Forbidden,
        Self::Disabled,
        Self::NotFound,
        Self::EntityNotFound,
        Self::LeaseNotFound,
        Self::MethodNotAllowed,
        Self::RequestTimeout,
        Self::EntityExists,
        Self::HasChildren,
        Self::RequestInProgress,
        Self::LeaseEnded,
        Self::LeaseOwnerGone,
        Self::ReplicaGone,
        Self::BodyTooLarge,
        Self::UnsupportedMediaType,
        Self::IdempotencyKeyReused,
        Self::NoLimits,
        Self::NoPrices,
        Self::InvalidParent,
        Self::QuotaExceeded,
        Self::Internal,
        Self::Unavailable,
        Self::Overloaded,
        Self::ShuttingDown,
    ];

    /// The member `type`. The type of a refusal is the registered one of draft-ietf-httpapi-ratelimit-headers.
    pub(crate) const fn uri(self) -> &'static str {
        match self {
            Self::InvalidRequest => "urn:zae-limiter:problem:invalid-request",
            Self::Unauthorized => "urn:zae-limiter:problem:unauthorized",
            Self::Forbidden => "urn:zae-limiter:problem:forbidden",
            Self::Disabled => "urn:zae-limiter:problem:disabled",
            Self::NotFound => "urn:zae-limiter:problem:not-found",
            Self::EntityNotFound => "urn:zae-limiter:problem:entity-not-found",
            Self::LeaseNotFound => "urn:zae-limiter:problem:lease-not-found",
            Self::MethodNotAllowed => "urn:zae-limiter:problem:method-not-allowed",
            Self::RequestTimeout => "urn:zae-limiter:problem:request-timeout",
            Self::EntityExists => "urn:zae-limiter:problem:entity-exists",
            Self::HasChildren => "urn:zae-limiter:problem:has-children",
            Self::RequestInProgress => "urn:zae-limiter:problem:request-in-progress",
            Self::LeaseEnded => "urn:zae-limiter:problem:lease-ended",
            Self::LeaseOwnerGone => "urn:zae-limiter:problem:lease-owner-gone",
            Self::ReplicaGone => "urn:zae-limiter:problem:replica-gone",
            Self::BodyTooLarge => "urn:zae-limiter:problem:body-too-large",
            Self::UnsupportedMediaType => "urn:zae-limiter:problem:unsupported-media-type",
            Self::IdempotencyKeyReused => "urn:zae-limiter:problem:idempotency-key-reused",
            Self::NoLimits => "urn:zae-limiter:problem:no-limits",
            Self::NoPrices => "urn:zae-limiter:problem:no-prices",
            Self::InvalidParent => "urn:zae-limiter:problem:invalid-parent",
            Self::QuotaExceeded => "https://iana.org/assignments/http-problem-types#quota-exceeded",
            Self::Internal => "urn:zae-limiter:problem:internal",
            Self::Unavailable => "urn:zae-limiter:problem:unavailable",
            Self::Overloaded => "urn:zae-limiter:problem:overloaded",
            Self::ShuttingDown => "urn:zae-limiter:problem:shutting-down",
        }
    }

    /// The member `title`.
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::InvalidRequest => "The request is invalid",
            Self::Unauthorized => "A valid bearer token is required",
            Self::Forbidden => "The bearer token does not have the required scope",
            Self::Disabled => "The entity may not use the resource",
            Self::NotFound => "There is no such resource",
            Self::EntityNotFound => "There is no such entity",
            Self::LeaseNotFound => "There is no such lease",
            Self::MethodNotAllowed => "The resource does not support this method",
            Self::RequestTimeout => "The request took too long to arrive",
            Self::EntityExists => "The entity exists already",
            Self::HasChildren => "The entity has children",
            Self::RequestInProgress => "A request with this idempotency key is in progress",
            Self::LeaseEnded => "The lease has ended",
            Self::LeaseOwnerGone => "The server that granted the lease is gone",
            Self::ReplicaGone => "The server that knows the idempotency key is gone",
            Self::BodyTooLarge => "The request body is too large",
            Self::UnsupportedMediaType => "The request body must be application/json",
            Self::IdempotencyKeyReused => "The idempotency key was used for another request",
            Self::NoLimits => "No limits are configured",
            Self::NoPrices => "No prices are configured",
            Self::InvalidParent => "The parent is invalid",
            Self::QuotaExceeded => "Request cannot be satisfied as assigned quota has been exceeded",
            Self::Internal => "The server could not process the request",
            Self::Unavailable => "The table is unavailable",
            Self::Overloaded => "The server is overloaded",
            Self::ShuttingDown => "The server is shutting down",
        }
    }

    pub(crate) const fn status(self) -> StatusCode {
        match self {
            Self::InvalidRequest => StatusCode::BAD_REQUEST,
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::Forbidden | Self::Disabled => StatusCode::FORBIDDEN,
            Self::NotFound | Self::EntityNotFound | Self::LeaseNotFound => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::RequestTimeout => StatusCode::REQUEST_TIMEOUT,
            Self::EntityExists | Self::HasChildren | Self::RequestInProgress => StatusCode::CONFLICT,
            Self::LeaseEnded | Self::LeaseOwnerGone | Self::ReplicaGone => StatusCode::GONE,
            Self::BodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::IdempotencyKeyReused | Self::NoLimits | Self::NoPrices | Self::InvalidParent => {
                StatusCode::UNPROCESSABLE_ENTITY
            }
            Self::QuotaExceeded => StatusCode::TOO_MANY_REQUESTS,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Unavailable | Self::Overloaded | Self::ShuttingDown => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guide_lists_every_type_with_its_status() {
        let guide = include_str!("../../../docs/guide/server.md");
        for kind in ProblemKind::ALL {
            let name = kind.uri().rsplit([':', '#']).next().unwrap_or_default();
            let row = format!("| {} | `{name}` |", kind.status().as_u16());
            assert!(guide.contains(&row), "docs/guide/server.md has no row {row}");
        }
    }
}

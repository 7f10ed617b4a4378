//! The problem responses of the OpenAPI document.

use serde::Serialize;
use utoipa::{IntoResponses, ToSchema};

use super::limit_state::LimitState;

/// Problem details (RFC 9457). Some types have further members.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ProblemBody {
    /// The problem type.
    #[schema(example = "urn:zae-limiter:problem:invalid-request")]
    r#type: String,
    /// The problem type in words.
    title: String,
    /// The status of the response.
    status: u16,
    /// What went wrong this time.
    detail: String,
}

/// A refusal: problem details with what was refused.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct QuotaExceededBody {
    #[serde(flatten)]
    problem: ProblemBody,
    /// The names of the exceeded policies, as in the header `RateLimit-Policy`.
    #[serde(rename = "violated-policies")]
    violated_policies: Vec<String>,
    /// Always `rate_limit_exceeded`.
    error: String,
    /// The refusal in words.
    message: String,
    /// When the whole call will fit; null if never.
    retry_after_seconds: Option<f64>,
    /// The same in milliseconds.
    retry_after_ms: Option<u64>,
    /// Every limit, the entity's own first, then its parents'.
    limits: Vec<LimitState>,
}

/// What an operation on a lease can respond that counts money.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "describes what Problem writes")]
pub(crate) enum NoPricesProblem {
    /// The request has a usage, and the resource has no prices
    #[response(status = 422, content_type = "application/problem+json")]
    NoPrices(#[to_schema] ProblemBody),
}

/// What every operation can respond.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "describes what Problem writes")]
pub(crate) enum Problems {
    /// The request is invalid
    #[response(status = 400, content_type = "application/problem+json")]
    Invalid(#[to_schema] ProblemBody),
    /// A bearer token is missing or wrong
    #[response(status = 401, content_type = "application/problem+json")]
    Unauthorized(#[to_schema] ProblemBody),
    /// The bearer token does not have the required scope, or the entity may not use the resource
    #[response(status = 403, content_type = "application/problem+json")]
    Forbidden(#[to_schema] ProblemBody),
    /// The server could not process the request
    #[response(status = 500, content_type = "application/problem+json")]
    Internal(#[to_schema] ProblemBody),
    /// The table is unavailable, or the server is overloaded or shutting down
    #[response(status = 503, content_type = "application/problem+json")]
    Unavailable(#[to_schema] ProblemBody),
}

/// What operations with a body can respond.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "describes what Problem writes")]
pub(crate) enum BodyProblems {
    /// The body took too long to arrive
    #[response(status = 408, content_type = "application/problem+json")]
    Timeout(#[to_schema] ProblemBody),
    /// The body is too large
    #[response(status = 413, content_type = "application/problem+json")]
    TooLarge(#[to_schema] ProblemBody),
    /// The body is not application/json
    #[response(status = 415, content_type = "application/problem+json")]
    MediaType(#[to_schema] ProblemBody),
}

/// What requests about a lease can respond.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "describes what Problem writes")]
pub(crate) enum LeaseProblems {
    /// There is no such lease
    #[response(status = 404, content_type = "application/problem+json")]
    NotFound(#[to_schema] ProblemBody),
    /// The lease has ended (`ended` says how), or the server that granted it is gone
    #[response(status = 410, content_type = "application/problem+json")]
    Ended(#[to_schema] ProblemBody),
}

/// What requests about an entity can respond.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "describes what Problem writes")]
pub(crate) enum EntityProblems {
    /// There is no such entity
    #[response(status = 404, content_type = "application/problem+json")]
    NotFound(#[to_schema] ProblemBody),
}

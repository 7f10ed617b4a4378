//! Errors as problem details (RFC 9457), with the types that the server uses.

use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};
use serde_json::{Map, Value};

use super::insert_fields;
use crate::error::{Conflict, Invalid, NotFound};
use crate::{Error, RateLimitHeaders};

/// What kind of response an error of an acquire becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    InvalidRequest,
    NoLimits,
    Disabled,
    QuotaExceeded,
    Internal,
    Unavailable,
    Overloaded,
    ShuttingDown,
}

impl Kind {
    pub(crate) fn of(error: &Error) -> Self {
        match error {
            Error::Refused(_) => Self::QuotaExceeded,
            Error::Disabled { .. } => Self::Disabled,
            // Names may come from the request. Everything else that is invalid is a mistake of the program.
            Error::Invalid(Invalid::Name(_)) => Self::InvalidRequest,
            Error::NotFound(NotFound::Limits { .. }) => Self::NoLimits,
            Error::Overloaded { .. } => Self::Overloaded,
            Error::ShutDown { .. } => Self::ShuttingDown,
            Error::Unavailable(_)
            | Error::Conflict(Conflict::Concurrent { .. } | Conflict::ModeChanged { .. }) => {
                Self::Unavailable
            }
            _ => Self::Internal,
        }
    }

    const fn uri(self) -> &'static str {
        match self {
            Self::InvalidRequest => "urn:zae-limiter:problem:invalid-request",
            Self::NoLimits => "urn:zae-limiter:problem:no-limits",
            Self::Disabled => "urn:zae-limiter:problem:disabled",
            Self::QuotaExceeded => "https://iana.org/assignments/http-problem-types#quota-exceeded",
            Self::Internal => "urn:zae-limiter:problem:internal",
            Self::Unavailable => "urn:zae-limiter:problem:unavailable",
            Self::Overloaded => "urn:zae-limiter:problem:overloaded",
            Self::ShuttingDown => "urn:zae-limiter:problem:shutting-down",
        }
    }

    const fn title(self) -> &'static str {
        match self {
            Self::InvalidRequest => "The request is invalid",
            Self::NoLimits => "No limits are configured",
            Self::Disabled => "The entity may not use the resource",
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
            Self::NoLimits => StatusCode::UNPROCESSABLE_ENTITY,
            Self::Disabled => StatusCode::FORBIDDEN,
            Self::QuotaExceeded => StatusCode::TOO_MANY_REQUESTS,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Unavailable | Self::Overloaded | Self::ShuttingDown => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// What the caller learns. Only the operator learns the table's name and what is wrong with it.
    pub(crate) fn detail(self, error: &Error) -> String {
        match self {
            Self::InvalidRequest
            | Self::NoLimits
            | Self::Disabled
            | Self::QuotaExceeded
            | Self::Overloaded => error.to_string(),
            Self::Internal => "the cause is in the log of the server".to_owned(),
            Self::Unavailable => "the table could not be used in time; try again later".to_owned(),
            Self::ShuttingDown => "connect to another server".to_owned(),
        }
    }

    /// Logs what the caller does not learn.
    pub(crate) fn log(self, error: &Error) {
        match self {
            Self::Internal => tracing::error!(%error, "a request failed"),
            Self::Unavailable => tracing::warn!(%error, "the table is unavailable"),
            _ => {}
        }
    }
}

/// The response to a call that is not admitted, as `application/problem+json`:
///
/// - 429 with the refusal, its limits and the header fields;
/// - 403 where the resource is disabled;
/// - 503 with `Retry-After` if the table is unavailable and the policy is to block;
/// - 400 for a name that is invalid;
/// - 422 without limits;
/// - 500 for everything else, with the cause in the log only.
pub fn problem_response(error: &Error) -> Response<String> {
    let kind = Kind::of(error);
    kind.log(error);
    let mut members = Map::new();
    members.insert("type".to_owned(), kind.uri().into());
    members.insert("title".to_owned(), kind.title().into());
    members.insert("status".to_owned(), kind.status().as_u16().into());
    members.insert("detail".to_owned(), kind.detail(error).into());
    match error {
        Error::Refused(refusal) => {
            members.insert("violated-policies".to_owned(), refusal.violated_policies().into());
            if let Ok(Value::Object(refusal)) = serde_json::to_value(refusal) {
                members.extend(refusal);
            }
        }
        Error::Invalid(Invalid::Name(invalid)) => {
            members.insert("field".to_owned(), invalid.field().into());
        }
        _ => {}
    }
    let mut response = Response::new(Value::Object(members).to_string());
    *response.status_mut() = kind.status();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    if let Error::Refused(refusal) = error {
        insert_fields(headers, RateLimitHeaders::refused(refusal));
    } else if kind.status() == StatusCode::SERVICE_UNAVAILABLE {
        headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::EntityId;
    use crate::error::Unavailable;

    const KINDS: [Kind; 7] = [
        Kind::InvalidRequest,
        Kind::NoLimits,
        Kind::QuotaExceeded,
        Kind::Internal,
        Kind::Unavailable,
        Kind::Overloaded,
        Kind::ShuttingDown,
    ];

    fn members(response: &Response<String>) -> Map<String, Value> {
        serde_json::from_str(response.body()).unwrap()
    }

    #[test]
    fn every_type_is_one_of_the_servers_with_its_title() {
        let server = include_str!("../../../server/src/problem/kind.rs");
        for kind in KINDS {
            for text in [kind.uri(), kind.title()] {
                assert!(server.contains(&format!("=> \"{text}\"")), "{text}");
            }
        }
    }

    #[test]
    fn an_outage_does_not_name_the_table() {
        let response = problem_response(&Error::Unavailable(Unavailable::NoResponse {
            operation: "UpdateItem",
            table: "secret-table".to_owned(),
            reason: "no response".to_owned(),
            within: std::time::Duration::from_secs(1),
        }));
        assert_eq!(response.status(), 503);
        assert_eq!(response.headers()["retry-after"], "1");
        assert!(!response.body().contains("secret-table"));
    }

    #[test]
    fn an_invalid_name_is_the_callers_and_any_other_mistake_is_not() {
        let name = problem_response(&EntityId::parse("user#1").unwrap_err().into());
        assert_eq!(name.status(), 400);
        assert_eq!(members(&name)["field"], "entity id");
        let limit = problem_response(&Error::invalid("limit", "rpx", "there is none"));
        assert_eq!(limit.status(), 500);
        assert!(!limit.body().contains("rpx"));
        assert_eq!(limit.headers()["content-type"], "application/problem+json");
    }
}

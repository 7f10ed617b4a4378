//! Errors as problem details (RFC 9457).

mod kind;

use std::fmt;

use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value};
use zae_limiter::error::{Conflict, Invalid, NotFound};
use zae_limiter::{Error, RateLimitHeaders, Refusal};

pub(crate) use kind::ProblemKind;

use crate::log_limit::LogLimit;

/// How long clients are asked to wait if the server or the table cannot serve them now.
const RETRY_SECONDS: HeaderValue = HeaderValue::from_static("1");

/// A response that reports a problem.
#[derive(Debug)]
pub(crate) struct Problem(Box<Content>);

#[derive(Debug)]
struct Content {
    kind: ProblemKind,
    detail: String,
    /// Further members.
    members: Map<String, Value>,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl Problem {
    pub(crate) fn new(kind: ProblemKind, detail: impl Into<String>) -> Self {
        let retry = kind.status().as_u16() == 503;
        Self(Box::new(Content {
            kind,
            detail: detail.into(),
            members: Map::new(),
            headers: retry
                .then_some((header::RETRY_AFTER, RETRY_SECONDS))
                .into_iter()
                .collect(),
        }))
    }

    /// A value of the request breaks a rule.
    pub(crate) fn invalid(field: &str, value: impl fmt::Display, rule: &str) -> Self {
        let detail = format!("{field} {value} is invalid: {rule}");
        Self::new(ProblemKind::InvalidRequest, detail).with("field", field)
    }

    /// An error that only the operator can resolve: the caller is told no more.
    pub(crate) fn internal(error: &dyn fmt::Display) -> Self {
        static LOG: LogLimit = LogLimit::new();
        if let Some(suppressed) = LOG.permit() {
            tracing::error!(%error, suppressed, "a request failed");
        }
        Self::new(ProblemKind::Internal, "the cause is in the log of the server")
    }

    /// Adds a member.
    pub(crate) fn with(mut self, member: &str, value: impl Into<Value>) -> Self {
        self.0.members.insert(member.to_owned(), value.into());
        self
    }

    pub(crate) fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.0.headers.push((name, value));
        self
    }

    pub(crate) fn detail(&self) -> &str {
        &self.0.detail
    }

    /// The JSON of the response.
    pub(crate) fn body(&self) -> String {
        let Content {
            kind,
            detail,
            members,
            ..
        } = &*self.0;
        let mut body = Map::new();
        body.insert("type".to_owned(), kind.uri().into());
        body.insert("title".to_owned(), kind.title().into());
        body.insert("status".to_owned(), kind.status().as_u16().into());
        body.insert("detail".to_owned(), detail.as_str().into());
        body.extend(members.clone());
        Value::Object(body).to_string()
    }

    pub(crate) fn kind(&self) -> ProblemKind {
        self.0.kind
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = self.body();
        let Content { kind, headers, .. } = *self.0;
        let content_type = HeaderValue::from_static("application/problem+json");
        let mut response = (kind.status(), body).into_response();
        response.headers_mut().insert(header::CONTENT_TYPE, content_type);
        response.headers_mut().extend(headers);
        response
    }
}

impl From<&Refusal> for Problem {
    fn from(refusal: &Refusal) -> Self {
        let mut problem = Self::new(ProblemKind::QuotaExceeded, refusal.to_string())
            .with("violated-policies", refusal.violated_policies());
        if let Ok(Value::Object(members)) = serde_json::to_value(refusal) {
            problem.0.members.extend(members);
        }
        problem.0.headers = header_fields(RateLimitHeaders::refused(refusal));
        problem
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        static LOG: LogLimit = LogLimit::new();
        let kind = kind_of(&error);
        match &error {
            Error::Refused(refusal) => return Self::from(&**refusal),
            Error::Invalid(Invalid::Name(invalid)) => {
                return Self::new(ProblemKind::InvalidRequest, invalid.to_string())
                    .with("field", invalid.field());
            }
            Error::Invalid(Invalid::Argument { field, .. }) => {
                return Self::new(ProblemKind::InvalidRequest, error.to_string()).with("field", *field);
            }
            Error::NotFound(NotFound::Limits { entity, resource }) => {
                let detail = format!(
                    "no limits are stored for entity {entity} on {resource}, at any level; \
                     store some with PUT /v1/limits"
                );
                return Self::new(kind, detail);
            }
            _ => {}
        }
        let detail = match kind {
            ProblemKind::Internal => return Self::internal(&error),
            // The text names the table, which callers do not need to know.
            ProblemKind::Unavailable => {
                if let Some(suppressed) = LOG.permit() {
                    tracing::warn!(%error, suppressed, "the table is unavailable");
                }
                "the table could not be used in time; try again later".to_owned()
            }
            ProblemKind::ShuttingDown => "connect to another server".to_owned(),
            _ => error.to_string(),
        };
        Self::new(kind, detail)
    }
}

/// The kind of problem that an error is.
pub(crate) fn kind_of(error: &Error) -> ProblemKind {
    match error {
        Error::Refused(_) => ProblemKind::QuotaExceeded,
        Error::Disabled { .. } => ProblemKind::Disabled,
        Error::Invalid(_) => ProblemKind::InvalidRequest,
        Error::Conflict(Conflict::EntityExists { .. }) => ProblemKind::EntityExists,
        Error::NotFound(NotFound::Entity { .. }) => ProblemKind::EntityNotFound,
        Error::NotFound(NotFound::Parent { .. })
        | Error::Conflict(Conflict::ParentCycle { .. } | Conflict::TooManyParents { .. }) => {
            ProblemKind::InvalidParent
        }
        Error::Conflict(Conflict::HasChildren { .. }) => ProblemKind::HasChildren,
        Error::Conflict(Conflict::KeyReused { .. }) => ProblemKind::IdempotencyKeyReused,
        Error::NotFound(NotFound::Limits { .. }) => ProblemKind::NoLimits,
        Error::NotFound(NotFound::Prices { .. }) => ProblemKind::NoPrices,
        Error::Overloaded { .. } => ProblemKind::Overloaded,
        Error::ShutDown { .. } => ProblemKind::ShuttingDown,
        Error::Unavailable(_)
        | Error::Conflict(Conflict::Concurrent { .. } | Conflict::ModeChanged { .. }) => {
            ProblemKind::Unavailable
        }
        _ => ProblemKind::Internal,
    }
}

/// The fields as header names and values. They have visible ASCII characters only.
pub(crate) fn header_fields(headers: RateLimitHeaders) -> Vec<(HeaderName, HeaderValue)> {
    let fields = headers.into_iter().filter_map(|(name, value)| {
        let value = HeaderValue::try_from(value).ok()?;
        Some((HeaderName::from_static(name), value))
    });
    fields.collect()
}

//! Who a request comes from, and whether it may do what it asks for.

mod local_host;
mod token_source;
mod tokens;

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, header};
use zae_limiter::audit::Principal;

use crate::app::App;
use crate::problem::{Problem, ProblemKind};

pub(crate) use local_host::check_local_host;
pub(crate) use token_source::TokenSource;
pub(crate) use tokens::TokenDigest;
pub use tokens::{BearerTokens, InvalidTokens, Scope};

/// The name of the token that a request was made with; nothing if the server has no tokens.
#[derive(Debug, Clone)]
pub(crate) struct Caller(pub(crate) Option<Principal>);

/// Who makes the request, if its token has the scope.
pub(crate) fn authorize(tokens: &BearerTokens, headers: &HeaderMap, scope: Scope) -> Result<Caller, Denied> {
    let header = headers.get(header::AUTHORIZATION);
    let header = header.and_then(|value| value.to_str().ok());
    Ok(Caller(Some(check(tokens, header, scope)?)))
}

impl FromRequestParts<Arc<App>> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        match parts.extensions.get::<Self>() {
            Some(caller) => Ok(caller.clone()),
            None if app.tokens().is_none() => Ok(Self(None)),
            None => Err(Problem::internal(&"a route does not check the token")),
        }
    }
}

/// Why a request is not allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Denied {
    #[error("send Authorization: Bearer TOKEN with a token of this server")]
    Unauthorized,
    #[error("the scope {0} is required")]
    Forbidden(Scope),
}

/// The name of the token in the field `Authorization`, if it has the scope.
pub(crate) fn check(
    tokens: &BearerTokens,
    authorization: Option<&str>,
    scope: Scope,
) -> Result<Principal, Denied> {
    let token = authorization.and_then(presented);
    let token = token.and_then(|presented| tokens.find(presented));
    let token = token.ok_or(Denied::Unauthorized)?;
    if token.scopes.contains(&scope) {
        Ok(token.name.clone())
    } else {
        Err(Denied::Forbidden(scope))
    }
}

fn presented(authorization: &str) -> Option<&str> {
    let (scheme, token) = authorization.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

impl From<Denied> for Problem {
    fn from(denied: Denied) -> Self {
        let (kind, challenge) = match denied {
            Denied::Unauthorized => (ProblemKind::Unauthorized, "Bearer".to_owned()),
            Denied::Forbidden(scope) => (
                ProblemKind::Forbidden,
                format!("Bearer error=\"insufficient_scope\", scope=\"{scope}\""),
            ),
        };
        let problem = Self::new(kind, denied.to_string());
        match HeaderValue::try_from(challenge) {
            Ok(value) => problem.with_header(header::WWW_AUTHENTICATE, value),
            Err(_) => problem,
        }
    }
}

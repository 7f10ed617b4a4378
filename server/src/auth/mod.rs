//! Who a request comes from, and whether it may do what it asks for.

mod tokens;

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::middleware::Next;
use axum::response::Response;
use zae_limiter::audit::Principal;

use crate::app::App;
use crate::problem::{Problem, ProblemKind};

pub use tokens::{BearerTokens, InvalidTokens, Scope};

/// The name of the token that a request was made with; nothing if the server has no tokens.
#[derive(Debug, Clone)]
pub(crate) struct Caller(pub(crate) Option<Principal>);

/// Middleware: passes a request on if its token has the scope.
pub(crate) async fn authorize(
    State((app, scope)): State<(Arc<App>, Scope)>,
    mut request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let caller = match &app.tokens {
        Some(tokens) => Some(check(tokens, request.headers(), scope)?),
        None => None,
    };
    request.extensions_mut().insert(Caller(caller));
    Ok(next.run(request).await)
}

fn check(tokens: &BearerTokens, headers: &HeaderMap, scope: Scope) -> Result<Principal, Problem> {
    let Some(token) = presented(headers).and_then(|presented| tokens.find(presented)) else {
        let detail = "send Authorization: Bearer TOKEN with a token of this server";
        return Err(challenge(ProblemKind::Unauthorized, detail, "Bearer"));
    };
    if !token.scopes.contains(&scope) {
        let detail = format!("the scope {scope} is required");
        let value = format!("Bearer error=\"insufficient_scope\", scope=\"{scope}\"");
        return Err(challenge(ProblemKind::Forbidden, &detail, &value));
    }
    Ok(token.name.clone())
}

fn presented(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

fn challenge(kind: ProblemKind, detail: &str, value: &str) -> Problem {
    let problem = Problem::new(kind, detail);
    match HeaderValue::try_from(value) {
        Ok(value) => problem.with_header(header::WWW_AUTHENTICATE, value),
        Err(_) => problem,
    }
}

//! Signing in and out: a token becomes a cookie.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use serde::Deserialize;

use super::{Visitor, is_same_origin, refuse, secret};
use crate::auth::Scope;
use crate::connections::Peer;
use crate::ui::Ui;
use crate::ui::form::Form;

#[derive(Debug, Deserialize)]
pub(crate) struct LoginQuery {
    token: Option<String>,
}

/// `GET /ui/login`: takes the token that works once, or shows the form.
pub(crate) async fn login(
    State(ui): State<Arc<Ui>>,
    Extension(peer): Extension<Peer>,
    method: Method,
    headers: HeaderMap,
    Query(query): Query<LoginQuery>,
) -> Response {
    let tokens = ui.app.tokens();
    let visitor = ui
        .access
        .visitor(&headers, tokens.as_deref(), ui.app.clock.elapsed());
    match query.token {
        // Programs that preview a link send this. It must not use up the token.
        _ if method == Method::HEAD => StatusCode::OK.into_response(),
        // Reloading the address that was opened first leads to the page, too.
        _ if visitor.is_some() => Redirect::to("/ui").into_response(),
        Some(token) if ui.access.use_once(&token) => sign_in(
            &ui,
            Visitor {
                principal: None,
                token: None,
                form_token: String::new(),
            },
        ),
        Some(_) => {
            tracing::warn!(peer = %peer.address, "a sign-in was refused: the link is invalid or has already been used");
            let text = "An address with a token opens the UI once. Start zae-limiter ui again for a new one.";
            refuse(
                &ui,
                StatusCode::FORBIDDEN,
                "This link is invalid or has already been used",
                text,
            )
        }
        None if tokens.is_some() => page(&ui, StatusCode::OK, None),
        None => {
            let text = "Open the address that zae-limiter ui printed in the terminal.";
            refuse(&ui, StatusCode::UNAUTHORIZED, "You are not signed in", text)
        }
    }
}

/// `POST /ui/login`: takes a bearer token.
pub(crate) async fn form(
    State(ui): State<Arc<Ui>>,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
    form: Form,
) -> Response {
    if !is_same_origin(&headers) {
        let text = "The request came from another site.";
        return refuse(&ui, StatusCode::FORBIDDEN, "Another site sent this request", text);
    }
    let token = form.first("token").unwrap_or_default();
    let tokens = ui.app.tokens();
    match tokens.as_ref().and_then(|tokens| tokens.find(token.trim())) {
        Some(found) if found.scopes.contains(&Scope::Admin) => sign_in(
            &ui,
            Visitor {
                principal: Some(found.name.clone()),
                token: Some(found.digest),
                form_token: String::new(),
            },
        ),
        Some(found) => {
            tracing::warn!(peer = %peer.address, principal = %found.name, "a sign-in was refused: the token does not have the scope admin");
            let problem = "This token does not have the scope admin.";
            page(&ui, StatusCode::FORBIDDEN, Some(problem))
        }
        None => {
            tracing::warn!(peer = %peer.address, "a sign-in was refused: the token is wrong");
            let problem = "This server does not accept that token.";
            page(&ui, StatusCode::UNAUTHORIZED, Some(problem))
        }
    }
}

/// `POST /ui/logout`.
pub(crate) async fn leave(State(ui): State<Arc<Ui>>, headers: HeaderMap) -> Response {
    if let Some(secret) = ui.access.secret(&headers) {
        ui.access.sessions().remove(secret);
    }
    Redirect::to("/ui/login").into_response()
}

fn sign_in(ui: &Ui, visitor: Visitor) -> Response {
    let secrets = secret::random().and_then(|secret| Ok((secret, secret::random()?)));
    let Ok((secret, form_token)) = secrets else {
        let text = "The operating system has no randomness.";
        return refuse(ui, StatusCode::INTERNAL_SERVER_ERROR, "Signing in failed", text);
    };
    let visitor = Visitor {
        form_token,
        ..visitor
    };
    let principal = visitor.principal.as_ref().map(ToString::to_string);
    tracing::info!(principal, "a browser signed in");
    let mut sessions = ui.access.sessions();
    sessions.insert(&secret, visitor, ui.app.clock.elapsed());
    drop(sessions);
    let cookie = ui.access.set_cookie(&secret);
    let mut response = Redirect::to("/ui").into_response();
    if let Ok(cookie) = HeaderValue::try_from(cookie) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response
}

fn page(ui: &Ui, status: StatusCode, problem: Option<&str>) -> Response {
    let content: Markup = html! {
        header.page-head { h1 { "Sign in" } }
        section.card {
            form.stack method="post" action="/ui/login" {
                label for="token" { "Bearer token with the scope admin" }
                input #token name="token" type="password" autocomplete="current-password" required
                    aria-describedby=[problem.map(|_| "problem")];
                @if let Some(problem) = problem { p.alert #problem role="alert" { (problem) } }
                button type="submit" { "Sign in" }
            }
        }
    };
    (status, ui.frame(None).bare("Sign in", &content)).into_response()
}

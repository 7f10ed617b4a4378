//! Who may see the UI, and who may change limits.
//!
//! - A server with bearer tokens asks for one that has the scope `admin`.
//! - `zae-limiter ui` prints an address with a token that works once.
//! - A server without tokens listens on loopback addresses only, and everyone on the machine may see it.
//!
//! The first two put a cookie into the browser. Requests that change something must come from the same origin and send
//! the form token of their session.

mod login;
mod secret;
mod sessions;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};
use maud::html;

pub(crate) use login::{form, leave, login};
pub use secret::LoginToken;
pub(crate) use secret::same;
use sessions::Sessions;
pub(crate) use sessions::Visitor;

use super::Ui;
use crate::auth::BearerTokens;

/// What decides about access.
#[derive(Debug)]
pub(crate) struct Access {
    /// Random, so that servers on other ports of this host do not replace each other's cookies.
    cookie: String,
    sessions: Mutex<Sessions>,
    /// The token that works once, until it was used.
    once: Mutex<Option<LoginToken>>,
    /// Whether browsers send the cookie over TLS only.
    secure: bool,
    /// Whether a session is needed at all.
    closed: bool,
    /// The form token of visitors without a session.
    form_token: String,
}

impl Access {
    pub(crate) fn new(
        once: Option<LoginToken>,
        bearer_tokens: bool,
        secure: bool,
    ) -> Result<Self, crate::Error> {
        let random = || {
            secret::random().map_err(|error| crate::Error::Randomness {
                reason: error.to_string(),
            })
        };
        let mut cookie = random()?;
        cookie.truncate(8);
        Ok(Self {
            cookie: format!("zae-limiter-{cookie}"),
            sessions: Mutex::default(),
            secure,
            closed: once.is_some() || bearer_tokens,
            once: Mutex::new(once),
            form_token: random()?,
        })
    }

    /// Whether browsers have to sign in.
    pub(crate) fn needs_session(&self) -> bool {
        self.closed
    }

    fn sessions(&self) -> MutexGuard<'_, Sessions> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Uses the token up if it is the one that works once.
    fn use_once(&self, presented: &str) -> bool {
        let mut once = self.once.lock().unwrap_or_else(PoisonError::into_inner);
        once.take_if(|token| token.is(presented)).is_some()
    }

    /// The field `Set-Cookie` of a new session.
    fn set_cookie(&self, secret: &str) -> String {
        // Lax and not Strict, so that links that people send each other work.
        let secure = if self.secure { "; Secure" } else { "" };
        format!(
            "{}={secret}; Path=/ui; HttpOnly; SameSite=Lax{secure}",
            self.cookie
        )
    }

    fn secret<'a>(&self, headers: &'a HeaderMap) -> Option<&'a str> {
        let cookies = headers.get_all(header::COOKIE).iter();
        let mut pairs = cookies
            .filter_map(|value| value.to_str().ok())
            .flat_map(|text| text.split(';'))
            .filter_map(|pair| pair.trim().split_once('='));
        pairs
            .find(|(name, _)| *name == self.cookie)
            .map(|(_, secret)| secret)
    }

    /// The visitor with this cookie. `tokens` are those that the server accepts now.
    fn visitor(&self, headers: &HeaderMap, tokens: Option<&BearerTokens>, now: Duration) -> Option<Visitor> {
        if !self.closed {
            return Some(Visitor {
                principal: None,
                token: None,
                form_token: self.form_token.clone(),
            });
        }
        let secret = self.secret(headers)?;
        let mut sessions = self.sessions();
        let visitor = sessions.find(secret, now)?;
        if !visitor.is_allowed(tokens) {
            sessions.remove(secret);
            return None;
        }
        Some(visitor)
    }
}

/// Middleware: passes a request on if its browser is signed in.
pub(crate) async fn guard(State(ui): State<Arc<Ui>>, mut request: Request, next: Next) -> Response {
    let headers = request.headers();
    if request.method() != Method::GET && !is_same_origin(headers) {
        let text = "The request came from another site.";
        return refuse(&ui, StatusCode::FORBIDDEN, "Another site sent this request", text);
    }
    let tokens = ui.app.tokens();
    match ui
        .access
        .visitor(headers, tokens.as_deref(), ui.app.clock.elapsed())
    {
        Some(visitor) => {
            request.extensions_mut().insert(visitor);
            next.run(request).await
        }
        // The script of a live view would take the form behind a redirect for a stream.
        None if accepts_events(headers) => StatusCode::UNAUTHORIZED.into_response(),
        None if request.method() == Method::GET => Redirect::to("/ui/login").into_response(),
        None => {
            let text = "Open the address that the command printed, or sign in, and send the form again.";
            refuse(&ui, StatusCode::UNAUTHORIZED, "You are not signed in", text)
        }
    }
}

fn accepts_events(headers: &HeaderMap) -> bool {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    accept.is_some_and(|accept| accept.contains("text/event-stream"))
}

/// A page that says why nothing else is shown.
pub(crate) fn refuse(ui: &Ui, status: StatusCode, title: &str, text: &str) -> Response {
    let content = html! { header.page-head { h1 { (title) } } section.card { p { (text) } } };
    (status, ui.frame(None).bare(title, &content)).into_response()
}

/// Browsers tell where a form was sent from. Other programs may not, and they have no cookie to abuse.
fn is_same_origin(headers: &HeaderMap) -> bool {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(site) = text("sec-fetch-site") {
        return site == "same-origin" || site == "none";
    }
    match (text("origin"), text("host")) {
        (Some(origin), Some(host)) => origin.split_once("://").is_some_and(|(_, from)| from == host),
        (Some(_), None) => false,
        (None, _) => true,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pairs = pairs.iter();
        pairs
            .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
            .collect()
    }

    #[test]
    fn forms_of_other_sites_are_told_apart() {
        for (pairs, same) in [
            (&[("sec-fetch-site", "same-origin")][..], true),
            (&[("sec-fetch-site", "cross-site")], false),
            (&[("sec-fetch-site", "same-site")], false),
            (
                &[("origin", "http://127.0.0.1:80"), ("host", "127.0.0.1:80")],
                true,
            ),
            (
                &[("origin", "http://10.0.0.5:8080"), ("host", "10.0.0.5:8080")],
                true,
            ),
            (
                &[("origin", "http://evil.example"), ("host", "127.0.0.1:80")],
                false,
            ),
            (&[("origin", "null"), ("host", "127.0.0.1:80")], false),
            (&[("origin", "http://127.0.0.1:80")], false),
            (&[("host", "127.0.0.1:80")], true),
        ] {
            assert_eq!(is_same_origin(&headers(pairs)), same, "{pairs:?}");
        }
    }

    #[test]
    fn a_login_token_works_once() {
        let token = LoginToken::random().unwrap();
        let url = token.url("http://x");
        let text = url.split('=').next_back().unwrap();
        let access = Access::new(Some(token), false, false).unwrap();
        assert!(!access.use_once("guess"));
        assert!(access.use_once(text));
        assert!(!access.use_once(text));
    }

    #[test]
    fn the_cookie_of_a_server_with_tls_is_secure() {
        let cookie = |tls| Access::new(None, true, tls).unwrap().set_cookie("secret");
        assert!(
            cookie(true).ends_with("; HttpOnly; SameSite=Lax; Secure"),
            "{}",
            cookie(true)
        );
        assert!(cookie(false).ends_with("; SameSite=Lax"), "{}", cookie(false));
    }

    #[test]
    fn the_cookie_is_found_among_others() {
        let access = Access::new(None, true, false).unwrap();
        let value = format!("a=b; {}=secret; c=d", access.cookie);
        let headers: HeaderMap = [(header::COOKIE, value.parse().unwrap())].into_iter().collect();
        assert_eq!(access.secret(&headers), Some("secret"));
    }
}

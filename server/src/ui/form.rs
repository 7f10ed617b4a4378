//! The fields of a form, in order. A name may occur more than once.

use std::sync::Arc;

use axum::extract::{FromRequest, Request};

use super::Ui;
use crate::extract::read_body;
use crate::problem::Problem;

/// The largest form.
pub(crate) const MAX_BYTES: usize = 64 * 1024;
/// The largest form that anyone may send: a token. What is sent of it waits in memory.
const MAX_LOGIN_BYTES: usize = 4 * 1024;

/// The fields of a form that was sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Form(Vec<(String, String)>);

impl Form {
    fn parse(body: &[u8]) -> Self {
        Self(form_urlencoded::parse(body).into_owned().collect())
    }

    pub(crate) fn first(&self, name: &str) -> Option<&str> {
        let fields = self.0.iter();
        fields
            .filter(|(present, _)| present == name)
            .map(|(_, value)| value.as_str())
            .next()
    }

    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let fields = self.0.iter();
        fields
            .filter(move |(present, _)| present == name)
            .map(|(_, value)| value.as_str())
    }
}

/// The body is read within the time limit of every other request: anyone can send a form to `/ui/login`.
impl FromRequest<Arc<Ui>> for Form {
    type Rejection = Problem;

    async fn from_request(request: Request, ui: &Arc<Ui>) -> Result<Self, Problem> {
        let most = match request.uri().path() {
            "/ui/login" => MAX_LOGIN_BYTES,
            _ => MAX_BYTES,
        };
        let body = read_body(request, most, ui.app.settings.body_timeout).await?;
        Ok(Self::parse(&body))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_fields_keep_their_order() {
        let form = Form::parse(b"name=rpm&capacity=1&name=tpm&capacity=2&x=a%20b");
        assert_eq!(form.all("name").collect::<Vec<_>>(), ["rpm", "tpm"]);
        assert_eq!(form.first("x"), Some("a b"));
        assert_eq!(form.first("y"), None);
    }
}

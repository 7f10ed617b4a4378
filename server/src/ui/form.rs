//! The fields of a form, in order. A name may occur more than once.

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;

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

impl<S: Send + Sync> FromRequest<S> for Form {
    type Rejection = StatusCode;

    async fn from_request(request: Request, state: &S) -> Result<Self, StatusCode> {
        let body = Bytes::from_request(request, state).await;
        body.map(|body| Self::parse(&body))
            .map_err(|_| StatusCode::PAYLOAD_TOO_LARGE)
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

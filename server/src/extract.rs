//! Parts of requests, parsed. What cannot be parsed is a problem.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::app::App;
use crate::problem::{Problem, ProblemKind};

/// A JSON body.
#[derive(Debug)]
pub(crate) struct JsonBody<T>(pub(crate) T);

/// A JSON body, or the default if there is no body.
#[derive(Debug)]
pub(crate) struct OptionalJsonBody<T>(pub(crate) T);

/// The parameters in the path.
#[derive(Debug)]
pub(crate) struct PathParameters<T>(pub(crate) T);

/// The parameters in the query.
#[derive(Debug)]
pub(crate) struct QueryParameters<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<Arc<App>> for JsonBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Problem> {
        check_content_type(request.headers())?;
        parse(&read(request, app).await?).map(Self)
    }
}

impl<T: DeserializeOwned + Default> FromRequest<Arc<App>> for OptionalJsonBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Problem> {
        let content_type = check_content_type(request.headers());
        let body = read(request, app).await?;
        if body.is_empty() {
            return Ok(Self(T::default()));
        }
        content_type?;
        parse(&body).map(Self)
    }
}

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for PathParameters<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let path = Path::<T>::from_request_parts(parts, state).await;
        path.map(|Path(parameters)| Self(parameters))
            .map_err(|error| Problem::new(ProblemKind::InvalidRequest, error.body_text()))
    }
}

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for QueryParameters<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let query = Query::<T>::from_request_parts(parts, state).await;
        query
            .map(|Query(parameters)| Self(parameters))
            .map_err(|error| Problem::new(ProblemKind::InvalidRequest, error.body_text()))
    }
}

/// A map without repeated keys. JSON allows them, and the last one would win silently.
pub(crate) fn unique_keys<'de, D, V>(deserializer: D) -> Result<BTreeMap<String, V>, D::Error>
where
    D: Deserializer<'de>,
    V: Deserialize<'de>,
{
    struct UniqueKeys<V>(PhantomData<V>);

    impl<'de, V: Deserialize<'de>> Visitor<'de> for UniqueKeys<V> {
        type Value = BTreeMap<String, V>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
            let mut map = BTreeMap::new();
            while let Some((key, value)) = entries.next_entry::<String, V>()? {
                if map.contains_key(&key) {
                    return Err(serde::de::Error::custom(format_args!("duplicate key {key:?}")));
                }
                map.insert(key, value);
            }
            Ok(map)
        }
    }

    deserializer.deserialize_map(UniqueKeys(PhantomData))
}

/// Browsers send this type across origins only if the server allows it, which this one never does. That protects the
/// writes of a server without tokens from other sites; `auth::check_local_host` protects it from names that resolve to
/// this machine.
fn check_content_type(headers: &HeaderMap) -> Result<(), Problem> {
    let value = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    let essence = value.and_then(|value| value.split(';').next()).map(str::trim);
    if essence.is_some_and(|essence| essence.eq_ignore_ascii_case("application/json")) {
        return Ok(());
    }
    let detail = "send the header Content-Type: application/json";
    Err(Problem::new(ProblemKind::UnsupportedMediaType, detail))
}

async fn read(request: Request, app: &App) -> Result<Bytes, Problem> {
    read_body(request, app.settings.max_body_bytes, app.settings.body_timeout).await
}

/// The request with its whole body in memory.
pub(crate) async fn buffered(request: Request, most: usize, timeout: Duration) -> Result<Request, Problem> {
    let (parts, body) = request.into_parts();
    let mut head = Request::new(body);
    *head.headers_mut() = parts.headers.clone();
    let body = read_body(head, most, timeout).await?;
    Ok(Request::from_parts(parts, Body::from(body)))
}

/// The body, if it has at most this many bytes and arrives in time.
pub(crate) async fn read_body(request: Request, most: usize, timeout: Duration) -> Result<Bytes, Problem> {
    let too_large = || {
        let detail = format!("the body may have at most {most} bytes");
        Problem::new(ProblemKind::BodyTooLarge, detail)
    };
    let length = request.headers().get(header::CONTENT_LENGTH);
    let length = length.and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if length.is_some_and(|length| usize::try_from(length).map_or(true, |length| length > most)) {
        return Err(too_large());
    }
    let body = Limited::new(request.into_body(), most).collect();
    match tokio::time::timeout(timeout, body).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
        Ok(Err(_)) => Err(Problem::new(
            ProblemKind::InvalidRequest,
            "the body ended before it was complete",
        )),
        Err(_) => Err(Problem::new(
            ProblemKind::RequestTimeout,
            format!("the body did not arrive within {timeout:?}"),
        )),
    }
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    serde_json::from_slice(body).map_err(|error| {
        Problem::new(
            ProblemKind::InvalidRequest,
            format!("the body is invalid: {error}"),
        )
    })
}

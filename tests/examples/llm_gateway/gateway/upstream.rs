//! The providers, over HTTP.

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Request, Uri, header};
use axum::response::Response;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;
use tokio_rustls::rustls::crypto::aws_lc_rs;

use super::api::Provider;

const API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// Fields that concern one connection (RFC 9110), or what the gateway sets itself.
const NOT_FORWARDED: [HeaderName; 11] = [
    header::ACCEPT_ENCODING,
    header::AUTHORIZATION,
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::HOST,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// Fields of one connection, and the provider's limits: callers get those of the gateway.
const NOT_RETURNED: [HeaderName; 4] = [
    header::CONNECTION,
    header::TRANSFER_ENCODING,
    HeaderName::from_static("ratelimit"),
    HeaderName::from_static("ratelimit-policy"),
];

/// A provider: where it is and the key for it.
#[derive(Debug, Clone)]
pub(crate) struct Upstream {
    provider: Provider,
    /// Without a slash at the end.
    base_url: String,
    key: String,
    client: Client<HttpsConnector<HttpConnector>, Body>,
}

/// One of each.
#[derive(Debug, Clone)]
pub(crate) struct Upstreams {
    open_ai: Upstream,
    anthropic: Upstream,
}

impl Upstreams {
    /// The base URL and the key of each provider.
    pub(crate) fn new(open_ai: (&str, &str), anthropic: (&str, &str)) -> Result<Self, std::io::Error> {
        let connector = HttpsConnectorBuilder::new()
            .with_provider_and_native_roots(aws_lc_rs::default_provider())?
            .https_or_http()
            .enable_http1()
            .build();
        let client = Client::builder(TokioExecutor::new()).build(connector);
        let upstream = |provider, (base_url, key): (&str, &str)| Upstream {
            provider,
            base_url: base_url.trim_end_matches('/').to_owned(),
            key: key.to_owned(),
            client: client.clone(),
        };
        Ok(Self {
            open_ai: upstream(Provider::OpenAi, open_ai),
            anthropic: upstream(Provider::Anthropic, anthropic),
        })
    }

    pub(super) fn of(&self, provider: Provider) -> &Upstream {
        match provider {
            Provider::OpenAi => &self.open_ai,
            Provider::Anthropic => &self.anthropic,
        }
    }
}

impl Upstream {
    /// Sends a request with this body and returns the response as it comes. The error is a reason for the caller.
    pub(super) async fn send(&self, head: Parts, body: &Value) -> Result<Response, String> {
        let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
        let uri: Uri = format!("{}{path}", self.base_url)
            .parse()
            .map_err(|error| format!("the URL of the provider is invalid: {error}"))?;
        let mut request = Request::new(Body::from(body.to_string()));
        *request.method_mut() = head.method;
        *request.uri_mut() = uri;
        *request.headers_mut() = self.headers(head.headers)?;
        let response = self.client.request(request).await;
        let mut response = response.map_err(|error| format!("the provider cannot be reached: {error}"))?;
        for name in NOT_RETURNED {
            response.headers_mut().remove(name);
        }
        Ok(response.map(Body::new))
    }

    fn headers(&self, mut headers: HeaderMap) -> Result<HeaderMap, String> {
        for name in NOT_FORWARDED {
            headers.remove(name);
        }
        headers.remove(API_KEY);
        let (name, key) = match self.provider {
            Provider::OpenAi => (header::AUTHORIZATION, format!("Bearer {}", self.key)),
            Provider::Anthropic => (API_KEY, self.key.clone()),
        };
        let mut key =
            HeaderValue::try_from(key).map_err(|_| "the key of the provider is invalid".to_owned())?;
        key.set_sensitive(true);
        headers.insert(name, key);
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        // Compressed, the usage could not be read.
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        Ok(headers)
    }
}

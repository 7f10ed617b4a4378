//! The archiver's requests to S3, and what it makes of the responses.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use aws_sdk_s3::config::BehaviorVersion;
use aws_sdk_s3::config::retry::RetryConfig;
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use aws_types::SdkConfig;
use aws_types::region::Region;
use zae_limiter_archiver::{CallError, Object, S3, Store as _};
use zae_limiter_schema::Timestamp;

/// S3, with one response to every request.
#[derive(Debug, Clone)]
struct Wire {
    response: Option<(u16, &'static str)>,
    sent: Arc<Mutex<Vec<Sent>>>,
}

#[derive(Debug, Clone)]
struct Sent {
    method: String,
    host: String,
    path: String,
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

impl Wire {
    fn returning(status: u16, body: &'static str) -> Self {
        Self {
            response: Some((status, body)),
            sent: Arc::default(),
        }
    }

    fn broken() -> Self {
        Self {
            response: None,
            sent: Arc::default(),
        }
    }

    fn bucket(&self) -> S3 {
        S3::new(aws_sdk_s3::Client::new(&self.config()), "archive-1")
    }

    fn config(&self) -> SdkConfig {
        let credentials = Credentials::from_keys("key", "secret", None);
        SdkConfig::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new("eu-west-1"))
            .credentials_provider(SharedCredentialsProvider::new(credentials))
            .http_client(self.clone())
            .retry_config(RetryConfig::disabled())
            .build()
    }

    fn last(&self) -> Sent {
        self.sent.lock().unwrap().last().unwrap().clone()
    }
}

impl HttpConnector for Wire {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let uri: http::Uri = request.uri().parse().unwrap();
        let headers = request.headers().iter();
        self.sent.lock().unwrap().push(Sent {
            method: request.method().to_owned(),
            host: uri.host().unwrap().to_owned(),
            path: uri.path().to_owned(),
            headers: headers
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
            body: request.body().bytes().unwrap().to_vec(),
        });
        HttpConnectorFuture::ready(match self.response {
            Some((status, body)) => Ok(HttpResponse::new(status.try_into().unwrap(), SdkBody::from(body))),
            None => Err(ConnectorError::io("connection reset".into())),
        })
    }
}

impl HttpClient for Wire {
    fn http_connector(&self, _: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}

fn object() -> Object {
    Object {
        key: "audit/year=2026/month=01/day=31/01KGA0VC000000000000000001.jsonl.gz".to_owned(),
        body: b"compressed".to_vec(),
        at: Timestamp::from_millis(0),
    }
}

async fn sent_by_archiver() -> Sent {
    let wire = Wire::returning(200, "");
    wire.bucket().put(&object()).await.unwrap();
    wire.last()
}

#[tokio::test]
async fn an_object_is_put_with_its_type_its_encoding_and_a_checksum() {
    let sent = sent_by_archiver().await;
    assert_eq!(sent.method, "PUT");
    assert_eq!(sent.host, "archive-1.s3.eu-west-1.amazonaws.com");
    assert_eq!(
        sent.path,
        "/audit/year%3D2026/month%3D01/day%3D31/01KGA0VC000000000000000001.jsonl.gz"
    );
    assert_eq!(sent.body, b"compressed");
    for (name, value) in [
        ("content-type", "application/x-ndjson"),
        ("content-encoding", "gzip"),
        ("content-length", "10"),
        // The CRC-32 of the body in Base64.
        ("x-amz-checksum-crc32", "l1ZLHg=="),
    ] {
        assert_eq!(
            sent.headers.get(name).map(String::as_str),
            Some(value),
            "{name} of {sent:?}"
        );
    }
}

#[tokio::test]
async fn a_failure_has_the_class_that_its_code_has() {
    const SLOW_DOWN: &str = "<Error><Code>SlowDown</Code><Message>Reduce your request rate</Message></Error>";
    const MISSING: &str = "<Error><Code>NoSuchBucket</Code><Message>No such bucket</Message></Error>";
    const TOO_LONG: &str = "<Error><Code>KeyTooLongError</Code><Message>Too long</Message></Error>";
    for (status, body, expected) in [
        (
            503,
            SLOW_DOWN,
            CallError::Throttled("SlowDown: Reduce your request rate".to_owned()),
        ),
        (
            404,
            MISSING,
            CallError::Denied("NoSuchBucket: No such bucket".to_owned()),
        ),
        (
            400,
            TOO_LONG,
            CallError::Invalid("KeyTooLongError: Too long".to_owned()),
        ),
        (500, "", CallError::Unavailable(" (status 500)".to_owned())),
        (403, "", CallError::Denied(" (status 403)".to_owned())),
    ] {
        let wire = Wire::returning(status, body);
        let error = wire.bucket().put(&object()).await.unwrap_err();
        assert_eq!(error, expected);
        assert_eq!(
            wire.sent.lock().unwrap().len(),
            1,
            "the function retries, not the client"
        );
    }
}

#[tokio::test]
async fn a_broken_connection_is_transient() {
    let error = Wire::broken().bucket().put(&object()).await.unwrap_err();
    assert!(matches!(error, CallError::Unavailable(_)), "{error:?}");
}

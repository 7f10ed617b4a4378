//! The archiver's PutObject on the wire, compared with that of the SDK's S3 client.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use aws_sdk_s3::config::BehaviorVersion;
use aws_sdk_s3::primitives::ByteStream;
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use aws_types::SdkConfig;
use aws_types::region::Region;
use sha2::{Digest as _, Sha256};
use zae_limiter_archiver::{CallError, Object, S3, Store as _};
use zae_limiter_schema::Timestamp;

const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";

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
    fn answering(status: u16, body: &'static str) -> Self {
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

    fn config(&self) -> SdkConfig {
        let credentials = Credentials::from_keys("AKIDEXAMPLE", SECRET, Some("a token/+=".to_owned()));
        SdkConfig::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new("eu-west-1"))
            .credentials_provider(SharedCredentialsProvider::new(credentials))
            .http_client(self.clone())
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
    let wire = Wire::answering(200, "");
    S3::new(&wire.config(), "archive-1").put(&object()).await.unwrap();
    wire.last()
}

async fn sent_by_sdk() -> Sent {
    let wire = Wire::answering(200, "");
    let object = object();
    aws_sdk_s3::Client::new(&wire.config())
        .put_object()
        .bucket("archive-1")
        .key(&object.key)
        .content_type(Object::CONTENT_TYPE)
        .content_encoding(Object::CONTENT_ENCODING)
        .body(ByteStream::from(object.body))
        .send()
        .await
        .unwrap();
    wire.last()
}

#[tokio::test]
async fn the_request_is_that_of_the_sdk() {
    let (ours, theirs) = (sent_by_archiver().await, sent_by_sdk().await);
    assert_eq!(ours.method, theirs.method);
    assert_eq!(ours.host, theirs.host);
    assert_eq!(ours.path, theirs.path);
    assert_eq!(ours.body, theirs.body);
    // Retries and their counters are the function's own, times and signatures differ, and so does the version in the user agent.
    let own = |(name, _): &(&String, &String)| {
        ![
            "amz-sdk-invocation-id",
            "amz-sdk-request",
            "authorization",
            "user-agent",
            "x-amz-date",
            "x-amz-user-agent",
        ]
        .contains(&name.as_str())
    };
    let compared: Vec<_> = ours.headers.iter().filter(own).collect();
    assert_eq!(compared, theirs.headers.iter().filter(own).collect::<Vec<_>>());
    assert!(compared.len() >= 7, "{compared:?}");
    assert!(ours.headers["user-agent"].contains("api/s3/"), "{ours:?}");
}

fn hmac(key: &[u8], message: &str) -> Vec<u8> {
    let mut block = [0_u8; 64];
    block[..key.len()].copy_from_slice(key);
    let inner = Sha256::new()
        .chain_update(block.map(|byte| byte ^ 0x36))
        .chain_update(message)
        .finalize();
    let outer = Sha256::new()
        .chain_update(block.map(|byte| byte ^ 0x5c))
        .chain_update(inner);
    outer.finalize().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}

/// The signature that S3 computes from what it receives.
fn signature(sent: &Sent, signed_headers: &str) -> String {
    let header = |name: &str| match name {
        "host" => sent.host.as_str(),
        name => sent.headers[name].as_str(),
    };
    let headers = signed_headers.split(';').fold(String::new(), |text, name| {
        format!("{text}{name}:{}\n", header(name))
    });
    let request = format!(
        "{}\n{}\n\n{headers}\n{signed_headers}\n{}",
        sent.method,
        sent.path,
        hex(&Sha256::digest(&sent.body))
    );
    let time = header("x-amz-date");
    let scope = format!("{}/eu-west-1/s3/aws4_request", &time[..8]);
    let message = format!(
        "AWS4-HMAC-SHA256\n{time}\n{scope}\n{}",
        hex(&Sha256::digest(request))
    );
    let mut key = format!("AWS4{SECRET}").into_bytes();
    for part in [&time[..8], "eu-west-1", "s3", "aws4_request"] {
        key = hmac(&key, part);
    }
    hex(&hmac(&key, &message))
}

#[tokio::test]
async fn s3_computes_the_same_signature() {
    let sent = sent_by_archiver().await;
    let authorization = &sent.headers["authorization"];
    let field = |name: &str| {
        let (_, rest) = authorization.split_once(&format!("{name}=")).unwrap();
        rest.split(',').next().unwrap()
    };
    let signed = field("SignedHeaders");
    for name in [
        "content-type",
        "host",
        "x-amz-checksum-crc32",
        "x-amz-content-sha256",
        "x-amz-security-token",
    ] {
        assert!(
            signed.split(';').any(|header| header == name),
            "{name} is not in {signed}"
        );
    }
    assert!(field("Credential").starts_with("AKIDEXAMPLE/"));
    assert_eq!(field("Signature"), signature(&sent, signed));
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
        let wire = Wire::answering(status, body);
        let error = S3::new(&wire.config(), "archive-1")
            .put(&object())
            .await
            .unwrap_err();
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
    let error = S3::new(&Wire::broken().config(), "archive-1")
        .put(&object())
        .await
        .unwrap_err();
    assert!(matches!(error, CallError::Unavailable(_)), "{error:?}");
}

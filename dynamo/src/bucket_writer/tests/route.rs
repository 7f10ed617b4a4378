//! Endpoint, credentials and headers of bucket writes are those of the client.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use aws_credential_types::Credentials;
use aws_credential_types::provider::error::CredentialsError;
use aws_credential_types::provider::{ProvideCredentials, future};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::interceptors::BeforeTransmitInterceptorContextMut;
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::config::{Builder, ConfigBag, Intercept, RuntimeComponents};
use aws_smithy_async::time::TimeSource;
use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::interceptors::dyn_dispatch_hint;
use zae_limiter_schema::Timestamp;
use zae_limiter_schema::bucket::{Action, Attr, Scalar, Statement};

use super::{NOW, key, standing, table};
use crate::script::Script;
use crate::{BucketRequest, BucketWriter, CallError, CapacityMeter, EmbeddedStore, LocalTime, ServerTime};

fn request() -> BucketRequest {
    let statement = Statement {
        conditions: Vec::new(),
        actions: vec![Action::Set(Attr::Events, Scalar::Number(1))],
    };
    BucketRequest::of_statement("limiter", &key().key(), &statement)
}

type Configure = fn(Builder) -> Builder;

fn writer(config: Builder) -> BucketWriter {
    BucketWriter::new(table(Client::from_conf(config.build())), standing(), None)
}

/// A calendar that tests set, in seconds.
#[derive(Debug, Clone, Default)]
struct Calendar(Arc<AtomicU64>);

impl TimeSource for Calendar {
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(self.0.load(Ordering::SeqCst))
    }
}

/// Credentials with a number, each pair for a minute.
#[derive(Debug, Clone, Default)]
struct Rotating {
    calendar: Calendar,
    provided: Arc<AtomicU64>,
}

impl ProvideCredentials for Rotating {
    fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
    where
        Self: 'a,
    {
        let number = self.provided.fetch_add(1, Ordering::SeqCst) + 1;
        future::ProvideCredentials::ready(Ok(Credentials::new(
            format!("AKID{number}"),
            format!("secret-{number}"),
            Some(format!("token-{number}")),
            Some(self.calendar.now() + Duration::from_secs(60)),
            "test",
        )))
    }
}

#[tokio::test]
async fn credentials_are_replaced_before_they_expire() {
    let (script, rotating) = (Script::default(), Rotating::default());
    let config = script.config().credentials_provider(rotating.clone());
    let writer = writer(config.time_source(rotating.calendar.clone()));
    // The SDK replaces credentials ten seconds before they expire, or up to five later.
    for second in [0, 1, 49, 56, 57, 105, 112] {
        rotating.calendar.0.store(second, Ordering::SeqCst);
        writer.send(request()).await.unwrap();
    }
    let sent = script.sent.lock().unwrap();
    let tokens: Vec<_> = sent
        .iter()
        .map(|sent| sent.header("x-amz-security-token").unwrap())
        .collect();
    assert_eq!(
        tokens,
        [
            "token-1", "token-1", "token-1", "token-2", "token-2", "token-2", "token-3"
        ]
    );
    for (sent, token) in sent.iter().zip(tokens) {
        assert_eq!(sent.scope()[0], token.replace("token-", "AKID"));
        assert!(
            sent.header("authorization")
                .unwrap()
                .contains(";x-amz-security-token;")
        );
    }
    assert_eq!(rotating.provided.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn requests_go_where_the_sdk_would_send_them() {
    let with_account = || {
        let credentials = Credentials::builder()
            .access_key_id("AKID")
            .secret_access_key("secret");
        credentials
            .account_id("123456789012")
            .provider_name("test")
            .build()
    };
    let cases: [(&str, Configure); 5] = [
        ("https://dynamodb.eu-west-1.amazonaws.com/", |config| config),
        ("https://dynamodb-fips.eu-west-1.amazonaws.com/", |config| {
            config.use_fips(true)
        }),
        ("https://dynamodb.eu-west-1.api.aws/", |config| {
            config.use_dual_stack(true)
        }),
        ("http://127.0.0.1:8000/", |config| {
            config.endpoint_url("http://127.0.0.1:8000")
        }),
        ("http://gateway/tables/", |config| {
            config.endpoint_url("http://gateway/tables")
        }),
    ];
    for (expected, configure) in cases {
        let script = Script::default();
        writer(configure(script.config())).send(request()).await.unwrap();
        let sent = script.sent.lock().unwrap();
        assert_eq!(sent[0].uri, expected);
        assert_eq!(sent[0].scope(), ["AKID", "20260131", "eu-west-1", "dynamodb"]);
    }
    let script = Script::default();
    let config = script.config().credentials_provider(with_account());
    writer(config).send(request()).await.unwrap();
    let uri = &script.sent.lock().unwrap()[0].uri;
    assert_eq!(uri, "https://123456789012.ddb.eu-west-1.amazonaws.com/");
}

#[tokio::test]
async fn the_sdk_sends_the_same_request_but_for_its_own_headers() {
    let script = Script::default();
    let client = Client::from_conf(script.config().build());
    client.update_item().table_name("limiter").send().await.unwrap();
    let writer = BucketWriter::new(table(client), standing(), None);
    let request = request();
    let body = request.body().to_owned();
    writer.send(request).await.unwrap();
    let sent = script.sent.lock().unwrap();
    let [of_the_sdk, ours] = sent.as_slice() else {
        panic!("{sent:?}")
    };
    assert_eq!(ours.body, body);
    assert_eq!(ours.uri, of_the_sdk.uri);
    for name in ["content-type", "x-amz-target", "user-agent"] {
        assert_eq!(ours.header(name), of_the_sdk.header(name), "{name}");
    }
    assert!(
        ours.header("user-agent").unwrap().contains("api/dynamodb"),
        "{ours:?}"
    );
    assert_eq!(ours.headers.len(), 5, "{ours:?}");
}

#[tokio::test]
async fn the_route_is_found_without_sending_anything_and_kept() {
    let script = Script::default();
    let timeouts = TimeoutConfig::builder()
        .connect_timeout(Duration::from_millis(1_234))
        .build();
    let writer = writer(script.config().timeout_config(timeouts));
    for count in 1..=3 {
        writer.send(request()).await.unwrap();
        assert_eq!(script.sent.lock().unwrap().len(), count);
    }
    assert_eq!(
        *script.connect_timeouts.lock().unwrap(),
        [Some(Duration::from_millis(1_234))]
    );
}

#[tokio::test]
async fn a_client_that_does_not_sign_sends_no_signature() {
    let script = Script::default();
    let config = EmbeddedStore::memory().unwrap().sdk_config();
    writer(config.http_client(script.clone()))
        .send(request())
        .await
        .unwrap();
    let sent = script.sent.lock().unwrap();
    for name in ["authorization", "x-amz-date", "x-amz-security-token"] {
        assert_eq!(sent[0].header(name), None);
    }
}

/// Credentials that cannot be had.
#[derive(Debug)]
struct Missing(fn() -> CredentialsError);

impl ProvideCredentials for Missing {
    fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
    where
        Self: 'a,
    {
        future::ProvideCredentials::ready(Err((self.0)()))
    }
}

#[tokio::test]
async fn a_write_without_credentials_is_not_sent() {
    let failures: [(fn() -> CredentialsError, bool); 3] = [
        (|| CredentialsError::not_loaded("none"), true),
        (|| CredentialsError::invalid_configuration("odd"), true),
        (|| CredentialsError::provider_error("down"), false),
    ];
    for (failure, denied) in failures {
        let script = Script::default();
        let client = Client::from_conf(script.config().credentials_provider(Missing(failure)).build());
        let of_the_sdk = client
            .update_item()
            .table_name("limiter")
            .send()
            .await
            .unwrap_err();
        let writer = BucketWriter::new(table(client), standing(), None);
        let ours = writer.exchange(request()).await.unwrap_err();
        assert_eq!(ours, CallError::from(&of_the_sdk));
        assert_eq!(matches!(ours, CallError::Denied(_)), denied, "{ours:?}");
        assert!(script.sent.lock().unwrap().is_empty());
    }
}

/// Credentials for a minute, and none after them.
#[derive(Debug)]
struct NotRenewed {
    calendar: Calendar,
    failure: fn() -> CredentialsError,
}

impl ProvideCredentials for NotRenewed {
    fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
    where
        Self: 'a,
    {
        let minute = SystemTime::UNIX_EPOCH + Duration::from_secs(60);
        let credentials = Credentials::new("AKID", "secret", None, Some(minute), "test");
        let is_over = self.calendar.now() >= minute;
        future::ProvideCredentials::ready(if is_over {
            Err((self.failure)())
        } else {
            Ok(credentials)
        })
    }
}

#[tokio::test]
async fn credentials_that_cannot_be_renewed_stop_a_write_before_it_is_sent() {
    let failures: [(fn() -> CredentialsError, bool); 2] = [
        (|| CredentialsError::not_loaded("none"), true),
        (|| CredentialsError::provider_error("down"), false),
    ];
    for (failure, denied) in failures {
        let (script, calendar) = (Script::default(), Calendar::default());
        let provider = NotRenewed {
            calendar: calendar.clone(),
            failure,
        };
        let config = script.config().credentials_provider(provider);
        let writer = writer(config.time_source(calendar.clone()));
        writer.exchange(request()).await.unwrap();
        calendar.0.store(61, Ordering::SeqCst);
        let error = writer.exchange(request()).await.unwrap_err();
        assert_eq!(matches!(error, CallError::Denied(_)), denied, "{error:?}");
        assert_eq!(matches!(error, CallError::NotSent(_)), !denied, "{error:?}");
        assert_eq!(script.sent.lock().unwrap().len(), 1);
    }
}

/// Replaces the signature, as another scheme would.
#[derive(Debug)]
struct Bearer;

#[dyn_dispatch_hint]
impl Intercept for Bearer {
    fn name(&self) -> &'static str {
        "Bearer"
    }

    fn modify_before_transmit(
        &self,
        context: &mut BeforeTransmitInterceptorContextMut<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let headers = context.request_mut().headers_mut();
        headers.insert("authorization", "Bearer token");
        Ok(())
    }
}

#[tokio::test]
async fn a_client_that_signs_otherwise_is_a_mistake_and_no_outage() {
    let script = Script::default();
    let writer = writer(script.config().interceptor(Bearer));
    let error = writer.exchange(request()).await.unwrap_err();
    assert!(
        matches!(&error, CallError::Invalid(text) if text.contains("Signature Version 4")),
        "{error:?}"
    );
    assert!(script.sent.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_wrong_clock_is_corrected_by_the_responses() {
    let script = Script::default();
    let elapsed = Arc::new(AtomicI64::new(0));
    let dates = ServerTime::new(move || LocalTime {
        now: Timestamp::from_millis(NOW),
        elapsed: Duration::from_millis(elapsed.fetch_add(1, Ordering::SeqCst).unsigned_abs()),
    });
    let client = Client::from_conf(script.config().build());
    let writer = BucketWriter::new(table(client), dates.clone(), None);
    // An hour later than the clock says.
    let denied = r#"{"__type":"InvalidSignatureException","message":"Signature expired"}"#;
    script.responds(400, &[("date", "Sat, 31 Jan 2026 13:00:00 GMT")], denied.into());
    let error = writer.exchange(request()).await.unwrap_err();
    assert!(matches!(error, CallError::Denied(_)), "{error:?}");
    writer.exchange(request()).await.unwrap();
    let sent = script.sent.lock().unwrap();
    assert_eq!(sent[0].header("x-amz-date"), Some("20260131T120000Z"));
    assert_eq!(sent[1].header("x-amz-date"), Some("20260131T130000Z"));
    assert!(dates.offset() > 3_590_000, "{}", dates.offset());
}

#[tokio::test]
async fn a_meter_counts_what_is_answered() {
    let (script, meter) = (Script::default(), CapacityMeter::new());
    let client = Client::from_conf(script.config().build());
    let writer = BucketWriter::new(table(client), standing(), Some(meter.clone()));
    let units = r#"{"Attributes":{},"ConsumedCapacity":{"TableName":"limiter","CapacityUnits":2.5}}"#;
    script.responds(200, &[], units.into());
    script.responds(500, &[], "".into());
    writer.exchange(request()).await.unwrap();
    writer.exchange(request()).await.unwrap_err();
    let consumed = meter.consumed();
    assert_eq!((consumed.calls, consumed.write_units), (2, 2.5));
    let sent = script.sent.lock().unwrap();
    assert!(
        sent[0].body.ends_with(r#","ReturnConsumedCapacity":"TOTAL"}"#),
        "{sent:?}"
    );
}

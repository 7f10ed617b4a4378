//! How failed bucket writes are classified: what was refused, what was not sent, and what may have happened.

use std::io::{Error as IoError, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener};

use aws_credential_types::provider::error::CredentialsError;
use aws_credential_types::provider::{ProvideCredentials, future};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::Builder;
use aws_smithy_runtime_api::client::result::ConnectorError;
use zae_limiter_schema::bucket::{Action, Attr, Attributes, Scalar, Statement};

use super::key;
use crate::script::{Script, table};
use crate::{CallError, CapacityMeter, Update, Updated};

/// Sends a write of which only the response matters.
async fn write(config: Builder) -> Result<Updated<Attributes>, CallError> {
    let statement = Statement {
        conditions: Vec::new(),
        actions: vec![Action::Set(Attr::Events, Scalar::Number(1))],
    };
    let table = table(Client::from_conf(config.build()));
    let sent = table
        .update_bucket(Update::of_statement(key().key(), &statement))
        .await;
    sent.map_err(|error| error.cause().unwrap().clone())
}

#[tokio::test]
async fn errors_of_the_service_have_their_class() {
    let class = |error: &CallError| match error {
        CallError::Denied(_) => "denied",
        CallError::TableMissing => "missing",
        CallError::Invalid(_) => "invalid",
        CallError::Conflict(_) => "conflict",
        CallError::Throttled(_) => "throttled",
        CallError::Unavailable(_) => "unavailable",
        _ => "refused",
    };
    for (status, code, expected) in [
        (400, "AccessDeniedException", "denied"),
        (400, "ExpiredTokenException", "denied"),
        (400, "UnrecognizedClientException", "denied"),
        (400, "ItemCollectionSizeLimitExceededException", "invalid"),
        (400, "ValidationException", "invalid"),
        (400, "LimitExceededException", "throttled"),
        (400, "ProvisionedThroughputExceededException", "throttled"),
        (400, "ThrottlingException", "throttled"),
        (400, "RequestLimitExceeded", "throttled"),
        (400, "ReplicatedWriteConflictException", "conflict"),
        (400, "TransactionConflictException", "conflict"),
        (400, "ResourceNotFoundException", "missing"),
        (400, "SomethingNew", "refused"),
        (500, "InternalServerError", "unavailable"),
        (500, "SomethingNew", "unavailable"),
        (503, "SomethingNew", "unavailable"),
    ] {
        for body in [
            format!(r#"{{"__type":"com.amazonaws.dynamodb.v20120810#{code}","message":"text"}}"#),
            format!(r#"{{"__type":"{code}:http://internal.amazon.com/","Message":"text"}}"#),
        ] {
            let script = Script::default();
            script.responds(status, &[], body.clone().into());
            let error = write(script.config()).await.unwrap_err();
            assert_eq!(class(&error), expected, "{status} {body}: {error:?}");
        }
    }
}

#[tokio::test]
async fn an_error_without_a_code_is_judged_by_its_status() {
    for (status, is_unavailable) in [(502, true), (503, true), (404, false)] {
        for body in ["", "{}", "<html>Bad Gateway</html>"] {
            let script = Script::default();
            script.responds(status, &[], body.into());
            let error = write(script.config()).await.unwrap_err();
            let unavailable = matches!(error, CallError::Unavailable(_));
            assert_eq!(unavailable, is_unavailable, "{status} {body}: {error:?}");
        }
    }
}

#[tokio::test]
async fn a_false_condition_returns_the_item_if_there_is_one() {
    for (item, events) in [
        (r#","Item":{"PK":{"S":"p"},"ev":{"N":"7"}}"#, Some(Some(7))),
        (r#","Item":{"PK":{"S":"p"}}"#, Some(None)),
        (r#","Item":{}"#, None),
        (r#","Item":null"#, None),
        ("", None),
    ] {
        let script = Script::default();
        let body = format!(r#"{{"__type":"a#ConditionalCheckFailedException","message":"m"{item}}}"#);
        script.responds(400, &[], body.clone().into());
        let Ok(Updated::ConditionFailed(found)) = write(script.config()).await else {
            panic!("{body}")
        };
        assert_eq!(found.map(|item| item.number(&Attr::Events)), events, "{body}");
    }
}

#[tokio::test]
async fn a_connection_that_breaks_leaves_it_open_whether_the_write_happened() {
    for kind in [
        ErrorKind::ConnectionReset,
        ErrorKind::BrokenPipe,
        ErrorKind::UnexpectedEof,
        ErrorKind::TimedOut,
    ] {
        let script = Script::default();
        script.fails(ConnectorError::io(IoError::from(kind).into()));
        let outcome = write(script.config()).await;
        assert!(
            matches!(outcome, Err(CallError::Unavailable(_))),
            "{kind:?}: {outcome:?}"
        );
    }
}

#[tokio::test]
async fn a_success_that_cannot_be_read_leaves_it_open_whether_the_write_happened() {
    for body in [
        "{",
        "[]x",
        r#"{"Attributes":{"ev":{"N":5}}}"#,
        r#"{"Attributes":{"ev":{"N":"1","S":"x"}}}"#,
        r#"{"Attributes":{"ev":{"X":"1"}}}"#,
    ] {
        let script = Script::default();
        script.responds(200, &[], body.into());
        let outcome = write(script.config()).await;
        assert!(
            matches!(outcome, Err(CallError::Unavailable(_))),
            "{body}: {outcome:?}"
        );
    }
}

/// A server that reads one request, sends this, and closes the connection.
fn server(response: &'static str) -> (SocketAddr, std::thread::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serves = std::thread::spawn(move || {
        let (mut connection, _) = listener.accept().unwrap();
        let mut request = [0; 4096];
        assert!(connection.read(&mut request).unwrap() > 0);
        connection.write_all(response.as_bytes()).unwrap();
    });
    (address, serves)
}

/// A configuration that reaches a server over HTTP.
fn over_http(address: SocketAddr) -> Builder {
    let config = Script::default().config();
    config
        .endpoint_url(format!("http://{address}"))
        .http_client(aws_smithy_http_client::Builder::new().build_http())
}

#[tokio::test]
async fn a_connection_that_is_closed_leaves_it_open_whether_the_write_happened() {
    for response in [
        "",
        "nonsense",
        "HTTP/1.1 200 OK\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{",
        "HTTP/1.1 400 Bad Request\r\ncontent-length: 100\r\n\r\n{",
    ] {
        let (address, serves) = server(response);
        let outcome = write(over_http(address)).await;
        assert!(
            matches!(outcome, Err(CallError::Unavailable(_))),
            "{response}: {outcome:?}"
        );
        serves.join().unwrap();
    }
}

#[tokio::test]
async fn a_write_that_no_server_accepts_was_not_sent() {
    let unused = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let outcome = write(over_http(unused)).await;
    assert!(matches!(outcome, Err(CallError::NotSent(_))), "{outcome:?}");
}

#[tokio::test]
async fn a_write_whose_tls_handshake_fails_was_not_sent() {
    use aws_smithy_http_client::tls::{Provider, rustls_provider::CryptoMode};

    let (address, serves) = server("no TLS here");
    let https = aws_smithy_http_client::Builder::new()
        .tls_provider(Provider::Rustls(CryptoMode::AwsLc))
        .build_https();
    let config = over_http(address)
        .endpoint_url(format!("https://{address}"))
        .http_client(https);
    let outcome = write(config).await;
    assert!(matches!(outcome, Err(CallError::NotSent(_))), "{outcome:?}");
    serves.join().unwrap();
}

/// Credentials that cannot be loaded.
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
async fn a_write_without_credentials_is_not_sent_and_a_denial() {
    let failures: [fn() -> CredentialsError; 4] = [
        || CredentialsError::not_loaded("none"),
        || CredentialsError::invalid_configuration("odd"),
        || CredentialsError::provider_error("down"),
        || CredentialsError::provider_timed_out(std::time::Duration::from_secs(1)),
    ];
    for failure in failures {
        let script = Script::default();
        let error = write(script.config().credentials_provider(Missing(failure)))
            .await
            .unwrap_err();
        assert!(
            matches!(&error, CallError::Denied(text) if text.contains("AWS_PROFILE")),
            "{error:?}"
        );
        assert!(script.sent.lock().unwrap().is_empty());
    }
}

/// Reads a request of a connection and sends a response that keeps it open. The number of bytes read.
fn serve(connection: &mut std::net::TcpStream, status: &str) -> usize {
    let read = connection.read(&mut [0; 4096]).unwrap();
    let response = format!("HTTP/1.1 {status}\r\ncontent-length: 2\r\n\r\n{{}}");
    // The client may have closed it.
    drop(connection.write_all(response.as_bytes()));
    read
}

#[tokio::test]
async fn a_connection_is_not_used_again_after_the_service_failed_on_it() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serves = std::thread::spawn(move || {
        let (mut first, _) = listener.accept().unwrap();
        serve(&mut first, "500 Internal Server Error");
        let again = std::thread::spawn(move || serve(&mut first, "400 Bad Request"));
        let (mut second, _) = listener.accept().unwrap();
        serve(&mut second, "200 OK");
        again.join().unwrap()
    });
    let client = Client::from_conf(over_http(address).build());
    let send = async || client.update_item().table_name("limiter").send().await;
    assert!(send().await.is_err());
    assert!(send().await.is_ok());
    drop(client);
    assert_eq!(serves.join().unwrap(), 0, "the first connection was closed");
}

#[tokio::test]
async fn interceptors_of_the_client_apply_to_bucket_writes() {
    let (script, meter) = (Script::default(), CapacityMeter::new());
    let units = r#"{"Attributes":{},"ConsumedCapacity":{"TableName":"limiter","CapacityUnits":2.5}}"#;
    script.responds(200, &[], units.into());
    write(script.config().interceptor(meter.clone())).await.unwrap();
    let consumed = meter.consumed();
    assert_eq!((consumed.calls, consumed.write_units), (1, 2.5));
    let sent = script.sent.lock().unwrap();
    let agent = sent[0].header("x-amz-user-agent").unwrap();
    assert!(agent.contains("api/dynamodb"), "{agent}");
}

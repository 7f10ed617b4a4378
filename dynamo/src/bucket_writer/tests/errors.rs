//! Failed writes have the class that the SDK's own call has.

use std::io::{Error as IoError, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener};

use aws_sdk_dynamodb::Client;
use aws_smithy_runtime_api::client::result::ConnectorError;
use zae_limiter_schema::bucket::{Action, Attr, Attributes, Scalar, Statement};

use super::{key, standing, table};
use crate::bucket_writer::MAX_RESPONSE;
use crate::script::Script;
use crate::{BucketRequest, BucketWriter, CallError, Updated};

/// A request of which only the response matters.
fn request() -> BucketRequest {
    let statement = Statement {
        conditions: Vec::new(),
        actions: vec![Action::Set(Attr::Events, Scalar::Number(1))],
    };
    BucketRequest::of_statement("limiter", &key().key(), &statement)
}

async fn write(client: &Client) -> Result<Updated<Attributes>, CallError> {
    let writer = BucketWriter::new(table(client.clone()), standing(), None);
    writer.exchange(request()).await
}

/// The same response to the SDK's call and to ours.
async fn both(respond: impl Fn(&Script)) -> (CallError, Result<Updated<Attributes>, CallError>) {
    let script = Script::default();
    let client = Client::from_conf(script.config().build());
    respond(&script);
    let of_the_sdk = client.update_item().table_name("limiter").send().await;
    respond(&script);
    (CallError::from(&of_the_sdk.unwrap_err()), write(&client).await)
}

#[tokio::test]
async fn every_error_is_the_one_that_the_sdk_reads() {
    let codes = [
        "AccessDeniedException",
        "ExpiredTokenException",
        "InternalServerError",
        "ItemCollectionSizeLimitExceededException",
        "LimitExceededException",
        "ProvisionedThroughputExceededException",
        "ReplicatedWriteConflictException",
        "RequestLimitExceeded",
        "ResourceNotFoundException",
        "SomethingNew",
        "ThrottlingException",
        "TransactionConflictException",
        "UnrecognizedClientException",
        "ValidationException",
    ];
    let mut bodies: Vec<String> = codes
        .iter()
        .flat_map(|code| {
            [
                format!(r#"{{"__type":"com.amazonaws.dynamodb.v20120810#{code}","message":"text"}}"#),
                format!(r#"{{"__type":"{code}:http://internal.amazon.com/","Message":"text"}}"#),
                format!(r#"{{"code":"{code}","__type":"Other","Item":5}}"#),
            ]
        })
        .collect();
    bodies.extend(
        [
            "",
            " \n",
            "{}",
            "<html>Bad Gateway</html>",
            r#"{"__type":"#,
            r#"{"__type":5,"message":"text","more":{"a":[1]}}"#,
            r#"{"__type":"ThrottlingException"} more"#,
            r#"{"__type":"ConditionalCheckFailedException","Item":{"ev":{"N":5}}}"#,
            "\u{0}\u{1}",
        ]
        .map(str::to_owned),
    );
    let headers: [&[(&str, &str)]; 2] = [&[], &[("x-amzn-errortype", "ThrottlingException:http://x")]];
    for status in [301, 400, 401, 403, 404, 413, 429, 500, 502, 503] {
        for body in &bodies {
            for header in headers {
                let (sdk, ours) = both(|script| script.responds(status, header, body.clone().into())).await;
                assert_eq!(ours, Err(sdk), "{status} {header:?} {body}");
            }
        }
    }
}

#[tokio::test]
async fn a_false_condition_returns_the_item_if_there_is_one() {
    let refusals = [
        (r#","Item":{"PK":{"S":"p"},"ev":{"N":"7"}}"#, Some(7)),
        (r#","Item":{"PK":{"S":"p"}}"#, Some(0)),
        (r#","Item":{}"#, None),
        (r#","Item":null"#, None),
        ("", None),
    ];
    let code = [("x-amzn-errortype", "ConditionalCheckFailedException")];
    let (sdk, ours) = both(|script| script.responds(400, &code, "".into())).await;
    assert_eq!(
        (sdk, ours),
        (CallError::ConditionFailed, Ok(Updated::ConditionFailed(None)))
    );
    for (item, events) in refusals {
        let body = format!(r#"{{"__type":"a#ConditionalCheckFailedException","message":"m"{item}}}"#);
        let (sdk, ours) = both(|script| script.responds(400, &[], body.clone().into())).await;
        assert_eq!(sdk, CallError::ConditionFailed);
        let Ok(Updated::ConditionFailed(found)) = ours else {
            panic!("{ours:?}")
        };
        let found = found.map(|item| match item.get(&Attr::Events) {
            Some(Scalar::Number(events)) => *events,
            _ => 0,
        });
        assert_eq!(found, events, "{body}");
    }
}

#[tokio::test]
async fn a_connection_that_fails_has_the_same_class() {
    for kind in [
        ErrorKind::ConnectionRefused,
        ErrorKind::ConnectionReset,
        ErrorKind::BrokenPipe,
        ErrorKind::UnexpectedEof,
        ErrorKind::TimedOut,
    ] {
        let failures: [fn(IoError) -> ConnectorError; 3] = [
            |error| ConnectorError::io(error.into()),
            |error| ConnectorError::timeout(error.into()),
            |error| ConnectorError::user(error.into()),
        ];
        for failure in failures {
            let (sdk, ours) = both(|script| script.fails(failure(IoError::from(kind)))).await;
            assert_eq!(ours, Err(sdk), "{kind:?}");
        }
    }
}

#[tokio::test]
async fn a_success_that_cannot_be_read_leaves_the_write_in_doubt() {
    let bodies = [
        String::new(),
        "{".to_owned(),
        "[]x".to_owned(),
        r#"{"Attributes":{"ev":{"N":5}}}"#.to_owned(),
        r#"{"Attributes":{"ev":{}}}"#.to_owned(),
        r#"{"Attributes":{"ev":{"N":"1","S":"x"}}}"#.to_owned(),
        r#"{"Attributes":{"ev":{"X":"1"}}}"#.to_owned(),
        format!(r#"{{"Attributes":{}"#, "[".repeat(10_000)),
        " ".repeat(MAX_RESPONSE + 1),
    ];
    for body in bodies {
        let script = Script::default();
        let client = Client::from_conf(script.config().build());
        script.responds(200, &[], body.clone().into());
        let outcome = write(&client).await;
        let text: String = body.chars().take(50).collect();
        assert!(
            matches!(outcome, Err(CallError::Unavailable(_))),
            "{text}: {outcome:?}"
        );
    }
}

/// A server that reads one request and answers with this, whatever it says, before it closes the connection.
fn server(answer: &'static str) -> (SocketAddr, std::thread::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serves = std::thread::spawn(move || {
        let (mut connection, _) = listener.accept().unwrap();
        let mut request = [0; 4096];
        assert!(connection.read(&mut request).unwrap() > 0);
        connection.write_all(answer.as_bytes()).unwrap();
    });
    (address, serves)
}

#[tokio::test]
async fn a_connection_that_is_closed_leaves_the_write_in_doubt() {
    for answer in [
        "",
        "nonsense",
        "HTTP/1.1 200 OK\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{",
        "HTTP/1.1 400 Bad Request\r\ncontent-length: 100\r\n\r\n{",
    ] {
        let (address, serves) = server(answer);
        let config = Script::default()
            .config()
            .endpoint_url(format!("http://{address}"));
        let config = config.http_client(aws_smithy_http_client::Builder::new().build_http());
        let outcome = write(&Client::from_conf(config.build())).await;
        assert!(
            matches!(outcome, Err(CallError::Unavailable(_))),
            "{answer}: {outcome:?}"
        );
        serves.join().unwrap();
    }
}

#[tokio::test]
async fn a_write_that_no_server_takes_was_not_sent() {
    let unused = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let config = Script::default()
        .config()
        .endpoint_url(format!("http://{unused}"));
    let config = config.http_client(aws_smithy_http_client::Builder::new().build_http());
    let outcome = write(&Client::from_conf(config.build())).await;
    assert!(matches!(outcome, Err(CallError::NotSent(_))), "{outcome:?}");
}

#![allow(clippy::unwrap_used)]

use std::sync::atomic::AtomicU32;

use aws_sdk_dynamodb::Client;
use aws_smithy_runtime_api::client::connection::ConnectionMetadata;
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::http::StatusCode;
use aws_smithy_types::body::SdkBody;

use super::*;
use crate::script::{Script, table};
use crate::{CallError, Table, Update};

const ATTEMPT: Duration = Duration::from_millis(500);

/// An HTTP client that takes its time to connect and then to respond, and reports when it is connected.
#[derive(Debug, Clone, Default)]
struct Slow {
    connect: Duration,
    respond: Duration,
    /// How often it began to connect.
    connects: Arc<AtomicU32>,
    sent: Arc<AtomicU32>,
}

impl HttpConnector for Slow {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let this = self.clone();
        let connected = Arc::new(AtomicBool::new(false));
        let capture = request.extension::<CaptureSmithyConnection>().unwrap();
        capture.set_connection_retriever({
            let connected = connected.clone();
            move || {
                let metadata = || {
                    ConnectionMetadata::builder()
                        .proxied(false)
                        .poison_fn(|| {})
                        .build()
                };
                connected.load(Ordering::SeqCst).then(metadata)
            }
        });
        HttpConnectorFuture::new(async move {
            this.connects.fetch_add(1, Ordering::SeqCst);
            tokio::time::sleep(this.connect).await;
            connected.store(true, Ordering::SeqCst);
            this.sent.fetch_add(1, Ordering::SeqCst);
            tokio::time::sleep(this.respond).await;
            let success = StatusCode::try_from(200).unwrap();
            Ok(HttpResponse::new(success, SdkBody::from("{}")))
        })
    }
}

impl HttpClient for Slow {
    fn http_connector(&self, _: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}

impl Slow {
    fn taking(connect: u64, respond: u64) -> Self {
        Self {
            connect: Duration::from_millis(connect),
            respond: Duration::from_millis(respond),
            ..Self::default()
        }
    }

    /// A table whose calls have a second, and half of it for an attempt.
    fn table(&self, watch: ConnectionWatch) -> Table {
        let config = Script::default()
            .config()
            .http_client(self.clone())
            .interceptor(watch);
        Table {
            budget: Duration::from_secs(1),
            attempt: ATTEMPT,
            ..table(Client::from_conf(config.build()))
        }
    }

    fn counts(&self) -> (u32, u32) {
        (
            self.connects.load(Ordering::SeqCst),
            self.sent.load(Ordering::SeqCst),
        )
    }
}

fn update() -> Update {
    Update::of(zae_limiter_schema::keys::version()).remove("a")
}

#[tokio::test(start_paused = true)]
async fn connecting_that_takes_longer_than_an_attempt_is_begun_once() {
    for connect in [10, 450, 600, 900] {
        let slow = Slow::taking(connect, 20);
        slow.table(ConnectionWatch::default())
            .update(update())
            .await
            .unwrap();
        assert_eq!(slow.counts(), (1, 1), "{connect} ms");
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_was_sent_has_one_attempt_for_its_response() {
    let slow = Slow::taking(10, 10_000);
    let table = slow.table(ConnectionWatch::default());
    table.update(update()).await.unwrap_err();
    assert_eq!(slow.counts().0, 2, "an attempt and a retry");

    let slow = Slow::taking(600, 10_000);
    let table = slow.table(ConnectionWatch::default());
    let sent = async { table.update_once(update()).await };
    let (begun, deadline) = (Instant::now(), Instant::now() + Duration::from_secs(60));
    let timed_out = attempt(ATTEMPT, deadline, sent).await.map(drop);
    assert_eq!(timed_out, Err(TimedOut::Sent));
    // Noticed at the next look, in simulated time.
    assert_eq!(begun.elapsed(), Duration::from_millis(600) + ATTEMPT);
}

#[tokio::test(start_paused = true)]
async fn without_a_connection_nothing_was_sent_once_connections_are_known_to_be_reported() {
    let watch = ConnectionWatch::default();
    let never = Slow::taking(1_000_000, 0);
    let table = never.table(watch.clone());
    let once = || async {
        let deadline = Instant::now() + ATTEMPT * 2;
        attempt(ATTEMPT, deadline, table.update_once(update()))
            .await
            .map(drop)
    };
    // This HTTP client may be one that reports nothing.
    assert_eq!(once().await, Err(TimedOut::Sent));
    let quick = Slow::taking(0, 0);
    quick.table(watch.clone()).update(update()).await.unwrap();
    assert_eq!(once().await, Err(TimedOut::NotSent));
    assert_eq!(never.counts().1, 0);
    let error = table.update(update()).await.unwrap_err();
    assert!(matches!(error.cause(), Some(CallError::NotSent(_))), "{error}");
}

#[tokio::test(start_paused = true)]
async fn an_http_client_that_is_not_watched_has_the_time_of_an_attempt() {
    let slow = Slow::taking(600, 0);
    let config = Script::default().config().http_client(slow.clone());
    let table = table(Client::from_conf(config.build()));
    let deadline = Instant::now() + Duration::from_secs(60);
    let timed_out = attempt(ATTEMPT, deadline, table.update_once(update()))
        .await
        .map(drop);
    assert_eq!(timed_out, Err(TimedOut::Sent));
}

/// A server that reads requests of as many connections as come and responds to this many of them.
fn server(responses: u32) -> std::net::SocketAddr {
    use std::io::{Read, Write};

    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut open = Vec::new();
        for (number, connection) in (0..).zip(listener.incoming()) {
            let mut connection = connection.unwrap();
            if number < responses {
                let mut request = [0; 4096];
                assert!(connection.read(&mut request).unwrap() > 0);
                let response = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
                connection.write_all(response).unwrap();
            }
            open.push(connection);
        }
    });
    address
}

/// The HTTP client of the SDK, and its TLS.
#[tokio::test]
async fn the_http_client_of_the_sdk_reports_connections() {
    use aws_smithy_http_client::tls::{Provider, rustls_provider::CryptoMode};

    let watch = ConnectionWatch::default();
    let table_at = |url: String| {
        let https = aws_smithy_http_client::Builder::new()
            .tls_provider(Provider::Rustls(CryptoMode::AwsLc))
            .build_https();
        let config = Script::default().config().endpoint_url(url).http_client(https);
        table(Client::from_conf(config.interceptor(watch.clone()).build()))
    };
    let once = |table: Table, deadline: Duration| async move {
        let deadline = Instant::now() + deadline;
        let timeout = Duration::from_millis(200);
        attempt(timeout, deadline, table.update_once(update()))
            .await
            .map(drop)
    };
    let http = format!("http://{}", server(1));
    let responds = once(table_at(http.clone()), Duration::from_secs(60)).await;
    assert_eq!(responds, Ok(()));
    // It reads the second request and is silent.
    let silent = once(table_at(http), Duration::from_secs(60)).await;
    assert_eq!(silent, Err(TimedOut::Sent));
    // The handshake never ends.
    let https = format!("https://{}", server(0));
    let unconnected = once(table_at(https), Duration::from_millis(300)).await;
    assert_eq!(unconnected, Err(TimedOut::NotSent));
}

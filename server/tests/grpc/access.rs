//! Tokens, health, and what happens when the table fails or the server stops.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tonic::{Code, Request, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use zae_limiter::{EmbeddedStore, OnUnavailable, RateLimiter};
use zae_limiter_server::{Error, Server, Settings};
use zae_limiter_testing::connection::{Connection, Fault};

use crate::connection::on_connection;
use crate::grpc::client::{MAPPING, TestServer, calls, channel, limits, request};
use crate::grpc::messages::RateLimitRequest;

/// More than the table ever takes to respond here. A call that is denied is not repeated, so that it fails at once.
const TIME_BUDGET: std::time::Duration = std::time::Duration::from_secs(5);

const TOKENS: &str = "envoy acquire acquire-token-1234\nboard read,admin read-token-12345678";

async fn with_token(server: &TestServer, authorization: Option<&str>) -> Result<(), Status> {
    let mut call: Request<RateLimitRequest> = Request::new(request(1, [calls("ada")]));
    if let Some(value) = authorization {
        call.metadata_mut()
            .insert("authorization", value.parse().unwrap());
    }
    server.client.clone().should_rate_limit(call).await.map(drop)
}

async fn health(server: &TestServer, service: &str) -> Result<ServingStatus, Status> {
    let service = service.to_owned();
    let mut client = HealthClient::new(channel(server.grpc).await);
    let response = client.check(HealthCheckRequest { service }).await;
    response.map(|response| response.into_inner().status())
}

#[tokio::test]
async fn the_service_needs_a_token_with_the_scope_acquire_and_health_needs_none() {
    let limiter = RateLimiter::embedded().default_limits(limits());
    let server = TestServer::on(limiter, Settings::default(), Some(TOKENS.parse().unwrap())).await;
    for wrong in [
        None,
        Some("Bearer"),
        Some("Bearer acquire-token-123"),
        Some("acquire-token-1234"),
    ] {
        let status = with_token(&server, wrong).await.unwrap_err();
        assert_eq!(status.code(), Code::Unauthenticated, "{status:?}");
    }
    let status = with_token(&server, Some("Bearer read-token-12345678"))
        .await
        .unwrap_err();
    assert_eq!(status.code(), Code::PermissionDenied, "{status:?}");
    assert_eq!(server.left("ada", "rpm").await, 10);
    with_token(&server, Some("Bearer acquire-token-1234"))
        .await
        .unwrap();
    assert_eq!(server.left("ada", "rpm").await, 9);
    assert_eq!(health(&server, "").await.unwrap(), ServingStatus::Serving);
}

#[tokio::test]
async fn without_tokens_the_service_only_listens_on_loopback_addresses() {
    let limiter = RateLimiter::embedded().await.unwrap();
    let open = Server::builder(limiter).envoy(MAPPING.parse().unwrap(), "0.0.0.0:0".parse().unwrap());
    let open = open.bind("127.0.0.1:0".parse().unwrap()).await;
    assert!(matches!(open, Err(Error::TokensRequired { .. })), "{open:?}");
}

#[tokio::test]
async fn health_follows_the_table_and_calls_report_that_it_is_unavailable() {
    let connection = Connection::to(EmbeddedStore::memory().unwrap());
    let limiter = on_connection(&connection)
        .default_limits(limits())
        .on_unavailable(OnUnavailable::Block)
        .time_budget(TIME_BUDGET);
    let server = TestServer::on(limiter, Settings::default(), None).await;
    let service = "envoy.service.ratelimit.v3.RateLimitService";
    assert_eq!(health(&server, service).await.unwrap(), ServingStatus::Serving);
    assert_eq!(health(&server, "other").await.unwrap_err().code(), Code::NotFound);
    server.ok(request(1, [calls("ada")])).await;
    connection.always(Fault::Denied);
    server.clock.advance(std::time::Duration::from_secs(2));
    assert_eq!(health(&server, service).await.unwrap(), ServingStatus::NotServing);
    connection.always(Fault::ServerError);
    let status = server.ask(request(1, [calls("ada")])).await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable, "{status:?}");
    assert!(
        !status.message().contains("limiter"),
        "names the table: {status:?}"
    );
}

#[tokio::test]
async fn a_client_that_does_not_begin_to_speak_http_2_is_cut_off_and_others_are_not() {
    let mut settings = Settings::default();
    settings.header_timeout = std::time::Duration::from_millis(200);
    let limiter = RateLimiter::embedded().default_limits(limits());
    let server = TestServer::on(limiter, settings, None).await;
    for start in ["", "PRI * HTTP/2.0\r\n"] {
        let mut stream = TcpStream::connect(server.grpc).await.unwrap();
        stream.write_all(start.as_bytes()).await.unwrap();
        // Returns because the server ends it.
        let mut received = vec![];
        let _ = stream.read_to_end(&mut received).await;
    }
    // The connection of the client is older than the timeout.
    server.ok(request(1, [calls("ada")])).await;
}

#[tokio::test]
async fn a_watch_reports_each_change_of_health_until_the_server_stops() {
    let connection = Connection::to(EmbeddedStore::memory().unwrap());
    let limiter = on_connection(&connection)
        .default_limits(limits())
        .time_budget(TIME_BUDGET);
    let server = TestServer::on(limiter, Settings::default(), None).await;
    let mut client = HealthClient::new(channel(server.grpc).await);
    let watch = |service: &str| HealthCheckRequest {
        service: service.to_owned(),
    };
    let mut unknown = client.watch(watch("other")).await.unwrap().into_inner();
    let first = unknown.message().await.unwrap().unwrap();
    assert_eq!(first.status(), ServingStatus::ServiceUnknown);
    let mut watched = client.watch(watch("")).await.unwrap().into_inner();
    let mut next = async || watched.message().await.unwrap().map(|response| response.status());
    assert_eq!(next().await, Some(ServingStatus::Serving));
    connection.always(Fault::Denied);
    server.clock.advance(std::time::Duration::from_secs(2));
    assert_eq!(next().await, Some(ServingStatus::NotServing));
    connection.heal();
    server.clock.advance(std::time::Duration::from_secs(2));
    assert_eq!(next().await, Some(ServingStatus::Serving));
    server.stopped().await;
    assert_eq!(next().await, Some(ServingStatus::NotServing));
    assert_eq!(next().await, None);
}

#[tokio::test]
async fn a_connection_without_requests_is_closed_and_one_with_a_watch_is_not() {
    let mut settings = Settings::default();
    settings.header_timeout = std::time::Duration::from_millis(20);
    settings.idle_timeout = std::time::Duration::from_millis(50);
    let limiter = RateLimiter::embedded().default_limits(limits());
    let server = TestServer::on(limiter, settings, None).await;
    let mut client = HealthClient::new(channel(server.grpc).await);
    let service = String::new();
    let mut watched = client
        .watch(HealthCheckRequest { service })
        .await
        .unwrap()
        .into_inner();
    assert!(watched.message().await.unwrap().is_some());

    let mut idle = TcpStream::connect(server.grpc).await.unwrap();
    // The preface, and empty settings.
    idle.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0")
        .await
        .unwrap();
    let mut received = vec![];
    // Returns because the server ends it, after it said goodbye.
    let _ = idle.read_to_end(&mut received).await;
    assert!(frames(&received).contains(&GOAWAY), "{received:?}");
    server.stopped().await;
    let last = watched.message().await.unwrap().unwrap();
    assert_eq!(
        last.status(),
        ServingStatus::NotServing,
        "the other connection was still open"
    );
}

/// The type of the frame that says goodbye.
const GOAWAY: u8 = 7;

/// The types of HTTP/2 frames.
fn frames(mut bytes: &[u8]) -> Vec<u8> {
    let mut types = vec![];
    while let [high, middle, low, kind, rest @ ..] = bytes {
        types.push(*kind);
        let length = u32::from_be_bytes([0, *high, *middle, *low]) as usize;
        bytes = rest.get(length + 5..).unwrap_or_default();
    }
    types
}

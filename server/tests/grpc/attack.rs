//! Streams that are opened and never finished.

use std::net::SocketAddr;
use std::time::Duration;

use http_body_util::StreamBody;
use hyper::body::{Bytes, Frame};
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use zae_limiter::RateLimiter;
use zae_limiter_server::Settings;

use crate::grpc::client::{TestServer, calls, channel, limits, request};

const LIMIT: &str = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
const CHECK: &str = "/grpc.health.v1.Health/Check";

/// A body that never ends.
type Endless = StreamBody<futures::stream::Pending<Result<Frame<Bytes>, std::convert::Infallible>>>;

async fn connect(address: SocketAddr) -> SendRequest<Endless> {
    let stream = TcpStream::connect(address).await.unwrap();
    let (sender, connection) = handshake(TokioExecutor::new(), TokioIo::new(stream))
        .await
        .unwrap();
    tokio::spawn(connection);
    sender
}

/// Begins a request at once, and returns the response to what was sent of it.
fn begin(
    sender: &mut SendRequest<Endless>,
    path: &str,
) -> impl Future<Output = hyper::Result<Response<hyper::body::Incoming>>> + use<> {
    let request = Request::post(format!("http://localhost{path}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(StreamBody::new(futures::stream::pending()))
        .unwrap();
    sender.send_request(request)
}

fn status(response: &Response<hyper::body::Incoming>) -> &str {
    response.headers()["grpc-status"].to_str().unwrap()
}

async fn start(change: impl FnOnce(&mut Settings)) -> TestServer {
    let mut settings = Settings::default();
    change(&mut settings);
    let limiter = RateLimiter::embedded().default_limits(limits());
    TestServer::on(limiter, settings, None).await
}

#[tokio::test]
async fn a_request_that_does_not_arrive_in_time_ends() {
    let server = start(|settings| settings.body_timeout = Duration::from_millis(50)).await;
    let mut sender = connect(server.grpc).await;
    let late = begin(&mut sender, LIMIT).await.unwrap();
    assert_eq!(status(&late), "4", "deadline exceeded: {late:?}");
    server.ok(request(1, [calls("ada")])).await;
}

#[tokio::test]
async fn open_streams_are_limited_and_health_checks_do_not_take_their_slots() {
    let server = start(|settings| {
        settings.max_grpc_requests = 2;
        settings.body_timeout = Duration::from_secs(3_600);
    })
    .await;
    // Health checks that never finish, on several connections.
    let mut held = vec![];
    for _ in 0..10 {
        let mut sender = connect(server.grpc).await;
        for _ in 0..4 {
            held.push(tokio::spawn(begin(&mut sender, CHECK)));
        }
        // The streams of a connection are in order.
        let fifth = begin(&mut sender, CHECK).await.unwrap();
        assert_eq!(status(&fifth), "14", "unavailable: {fifth:?}");
    }
    server.ok(request(1, [calls("ada")])).await;
    let mut health = HealthClient::new(channel(server.grpc).await);
    health.check(HealthCheckRequest::default()).await.unwrap();

    let mut sender = connect(server.grpc).await;
    for _ in 0..2 {
        held.push(tokio::spawn(begin(&mut sender, LIMIT)));
    }
    let third = begin(&mut sender, LIMIT).await.unwrap();
    assert_eq!(status(&third), "14", "unavailable: {third:?}");
    eprintln!(
        "11 connections with {} open streams held, no call of others lost",
        held.len()
    );
    for task in held {
        task.abort();
    }
}

#[tokio::test]
async fn a_connection_whose_requests_make_no_progress_is_closed() {
    let server = start(|settings| {
        settings.header_timeout = Duration::from_millis(20);
        settings.idle_timeout = Duration::from_millis(50);
        settings.body_timeout = Duration::from_secs(3_600);
    })
    .await;
    let mut sender = connect(server.grpc).await;
    // Returns because the server ends the connection.
    begin(&mut sender, LIMIT).await.unwrap_err();
}

#[tokio::test]
async fn a_new_watch_ends_the_oldest_one() {
    let server = start(|_| {}).await;
    let mut watches = vec![];
    for _ in 0..65 {
        let mut client = HealthClient::new(channel(server.grpc).await);
        for _ in 0..4 {
            let mut watch = client
                .watch(HealthCheckRequest::default())
                .await
                .unwrap()
                .into_inner();
            assert!(watch.message().await.unwrap().is_some());
            watches.push((client.clone(), watch));
        }
    }
    let (_, oldest) = &mut watches[0];
    assert!(oldest.message().await.unwrap().is_none(), "it made room");
}

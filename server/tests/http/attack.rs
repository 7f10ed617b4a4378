//! Clients that mean harm: each attack is small and local, and others are served meanwhile.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use zae_limiter::{EmbeddedStore, OnUnavailable, RateLimiter};
use zae_limiter_server::{Server, Settings};
use zae_limiter_testing::connection::{Connection, Fault};

use crate::client::{TestServer, limits, noon, until};
use crate::connection::on_connection;

const TOKENS: &str = "gateway acquire,read,admin 0123456789abcdef";
const TOKEN: (&str, &str) = ("authorization", "Bearer 0123456789abcdef");

fn request(limit: &str, tokens: u64) -> Value {
    json!({ "entity": "user-1", "resource": "gpt-4", "consume": { limit: tokens } })
}

/// Connections on which half of a request was sent.
async fn half_sent(server: &TestServer, path: &str, headers: &str, count: usize) -> Vec<TcpStream> {
    let mut streams = vec![];
    for _ in 0..count {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\n{headers}content-type: application/json\r\n\
             content-length: 100\r\n\r\n{{"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        streams.push(stream);
    }
    streams
}

#[tokio::test]
async fn half_sent_bodies_take_no_slot() {
    let mut settings = Settings::default();
    (settings.max_requests, settings.max_ui_requests) = (1, 1);
    let server = TestServer::with(settings, Some(TOKENS.parse().unwrap())).await;
    let bearer = format!("{}: {}\r\n", TOKEN.0, TOKEN.1);
    let _pages = half_sent(&server, "/ui/login", "", 50).await;
    let _strangers = half_sent(&server, "/v1/acquire", "", 50).await;
    let _calls = half_sent(&server, "/v1/acquire", &bearer, 50).await;
    let granted = server.post_with("/v1/acquire", &[TOKEN], request("rpm", 1)).await;
    granted.expect(200);
    server.get("/ui/login").await.expect(200);
    server.get("/readyz").await.expect(200);
    eprintln!("150 connections held with one slot of each kind, no call lost");
}

#[tokio::test]
async fn waiting_calls_do_not_take_the_slots_of_others() {
    let mut settings = Settings::default();
    (settings.max_requests, settings.max_waiting) = (2, 1);
    let server = TestServer::with(settings, None).await;
    server.post("/v1/acquire", request("rpm", 100)).await.expect(200);
    let mut waits = request("rpm", 50);
    waits["wait_ms"] = 60_000.into();
    let waiting = server.post("/v1/acquire", waits.clone());
    let others = async {
        until(|| server.handle.requests() == 1).await;
        let second = server.post("/v1/acquire", waits).await;
        let problem = second.problem(503, "overloaded");
        assert!(
            problem["detail"].as_str().unwrap().contains("wait_ms"),
            "{problem}"
        );
        server.post("/v1/acquire", request("tpm", 1)).await.expect(200);
    };
    tokio::select! {
        response = waiting => panic!("{response:?}"),
        () = others => {}
    }
}

#[tokio::test]
async fn a_large_head_is_refused() {
    let server = TestServer::start().await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let head = format!(
        "GET /healthz HTTP/1.1\r\nhost: localhost\r\nx: {}",
        "x".repeat(40_000)
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    // Returns although the head never ends.
    let mut response = vec![];
    let _ = stream.read_to_end(&mut response).await;
    let response = String::from_utf8_lossy(&response);
    assert!(response.starts_with("HTTP/1.1 431 "), "{response}");
}

#[tokio::test]
async fn a_client_that_never_reads_is_disconnected() {
    let mut settings = Settings::default();
    settings.write_timeout = Duration::from_millis(50);
    let server = TestServer::with(settings, None).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    // Ends because the server closes the connection.
    while stream
        .write_all(b"GET /openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .await
        .is_ok()
    {}
    server.get("/healthz").await.expect(200);
}

#[tokio::test]
async fn a_connection_between_requests_outlives_the_time_for_a_head() {
    let mut settings = Settings::default();
    settings.header_timeout = Duration::from_millis(20);
    let server = TestServer::with(settings, None).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let head = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let mut response = [0; 12];
    stream.write_all(head).await.unwrap();
    stream.read_exact(&mut response).await.unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    stream
        .write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        .await
        .unwrap();
    let mut rest = String::new();
    stream.read_to_string(&mut rest).await.unwrap();
    assert!(rest.contains("HTTP/1.1 200 "), "{rest}");
}

#[tokio::test]
async fn clients_that_hold_connections_between_requests_do_not_keep_out_others() {
    let mut settings = Settings::default();
    settings.max_connections = 8;
    // Longer than this test takes.
    settings.keep_alive_timeout = Duration::from_secs(3_600);
    let server = TestServer::with(settings, None).await;
    let mut held = vec![];
    for _ in 0..40 {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream
            .write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
            .await
            .unwrap();
        let mut response = [0; 12];
        stream.read_exact(&mut response).await.unwrap();
        assert_eq!(&response, b"HTTP/1.1 200");
        held.push(stream);
    }
    server.post("/v1/acquire", request("rpm", 1)).await.expect(200);
    let mut rest = vec![];
    // Returns because the server has closed the connection.
    held[0].read_to_end(&mut rest).await.unwrap();
}

#[tokio::test]
async fn tokens_are_read_again_from_their_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens.txt");
    std::fs::write(&file, TOKENS).unwrap();
    let limiter = RateLimiter::embedded().default_limits(limits()).await.unwrap();
    let server = Server::builder(limiter).token_file(&file);
    let server = server.bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let server = TestServer::running(server, noon());
    let with = async |bearer: &str| {
        let headers = [("authorization", bearer)];
        server.post_with("/v1/acquire", &headers, request("rpm", 1)).await
    };
    with(TOKEN.1).await.expect(200);
    assert!(!server.handle.reload_tokens().unwrap());

    std::fs::write(&file, "gateway acquire fedcba9876543210").unwrap();
    assert!(server.handle.reload_tokens().unwrap());
    with(TOKEN.1).await.problem(401, "unauthorized");
    with("Bearer fedcba9876543210").await.expect(200);

    std::fs::write(&file, "").unwrap();
    assert!(server.handle.reload_tokens().is_err());
    with("Bearer fedcba9876543210").await.expect(200);
}

#[tokio::test]
async fn a_server_whose_writes_fail_is_not_ready() {
    let connection = Connection::to(EmbeddedStore::memory().unwrap());
    let limiter = on_connection(&connection)
        .default_limits(limits())
        .on_unavailable(OnUnavailable::Block)
        .time_budget(Duration::from_secs(5));
    let server = TestServer::on(limiter, Settings::default(), None).await;
    server.post("/v1/acquire", request("rpm", 1)).await.expect(200);
    server.get("/readyz").await.expect(200);
    // Reads still work, as on a full disk.
    connection.always_for("UpdateItem", Fault::Denied);
    server.post("/v1/acquire", request("rpm", 1)).await.expect(500);
    server.get("/readyz").await.problem(503, "unavailable");
    // After some time it gets requests again, to find out whether writes work.
    server.clock.advance(Duration::from_secs(10));
    server.get("/readyz").await.expect(200);
}

#[tokio::test]
async fn an_adjustment_that_cannot_be_counted_is_refused() {
    let server = TestServer::start().await;
    let lease = server.post("/v1/acquire", request("tpm", 1)).await.lease();
    let path = format!("/v1/leases/{lease}/adjust");
    for tokens in [1_000_000_000_000_i64, -1_000_000_000_001, i64::MAX, i64::MIN] {
        let body = json!({ "adjust": { "tpm": tokens } });
        let problem = server.post(&path, body).await.problem(400, "invalid-request");
        assert_eq!(problem["field"], "adjust", "{problem}");
    }
    let body = json!({ "adjust": { "tpm": 999_999_999_999_i64 } });
    server.post(&path, body).await.expect(200);
}

#[tokio::test]
async fn a_slow_table_makes_calls_wait_in_line_instead_of_failing() {
    let connection = Connection::to(EmbeddedStore::memory().unwrap());
    let limiter = on_connection(&connection)
        .default_limits(limits())
        .on_unavailable(OnUnavailable::Block);
    let mut settings = Settings::default();
    settings.max_acquires = 2;
    let server = TestServer::on(limiter, settings, None).await;
    connection.latency(Duration::from_millis(1));
    // A call waits for a slot for 5 seconds: few enough calls for a machine that is busy with others.
    let calls = (0..12).map(|user| {
        let body = json!({ "entity": format!("user-{user}"), "resource": "gpt-4", "consume": { "rpm": 1 } });
        server.post("/v1/acquire", body)
    });
    for response in futures::future::join_all(calls).await {
        response.expect(200);
    }
    assert!(
        connection.most_in_flight() <= 2,
        "{}",
        connection.most_in_flight()
    );
}

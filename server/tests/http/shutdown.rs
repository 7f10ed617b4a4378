//! What happens to requests and leases when the server stops.

use serde_json::{Value, json};
use zae_limiter::{EmbeddedStore, RateLimiter};
use zae_limiter_server::Settings;
use zae_limiter_testing::connection::{Connection, Fault};

use crate::client::{TestServer, limits, until};
use crate::connection::on_connection;

fn request(limit: &str, tokens: u64) -> Value {
    json!({ "entity": "user-1", "resource": "gpt-4", "consume": { limit: tokens } })
}

#[tokio::test]
async fn stopping_commits_every_lease_with_its_adjustments() {
    let store = EmbeddedStore::memory().unwrap();
    let builder = RateLimiter::embedded_in(&store).default_limits(limits());
    let server = TestServer::on(builder, Settings::default(), None).await;
    let clock = server.clock.clone();
    for _ in 0..3 {
        let lease = server.post("/v1/acquire", request("tpm", 100)).await.lease();
        let path = format!("/v1/leases/{lease}/adjust");
        server
            .post(&path, json!({ "adjust": { "tpm": 50 } }))
            .await
            .expect(200);
    }
    let closed = server.stopped().await;
    assert_eq!((closed.committed, closed.unwritten), (3, 0));
    let after = RateLimiter::embedded_in(&store)
        .default_limits(limits())
        .clock(clock);
    let after = after.await.unwrap();
    let left = after.acquire("user-1", "gpt-4").peek().await.unwrap();
    assert_eq!(left.tokens("tpm"), Some(10_000 - 3 * 150));
}

#[tokio::test]
async fn waiting_requests_end_at_once_and_readiness_turns_before_the_listener_closes() {
    let mut settings = Settings::default();
    // Longer than this test takes: only the end of the server ends it.
    settings.drain_time = std::time::Duration::from_secs(3_600);
    let mut server = TestServer::with(settings, None).await;
    server.post("/v1/acquire", request("rpm", 100)).await.expect(200);
    server.get("/readyz").await.expect(200);
    let mut waiting = request("rpm", 50);
    waiting["wait_ms"] = 60_000.into();
    let waiter = tokio::spawn(send_alone(server.address, "/v1/acquire", waiting));
    until(|| server.handle.requests() == 1).await;
    server.stop();
    let response = waiter.await.unwrap();
    assert!(response.starts_with("HTTP/1.1 503 "), "{response}");
    assert!(
        response.contains("urn:zae-limiter:problem:shutting-down"),
        "{response}"
    );
    // On new connections, which are still accepted.
    let readiness = send_alone(server.address, "/readyz", json!({})).await;
    assert!(readiness.starts_with("HTTP/1.1 405 "), "{readiness}");
    server.get("/readyz").await.problem(503, "unavailable");
    server.post("/v1/acquire", request("tpm", 1)).await.expect(200);
}

#[tokio::test]
async fn after_the_drain_time_no_connection_is_accepted() {
    let mut settings = Settings::default();
    settings.drain_time = std::time::Duration::ZERO;
    let server = TestServer::with(settings, None).await;
    server.post("/v1/acquire", request("rpm", 1)).await.expect(200);
    let address = server.address;
    let closed = server.stopped().await;
    assert_eq!((closed.committed, closed.unwritten), (1, 0));
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn a_request_that_does_not_finish_within_the_grace_is_cut_off() {
    let mut settings = Settings::default();
    settings.drain_time = std::time::Duration::ZERO;
    settings.shutdown_grace = std::time::Duration::ZERO;
    let connection = Connection::to(EmbeddedStore::memory().unwrap());
    let limiter = on_connection(&connection).default_limits(limits());
    let mut server = TestServer::on(limiter, settings, None).await;
    server.post("/v1/acquire", request("rpm", 1)).await.expect(200);
    connection.always(Fault::Silence);
    let other = json!({ "entity": "user-2", "resource": "gpt-4", "consume": { "rpm": 1 } });
    let held = tokio::spawn(send_alone(server.address, "/v1/acquire", other));
    until(|| server.handle.requests() == 1).await;
    server.stop();
    assert_eq!(held.await.unwrap(), "", "no response");
    connection.heal();
    let closed = server.stopped().await;
    assert_eq!(closed.committed, 1);
}

/// One request on a connection of its own; the response as text.
async fn send_alone(address: std::net::SocketAddr, path: &str, body: Value) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let body = body.to_string();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    );
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    stream.write_all((head + &body).as_bytes()).await.unwrap();
    let mut response = vec![];
    let _ = stream.read_to_end(&mut response).await;
    String::from_utf8_lossy(&response).into_owned()
}

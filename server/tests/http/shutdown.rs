//! What happens to requests and leases when the server stops.

use serde_json::{Value, json};
use zae_limiter::{EmbeddedStore, RateLimiter};
use zae_limiter_server::Settings;

use crate::client::{TestServer, limits, until};

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
async fn a_request_that_is_being_served_is_finished_and_no_new_connection_is_accepted() {
    let mut server = TestServer::start().await;
    server.post("/v1/acquire", request("rpm", 100)).await.expect(200);
    let address = server.address;
    let mut waiting = request("rpm", 1);
    waiting["wait_ms"] = 60_000.into();
    let waiter = tokio::spawn(send_alone(address, "/v1/acquire", waiting));
    until(|| server.handle.requests() == 1).await;
    // The token will be there when the request asks again.
    server.clock.advance(std::time::Duration::from_secs(1));
    server.stop();
    let response = waiter.await.unwrap();
    assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
    let closed = server.stopped().await;
    assert_eq!((closed.committed, closed.unwritten), (2, 0));
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn a_request_that_does_not_finish_within_the_grace_is_cut_off() {
    let mut settings = Settings::default();
    settings.shutdown_grace = std::time::Duration::ZERO;
    let mut server = TestServer::with(settings, None).await;
    server.post("/v1/acquire", request("rpm", 100)).await.expect(200);
    let mut waiting = request("rpm", 50);
    waiting["wait_ms"] = 60_000.into();
    let waiter = tokio::spawn(send_alone(server.address, "/v1/acquire", waiting));
    until(|| server.handle.requests() == 1).await;
    server.stop();
    assert_eq!(waiter.await.unwrap(), "", "no response");
    let closed = server.stopped().await;
    assert_eq!((closed.committed, closed.unwritten), (1, 0));
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

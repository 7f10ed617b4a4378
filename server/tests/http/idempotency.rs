//! `Idempotency-Key`.

use std::time::Duration;

use serde_json::{Value, json};
use zae_limiter_server::Settings;

use crate::client::TestServer;

const KEY: [(&str, &str); 1] = [("idempotency-key", "\"8e03978e\"")];

fn request(tokens: u64) -> Value {
    json!({ "entity": "user-1", "resource": "gpt-4", "consume": { "tpm": tokens } })
}

#[tokio::test]
async fn a_request_that_is_sent_again_gets_the_first_response_and_takes_nothing() {
    let server = TestServer::start().await;
    let first = server
        .post_with("/v1/acquire", &KEY, request(500))
        .await
        .expect(200);
    assert_eq!(first.header("idempotency-replayed"), None);
    let unquoted = [("idempotency-key", "8e03978e")];
    let again = server
        .post_with("/v1/acquire", &unquoted, request(500))
        .await
        .expect(200);
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    assert_eq!(again.header("ratelimit"), first.header("ratelimit"));
    assert_eq!(again.body, first.body);
    assert_eq!(server.available("tpm").await, 9_500);
    assert_eq!(server.handle.leases(), 1);
    let other = [("idempotency-key", "another")];
    server
        .post_with("/v1/acquire", &other, request(500))
        .await
        .expect(200);
    assert_eq!(server.available("tpm").await, 9_000);
}

#[tokio::test]
async fn a_key_is_forgotten_after_ten_minutes() {
    let server = TestServer::start().await;
    let first = server.post_with("/v1/acquire", &KEY, request(500)).await.lease();
    server.clock.advance(Duration::from_secs(600));
    let second = server.post_with("/v1/acquire", &KEY, request(500)).await.lease();
    assert_ne!(first, second);
}

#[tokio::test]
async fn a_key_stands_for_one_request() {
    let server = TestServer::start().await;
    server
        .post_with("/v1/acquire", &KEY, request(500))
        .await
        .expect(200);
    let other = server.post_with("/v1/acquire", &KEY, request(501)).await;
    other.problem(422, "idempotency-key-reused");
}

#[tokio::test]
async fn a_refusal_is_not_remembered() {
    let server = TestServer::start().await;
    server.post("/v1/acquire", request(10_000)).await.expect(200);
    server
        .post_with("/v1/acquire", &KEY, request(500))
        .await
        .expect(429);
    server.clock.advance(Duration::from_secs(60));
    server
        .post_with("/v1/acquire", &KEY, request(500))
        .await
        .expect(200);
}

#[tokio::test]
async fn a_key_of_one_token_is_not_the_key_of_another() {
    let tokens = "one acquire 0123456789abcdef\nother acquire fedcba9876543210";
    let server = TestServer::with(Settings::default(), Some(tokens.parse().unwrap())).await;
    let mut leases = vec![];
    for token in ["Bearer 0123456789abcdef", "Bearer fedcba9876543210"] {
        let headers = [KEY[0], ("authorization", token)];
        leases.push(
            server
                .post_with("/v1/acquire", &headers, request(5))
                .await
                .lease(),
        );
    }
    assert_ne!(leases[0], leases[1]);
}

#[tokio::test]
async fn an_unusable_key_is_invalid() {
    let server = TestServer::start().await;
    for key in ["", "\"\"", &"x".repeat(256)] {
        let headers = [("idempotency-key", key)];
        let response = server.post_with("/v1/acquire", &headers, request(5)).await;
        let problem = response.problem(400, "invalid-request");
        assert_eq!(problem["field"], "Idempotency-Key");
    }
}

//! Bearer tokens and scopes.

use hyper::Method;
use serde_json::json;
use zae_limiter::RateLimiter;
use zae_limiter_server::{Error, Server, Settings};

use crate::client::TestServer;

const TOKENS: &str = "gateway acquire acquire-token-1234\nboard read read-token-12345678";
const AVAILABLE: &str = "/v1/entities/user-1/resources/gpt-4/available";

async fn server() -> TestServer {
    TestServer::with(Settings::default(), Some(TOKENS.parse().unwrap())).await
}

#[tokio::test]
async fn a_request_without_a_valid_token_is_unauthorized() {
    let server = server().await;
    for authorization in [
        None,
        Some("Bearer"),
        Some("Bearer "),
        Some("Bearer acquire-token-123"),
        Some("Basic acquire-token-1234"),
        Some("acquire-token-1234"),
    ] {
        let headers: Vec<_> = authorization
            .map(|value| ("authorization", value))
            .into_iter()
            .collect();
        let response = server.send(Method::GET, AVAILABLE, &headers, "").await;
        assert_eq!(response.header("www-authenticate"), Some("Bearer"));
        response.problem(401, "unauthorized");
    }
}

#[tokio::test]
async fn a_token_opens_only_its_scopes() {
    let server = server().await;
    let (acquire, read) = (
        [("authorization", "Bearer acquire-token-1234")],
        [("authorization", "bearer read-token-12345678")],
    );
    let body = json!({ "entity": "user-1", "resource": "gpt-4", "consume": { "rpm": 1 } });
    server
        .post_with("/v1/acquire", &acquire, body.clone())
        .await
        .expect(200);
    server.send(Method::GET, AVAILABLE, &read, "").await.expect(200);
    let refused = server.send(Method::GET, AVAILABLE, &acquire, "").await;
    assert_eq!(
        refused.header("www-authenticate"),
        Some(r#"Bearer error="insufficient_scope", scope="read""#)
    );
    refused.problem(403, "forbidden");
    server
        .post_with("/v1/acquire", &read, body)
        .await
        .problem(403, "forbidden");
    server
        .send(Method::DELETE, "/v1/leases/x", &read, "")
        .await
        .problem(403, "forbidden");
}

/// The scope that the guide's table gives to a path.
fn scope(path: &str) -> Option<&'static str> {
    match path {
        "/healthz" | "/readyz" => None,
        "/metrics" => Some("read"),
        _ if path.ends_with("/available") => Some("read"),
        "/v1/acquire" | "/v1/adjust" => Some("acquire"),
        _ if path.starts_with("/v1/leases/") => Some("acquire"),
        _ => Some("admin"),
    }
}

#[tokio::test]
async fn every_endpoint_refuses_wrong_tokens_and_tokens_of_other_scopes() {
    let tokens = "a acquire acquire-token-1234\nb read read-token-12345678\nc admin admin-token-1234567";
    let server = TestServer::with(Settings::default(), Some(tokens.parse().unwrap())).await;
    let document = server.get("/openapi.json").await.expect(200).json();
    let mut refused = 0;
    for (path, operations) in document["paths"].as_object().unwrap() {
        let Some(scope) = scope(path) else { continue };
        let filled = path.replace(['{', '}'], "");
        for method in operations.as_object().unwrap().keys() {
            let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
            let send = async |authorization: Option<String>| {
                let headers: Vec<_> = authorization
                    .iter()
                    .map(|value| ("authorization", value.as_str()))
                    .collect();
                server.send(method.clone(), &filled, &headers, "").await
            };
            send(None).await.problem(401, "unauthorized");
            let wrong = Some("Bearer not-a-token-of-this-server".to_owned());
            send(wrong).await.problem(401, "unauthorized");
            for other in tokens.lines() {
                let [_, theirs, token] = other.split(' ').collect::<Vec<_>>()[..] else {
                    panic!("{other}")
                };
                let response = send(Some(format!("Bearer {token}"))).await;
                let status = response.status.as_u16();
                assert_eq!(
                    status == 403,
                    theirs != scope,
                    "{method} {path} with {theirs}: {status}"
                );
                assert_ne!(status, 401, "{method} {path} with {theirs}");
            }
            refused += 1;
        }
    }
    assert!(refused >= 15, "{refused} operations");
}

#[tokio::test]
async fn health_and_the_document_need_no_token() {
    let server = server().await;
    for path in ["/healthz", "/readyz", "/openapi.json"] {
        server.get(path).await.expect(200);
    }
}

#[tokio::test]
async fn without_tokens_only_loopback_addresses_are_listened_on() {
    let limiter = RateLimiter::embedded().await.unwrap();
    let open = Server::builder(limiter.clone())
        .bind("0.0.0.0:0".parse().unwrap())
        .await;
    assert!(matches!(open, Err(Error::TokensRequired { .. })), "{open:?}");
    let builder = Server::builder(limiter).tokens(TOKENS.parse().unwrap());
    assert!(builder.bind("0.0.0.0:0".parse().unwrap()).await.is_ok());
}

#[tokio::test]
async fn without_tokens_a_site_whose_name_resolves_to_this_machine_is_refused() {
    let server = TestServer::start().await;
    let rebound = [
        ("host", "evil.example:8080"),
        ("content-type", "application/json"),
    ];
    for (method, path) in [
        (Method::GET, AVAILABLE),
        (Method::GET, "/v1/entities"),
        (Method::PUT, "/v1/limits"),
        (Method::GET, "/metrics"),
        (Method::GET, "/openapi.json"),
        (Method::GET, "/nothing"),
    ] {
        let refused = server.send(method, path, &rebound, "").await;
        refused.problem(403, "forbidden");
    }
    for path in ["/healthz", "/readyz"] {
        server.send(Method::GET, path, &rebound, "").await.expect(200);
    }
    let local = [("host", "localhost:8080")];
    server.send(Method::GET, AVAILABLE, &local, "").await.expect(200);
}

#[tokio::test]
async fn with_tokens_the_server_has_any_name() {
    let server = server().await;
    let headers = [
        ("host", "limits.example"),
        ("authorization", "Bearer read-token-12345678"),
    ];
    server
        .send(Method::GET, AVAILABLE, &headers, "")
        .await
        .expect(200);
}

//! Bad input, large input and slow input.

use std::time::Duration;

use hyper::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use zae_limiter_server::Settings;

use crate::client::{TestServer, until};

const JSON: [(&str, &str); 1] = [("content-type", "application/json")];

#[tokio::test]
async fn invalid_requests_name_what_is_wrong() {
    let server = TestServer::start().await;
    let call =
        |entity: &str, consume: Value| json!({ "entity": entity, "resource": "gpt-4", "consume": consume });
    let with = |field: &str, value: Value| {
        let mut body = call("user-1", json!({ "rpm": 1 }));
        body[field] = value;
        body
    };
    for (body, detail) in [
        (json!([]), "the body is invalid: "),
        (json!({ "entity": "user-1" }), "missing field `resource`"),
        (with("burst", 1.into()), "unknown field `burst`"),
        (with("wait_ms", (-1).into()), "invalid value: integer `-1`"),
        (
            with("wait_ms", 60_001.into()),
            "wait_ms 60001 is invalid: it must be at most 60000",
        ),
        (
            with("lease_ms", 3_600_001.into()),
            "lease_ms 3600001 is invalid: it must be at most 3600000",
        ),
        (
            call("user#1", json!({ "rpm": 1 })),
            "entity id \"user#1\" is invalid",
        ),
        (call("user-1", json!({})), "call `consume` at least once"),
        (
            call("user-1", json!({ "rpm": 0 })),
            "call `consume` at least once",
        ),
        (
            call("user-1", json!({ "nope": 1 })),
            "limit \"nope\" is invalid: user-1 on gpt-4 has the limits rpm, tpm",
        ),
        (
            call("user-1", json!({ "rpm": 1.5 })),
            "invalid type: floating point `1.5`",
        ),
    ] {
        let problem = server
            .post("/v1/acquire", body)
            .await
            .problem(400, "invalid-request");
        assert!(problem["detail"].as_str().unwrap().contains(detail), "{problem}");
    }
    let twice = r#"{"entity": "user-1", "resource": "gpt-4", "consume": {"rpm": 1, "rpm": 2}}"#;
    let problem = server.send(Method::POST, "/v1/acquire", &JSON, twice).await;
    let problem = problem.problem(400, "invalid-request");
    assert!(
        problem["detail"]
            .as_str()
            .unwrap()
            .contains("duplicate key \"rpm\""),
        "{problem}"
    );
    let problem = server.send(Method::POST, "/v1/acquire", &JSON, "{").await;
    problem.problem(400, "invalid-request");
    let query = "/v1/entities/user-1/resources/gpt-4/available?consume=rpm";
    server.get(query).await.problem(400, "invalid-request");
    let query = "/v1/entities/user-1/resources/gpt-4/available?tokens=1";
    server.get(query).await.problem(400, "invalid-request");
    assert_eq!(server.available("rpm").await, 100);
}

#[tokio::test]
async fn without_limits_a_call_is_unprocessable() {
    let builder = zae_limiter::RateLimiter::embedded();
    let server = TestServer::on(builder, Settings::default(), None).await;
    let body = json!({ "entity": "user-1", "resource": "gpt-4", "consume": { "rpm": 1 } });
    server.post("/v1/acquire", body).await.problem(422, "no-limits");
}

#[tokio::test]
async fn unknown_paths_and_methods_are_problems() {
    let server = TestServer::start().await;
    server.get("/v2/acquire").await.problem(404, "not-found");
    server.get("/v1/acquire").await.problem(405, "method-not-allowed");
    server
        .post("/healthz", json!({}))
        .await
        .problem(405, "method-not-allowed");
}

#[tokio::test]
async fn a_body_that_is_not_json_is_refused() {
    let server = TestServer::start().await;
    for headers in [
        &[][..],
        &[("content-type", "text/plain")],
        &[("content-type", "application/jsonp")],
    ] {
        let response = server.send(Method::POST, "/v1/acquire", headers, "{}").await;
        response.problem(415, "unsupported-media-type");
    }
    let body = json!({ "entity": "user-1", "resource": "gpt-4", "consume": { "rpm": 1 } }).to_string();
    let headers = [("content-type", "Application/JSON; charset=utf-8")];
    server
        .send(Method::POST, "/v1/acquire", &headers, body)
        .await
        .expect(200);
}

/// Sends the text and returns the response, until the server closes the connection.
async fn raw(server: &TestServer, text: &str) -> String {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut response = vec![];
    // A server that closes before it has read everything may reset the connection.
    let _ = stream.read_to_end(&mut response).await;
    String::from_utf8_lossy(&response).into_owned()
}

#[tokio::test]
async fn oversized_bodies_are_refused_whether_or_not_their_length_is_announced() {
    let mut settings = Settings::default();
    settings.max_body_bytes = 100;
    let server = TestServer::with(settings, None).await;
    let body = format!("\"{}\"", "x".repeat(100));
    let response = server.send(Method::POST, "/v1/acquire", &JSON, body).await;
    let problem = response.problem(413, "body-too-large");
    assert_eq!(problem["detail"], "the body may have at most 100 bytes");
    let chunk = format!("64\r\n{}\r\n", "x".repeat(100));
    let chunked = format!(
        "POST /v1/acquire HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n\
         transfer-encoding: chunked\r\n\r\n{chunk}{chunk}0\r\n\r\n"
    );
    let response = raw(&server, &chunked).await;
    assert!(response.starts_with("HTTP/1.1 413 "), "{response}");
}

#[tokio::test]
async fn every_endpoint_with_a_body_refuses_oversized_ones() {
    let mut settings = Settings::default();
    settings.max_body_bytes = 100;
    let server = TestServer::with(settings, None).await;
    let body = format!("\"{}\"", "x".repeat(100));
    let document = server.get("/openapi.json").await.expect(200).json();
    let mut refused = 0;
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            if operation.get("requestBody").is_none() {
                continue;
            }
            let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
            let filled = path.replace("{id}", &"0".repeat(32)).replace(['{', '}'], "");
            let response = server.send(method, &filled, &JSON, body.clone()).await;
            response.problem(413, "body-too-large");
            refused += 1;
        }
    }
    assert_eq!(
        refused, 12,
        "acquire, adjust with and without a lease, renew, commit, create and change an entity, set limits, prices and modes, \
         top up, reset"
    );
}

#[tokio::test]
async fn a_client_that_is_killed_in_the_middle_of_its_request_takes_nothing() {
    let server = TestServer::start().await;
    let body = json!({ "entity": "user-1", "resource": "gpt-4", "consume": { "rpm": 1 } }).to_string();
    let head = format!(
        "POST /v1/acquire HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let mut killed = TcpStream::connect(server.address).await.unwrap();
    let half = format!("{head}{}", &body[..body.len() - 1]);
    killed.write_all(half.as_bytes()).await.unwrap();
    drop(killed);
    assert_eq!((server.handle.requests(), server.handle.leases()), (0, 0));
    assert_eq!(server.available("rpm").await, 100);
}

#[tokio::test]
async fn the_lease_of_a_killed_client_is_committed_when_its_time_is_over() {
    let server = TestServer::start().await;
    let body =
        json!({ "entity": "user-1", "resource": "gpt-4", "consume": { "tpm": 5_000 }, "lease_ms": 1_000 });
    let body = body.to_string();
    let mut killed = TcpStream::connect(server.address).await.unwrap();
    let request = format!(
        "POST /v1/acquire HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    killed.write_all(request.as_bytes()).await.unwrap();
    until(|| server.handle.leases() == 1).await;
    // It never reads the response with the id of its lease.
    drop(killed);
    server.clock.advance(Duration::from_secs(1));
    server.handle.expire_leases().await;
    assert_eq!((server.handle.leases(), server.handle.expired_leases()), (0, 1));
    assert_eq!(server.available("tpm").await, 5_000 + 10_000 / 60);
}

#[tokio::test]
async fn a_client_that_does_not_finish_its_request_is_cut_off() {
    let mut settings = Settings::default();
    settings.header_timeout = Duration::from_millis(50);
    settings.body_timeout = Duration::from_millis(50);
    let server = TestServer::with(settings, None).await;
    let head = "POST /v1/acquire HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 50\r\n";
    // Both return because the server ends them.
    let response = raw(&server, head).await;
    assert!(!response.contains("200"), "{response}");
    let response = raw(&server, &format!("{head}connection: close\r\n\r\n{{")).await;
    assert!(response.starts_with("HTTP/1.1 408 "), "{response}");
    assert!(
        response.contains("urn:zae-limiter:problem:request-timeout"),
        "{response}"
    );
}

#[tokio::test]
async fn a_form_of_the_page_arrives_in_time_and_whole_or_is_refused() {
    let mut settings = Settings::default();
    settings.body_timeout = Duration::from_millis(50);
    let server = TestServer::with(settings, Some("ops admin 0123456789abcdef".parse().unwrap())).await;
    let head = "POST /ui/login HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
                content-type: application/x-www-form-urlencoded\r\n";
    // It returns because the server ends it.
    let response = raw(&server, &format!("{head}content-length: 50\r\n\r\ntoken=")).await;
    assert!(response.starts_with("HTTP/1.1 408 "), "{response}");
    let response = raw(&server, &format!("{head}content-length: 65537\r\n\r\n")).await;
    assert!(response.starts_with("HTTP/1.1 413 "), "{response}");
    let response = raw(
        &server,
        &format!("{head}transfer-encoding: chunked\r\n\r\nno length\r\n"),
    )
    .await;
    assert!(response.starts_with("HTTP/1.1 400 "), "{response}");
}

#[tokio::test]
async fn a_client_that_disconnects_while_it_waits_leaves_the_queue_and_its_slot() {
    let mut settings = Settings::default();
    settings.max_leases = 2;
    let server = TestServer::with(settings, None).await;
    let body = |tokens: u64, wait: u64| json!({ "entity": "user-1", "resource": "gpt-4", "consume": { "rpm": tokens }, "wait_ms": wait });
    let lease = server.post("/v1/acquire", body(100, 0)).await.lease();
    let mut killed = TcpStream::connect(server.address).await.unwrap();
    let content = body(50, 60_000).to_string();
    let request = format!(
        "POST /v1/acquire HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{content}",
        content.len()
    );
    killed.write_all(request.as_bytes()).await.unwrap();
    until(|| server.handle.requests() == 1).await;
    drop(killed);
    until(|| server.handle.requests() == 0).await;
    server.delete(&format!("/v1/leases/{lease}")).await.expect(200);
    // No call is ahead, and there are two free slots.
    let small = json!({ "entity": "user-1", "resource": "gpt-4", "consume": { "rpm": 1 } });
    server.post("/v1/acquire", small.clone()).await.expect(200);
    server.post("/v1/acquire", small).await.expect(200);
    assert_eq!(server.available("rpm").await, 98);
}

#[tokio::test]
async fn more_requests_than_allowed_at_a_time_are_refused() {
    let mut settings = Settings::default();
    settings.max_requests = 1;
    let server = TestServer::with(settings, None).await;
    let body = |tokens: u64, wait: u64| json!({ "entity": "user-1", "resource": "gpt-4", "consume": { "rpm": tokens }, "wait_ms": wait });
    server.post("/v1/acquire", body(100, 0)).await.expect(200);
    let waiting = server.post("/v1/acquire", body(50, 60_000));
    let others = async {
        until(|| server.handle.requests() == 1).await;
        let refused = server.post("/v1/acquire", body(100, 0)).await;
        refused.problem(503, "overloaded");
        server.get("/healthz").await.expect(200);
    };
    tokio::select! {
        response = waiting => panic!("{response:?}"),
        () = others => {}
    }
}

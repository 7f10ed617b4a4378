//! `POST /v1/acquire` and what is left afterwards.

use serde_json::json;
use zae_limiter::{NewEntity, RateLimiter};
use zae_limiter_server::Settings;

use crate::client::{TestServer, limits};

#[tokio::test]
async fn a_call_that_fits_gets_a_lease_the_state_of_every_limit_and_the_header_fields() {
    let server = TestServer::start().await;
    let body = json!({ "entity": "user-1", "resource": "gpt-4", "consume": { "rpm": 1, "tpm": 500 } });
    let response = server.post("/v1/acquire", body).await.expect(200);
    assert_eq!(
        response.header("ratelimit-policy"),
        Some(r#""rpm";q=100;w=60, "tpm";q=10000;w=60"#)
    );
    assert_eq!(
        response.header("ratelimit"),
        Some(r#""rpm";r=99;t=1, "tpm";r=9500;t=1"#)
    );
    let json = response.json();
    assert_eq!(json["lease_id"].as_str().unwrap().len(), 32);
    assert_eq!(
        (&json["lease_ms"], &json["admission"]),
        (&60_000.into(), &"counted".into())
    );
    assert_eq!(
        json["limits"][1],
        json!({
            "entity_id": "user-1", "resource": "gpt-4", "limit_name": "tpm", "capacity": 10_000, "burst": 10_000,
            "available": 9_500, "requested": 500, "exceeded": false, "retry_after_seconds": 0.0,
        })
    );
    assert_eq!(server.available("tpm").await, 9_500);
}

#[tokio::test]
async fn a_refusal_is_a_problem_with_the_rejection_and_says_when_to_come_back() {
    let server = TestServer::start().await;
    let body = |tokens: u64| json!({ "entity": "user-1", "resource": "gpt-4", "consume": { "tpm": tokens } });
    server.post("/v1/acquire", body(9_000)).await.expect(200);
    let refused = server.post("/v1/acquire", body(2_000)).await.expect(429);
    assert_eq!(refused.header("content-type"), Some("application/problem+json"));
    assert_eq!(refused.header("retry-after"), Some("6"));
    assert_eq!(
        refused.header("ratelimit"),
        Some(r#""rpm";r=100, "tpm";r=1000;t=6"#)
    );
    let json = refused.json();
    assert_eq!(
        json["type"],
        "https://iana.org/assignments/http-problem-types#quota-exceeded"
    );
    assert_eq!(json["violated-policies"], json!(["tpm"]));
    assert_eq!(
        (&json["status"], &json["error"]),
        (&429.into(), &"rate_limit_exceeded".into())
    );
    assert_eq!(json["retry_after_ms"], 6_000);
    assert_eq!(json["limits"][1]["exceeded"], true);
    assert_eq!(server.available("tpm").await, 1_000, "a refusal takes nothing");
}

#[tokio::test]
async fn a_call_above_the_burst_is_refused_without_a_time() {
    let server = TestServer::start().await;
    let body = json!({ "entity": "user-1", "resource": "gpt-4", "consume": { "rpm": 101 } });
    let refused = server.post("/v1/acquire", body).await.expect(429);
    assert_eq!(refused.header("retry-after"), None);
    assert!(refused.json()["retry_after_seconds"].is_null());
}

#[tokio::test]
async fn with_a_lease_time_of_zero_the_tokens_are_consumed_at_once() {
    let server = TestServer::start().await;
    let body = json!({ "entity": "user-1", "resource": "gpt-4", "consume": { "rpm": 3 }, "lease_ms": 0 });
    let json = server.post("/v1/acquire", body).await.expect(200).json();
    assert!(json["lease_id"].is_null(), "{json}");
    assert_eq!(server.handle.leases(), 0);
    assert_eq!(server.available("rpm").await, 97);
}

#[tokio::test]
async fn parents_are_charged_and_shown() {
    let store = zae_limiter::EmbeddedStore::memory().unwrap();
    let limiter = RateLimiter::embedded_in(&store).await.unwrap();
    let repository = limiter.repository();
    repository.create_entity(NewEntity::new("org-1")).await.unwrap();
    let child = NewEntity::new("user-1").parent("org-1").cascade(true);
    repository.create_entity(child).await.unwrap();
    let builder = RateLimiter::embedded_in(&store).default_limits(limits());
    let server = TestServer::on(builder, Settings::default(), None).await;
    let body = json!({ "entity": "user-1", "resource": "gpt-4", "consume": { "rpm": 10 } });
    let response = server.post("/v1/acquire", body).await.expect(200);
    let policies = response.header("ratelimit").unwrap();
    assert!(policies.contains(r#""rpm@org-1";r=90"#), "{policies}");
    let entities: Vec<_> = response.json()["limits"]
        .as_array()
        .unwrap()
        .iter()
        .map(|limit| limit["entity_id"].clone())
        .collect();
    assert_eq!(entities, ["user-1", "user-1", "org-1", "org-1"]);
}

#[tokio::test]
async fn available_says_when_a_planned_call_would_be_admitted() {
    let server = TestServer::start().await;
    let path = "/v1/entities/user-1/resources/models%2Fgpt-4/available";
    let full = server.get(path).await.expect(200).json();
    assert_eq!(
        (&full["would_pass"], &full["tokens"]["rpm"]),
        (&true.into(), &100.into())
    );
    assert_eq!(full["limits"][0]["resource"], "models/gpt-4");
    let body = json!({ "entity": "user-1", "resource": "models/gpt-4", "consume": { "rpm": 100 } });
    server.post("/v1/acquire", body).await.expect(200);
    let planned = server
        .get(&format!("{path}?consume=rpm:5,tpm:1"))
        .await
        .expect(200)
        .json();
    assert_eq!(planned["would_pass"], false);
    assert_eq!(planned["retry_after_seconds"], 3.0);
}

#[tokio::test]
async fn a_refusal_of_several_entities_names_the_entity_of_each_limit() {
    let server = TestServer::start().await;
    server
        .post("/v1/entities", json!({ "entity_id": "acme" }))
        .await
        .expect(201);
    let child = json!({ "entity_id": "user-1", "parent_id": "acme", "cascade": true });
    server.post("/v1/entities", child).await.expect(201);
    let call = json!({ "entity": "user-1", "resource": "gpt-4", "consume": { "rpm": 100 } });
    server.post("/v1/acquire", call.clone()).await.expect(200);
    let refused = server.post("/v1/acquire", call).await.expect(429).json();
    let message = refused["message"].as_str().unwrap();
    assert!(message.contains("[user-1 rpm, acme rpm]"), "{message}");
}

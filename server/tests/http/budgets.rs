//! Top-ups, resets and limits until a time.

use serde_json::{Value, json};
use zae_limiter::RateLimiter;
use zae_limiter_server::Settings;

use crate::client::TestServer;

const LEVEL: &str = "/v1/limits?entity=team-1&resource=gpt-4";

async fn team() -> TestServer {
    let server = TestServer::on(RateLimiter::embedded(), Settings::default(), None).await;
    let limits =
        json!([{ "name": "rpm", "capacity": 100 }, { "name": "spend", "quota": 500, "per": "year" }]);
    server.put(LEVEL, json!({ "limits": limits })).await.expect(200);
    server.post("/v1/acquire", spend(500)).await.expect(200);
    server
}

fn spend(tokens: u64) -> Value {
    json!({ "entity": "team-1", "resource": "gpt-4", "consume": { "spend": tokens }, "lease_ms": 0 })
}

#[tokio::test]
async fn a_top_up_under_a_key_is_made_once_and_audited() {
    let server = team().await;
    server.post("/v1/acquire", spend(1)).await.expect(429);
    let key = [("idempotency-key", "ticket-4711")];
    let body = json!({
        "entity": "team-1", "resource": "gpt-4", "limit": "spend", "amount": 200, "reason": "approved",
    });
    let first = server
        .post_with("/v1/top-up", &key, body.clone())
        .await
        .expect(200);
    assert_eq!(first.header("idempotency-replayed"), None);
    let made = first.json();
    assert_eq!(
        (&made["added"], &made["left"], &made["repeated"]),
        (&json!(200), &json!(200), &json!(false))
    );
    let again = server
        .post_with("/v1/top-up", &key, body.clone())
        .await
        .expect(200);
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    assert_eq!(again.json()["event_id"], made["event_id"]);
    let left = server
        .get("/v1/entities/team-1/resources/gpt-4/available")
        .await
        .expect(200);
    let limits = left.json()["limits"].clone();
    let spend = limits
        .as_array()
        .unwrap()
        .iter()
        .find(|limit| limit["limit_name"] == "spend");
    assert_eq!(spend.unwrap()["topped_up"], 200, "{limits}");
    let events = server.get("/v1/audit?entity=team-1").await.expect(200).json();
    assert_eq!(events["items"][0]["action"], "topped_up");
    assert_eq!(events["items"][0]["details"]["reason"], "approved");

    let mut other = body.clone();
    other["amount"] = json!(201);
    let other = server.post_with("/v1/top-up", &key, other).await;
    other.problem(422, "idempotency-key-reused");
    let mut unknown = body;
    unknown["limit"] = json!("tpm");
    server
        .post("/v1/top-up", unknown)
        .await
        .problem(400, "invalid-request");
}

#[tokio::test]
async fn limits_are_reset_by_name_or_all() {
    let server = team().await;
    let reset = |limits: Value| json!({ "entity": "team-1", "resource": "gpt-4", "limits": limits });
    let made = server
        .post("/v1/reset", reset(json!(["spend"])))
        .await
        .expect(200)
        .json();
    assert_eq!(
        (&made["limits"], &made["permits_revoked"]),
        (&json!(["spend"]), &json!(false))
    );
    server
        .post("/v1/reset", reset(json!([])))
        .await
        .problem(400, "invalid-request");
    let made = server
        .post("/v1/reset", reset(Value::Null))
        .await
        .expect(200)
        .json();
    assert_eq!(made["limits"], json!(["rpm", "spend"]));
    let available = "/v1/entities/team-1/resources/gpt-4/available";
    let available = server.get(available).await.expect(200).json();
    assert_eq!(available["tokens"]["spend"], 500);
}

#[tokio::test]
async fn limits_until_a_time_are_shown_beside_those_that_last() {
    let server = team().await;
    let raise = json!({
        "limits": [{ "name": "rpm", "capacity": 900 }], "until": "2150-01-01T00:00:00Z", "reason": "launch",
    });
    let stored = server.put(LEVEL, raise.clone()).await.expect(200).json();
    assert_eq!(stored["limits"].as_array().unwrap().len(), 2);
    assert_eq!(stored["temporary_limits"]["until"], "2150-01-01T00:00:00Z");
    assert_eq!(stored["temporary_limits"]["limits"][0]["capacity"], 900);
    assert_eq!(server.get(LEVEL).await.expect(200).json(), stored);
    for until in ["2020-01-01T00:00:00Z", "tomorrow"] {
        let mut refused = raise.clone();
        refused["until"] = json!(until);
        let problem = server.put(LEVEL, refused).await.problem(400, "invalid-request");
        assert_eq!(problem["field"], "until");
    }
}

//! Calls that charge several resources.

use serde_json::{Value, json};

use crate::client::TestServer;

/// A server with a budget of 100 beside the limits of every resource.
async fn with_budget() -> TestServer {
    let server = TestServer::start().await;
    let budget = json!({ "limits": [{ "name": "usd", "capacity": 100 }] });
    server.put("/v1/limits?resource=budget", budget).await.expect(200);
    server
}

fn request(usd: u64) -> Value {
    json!({
        "entity": "user-1", "resource": "gpt-4", "consume": { "rpm": 1, "tpm": 500 },
        "also": [{ "resource": "budget", "consume": { "usd": usd } }],
    })
}

async fn left(server: &TestServer, entity: &str, resource: &str) -> Value {
    let path = format!("/v1/entities/{entity}/resources/{resource}/available");
    server.get(&path).await.expect(200).json()["tokens"].clone()
}

#[tokio::test]
async fn a_lease_is_adjusted_and_committed_resource_by_resource() {
    let server = with_budget().await;
    let granted = server.post("/v1/acquire", request(12)).await.expect(200);
    let policies = granted.header("ratelimit-policy").unwrap().to_owned();
    assert!(
        policies.contains(r#""rpm";q=100"#) && policies.contains(r#""budget/usd";q=100"#),
        "{policies}"
    );
    let body = granted.json();
    let limits = body["limits"].as_array().unwrap();
    let names: Vec<_> = limits
        .iter()
        .map(|one| (&one["resource"], &one["limit_name"]))
        .collect();
    assert_eq!(
        json!(names),
        json!([["gpt-4", "rpm"], ["gpt-4", "tpm"], ["budget", "usd"]])
    );
    let lease = format!("/v1/leases/{}", body["lease_id"].as_str().unwrap());

    let body = json!({ "adjust": { "tpm": -120, "usd": 1 } });
    let adjusted = server
        .post(&format!("{lease}/adjust"), body)
        .await
        .expect(200)
        .json();
    assert_eq!(adjusted["consumed"], json!({ "rpm": 1, "tpm": 380 }));
    assert_eq!(
        adjusted["also"],
        json!([{ "resource": "budget", "consumed": { "usd": 13 } }])
    );
    let commit = json!({ "also": [{ "resource": "budget", "adjust": { "usd": 2 } }] });
    let committed = server
        .post(&format!("{lease}/commit"), commit)
        .await
        .expect(200)
        .json();
    assert_eq!(committed["also"][0]["consumed"], json!({ "usd": 15 }));
    assert_eq!(
        left(&server, "user-1", "gpt-4").await,
        json!({ "rpm": 99, "tpm": 9_620 })
    );
    assert_eq!(left(&server, "user-1", "budget").await, json!({ "usd": 85 }));
}

#[tokio::test]
async fn all_resources_admit_or_nothing_is_taken() {
    let server = with_budget().await;
    let refused = server.post("/v1/acquire", request(101)).await.expect(429).json();
    assert_eq!(refused["violated-policies"], json!(["budget/usd"]));
    let lease = server.post("/v1/acquire", request(100)).await.lease();
    let deleted = server
        .delete(&format!("/v1/leases/{lease}"))
        .await
        .expect(200)
        .json();
    assert_eq!(
        deleted["also"],
        json!([{ "resource": "budget", "consumed": { "usd": 0 } }])
    );
    assert_eq!(
        left(&server, "user-1", "gpt-4").await,
        json!({ "rpm": 100, "tpm": 10_000 })
    );
    assert_eq!(left(&server, "user-1", "budget").await, json!({ "usd": 100 }));
}

#[tokio::test]
async fn mistakes_are_named_and_end_no_lease() {
    let server = with_budget().await;
    let twice = json!({
        "entity": "user-1", "resource": "gpt-4", "consume": { "rpm": 1 },
        "also": [{ "resource": "gpt-4", "consume": { "rpm": 1 } }],
    });
    let twice = server
        .post("/v1/acquire", twice)
        .await
        .problem(400, "invalid-request");
    assert!(
        twice["detail"].as_str().unwrap().contains("each resource once"),
        "{twice}"
    );
    // The first has no limits of its own, so that both have the default ones.
    let shared = json!({
        "entity": "user-1", "resource": "gpt-4", "consume": { "rpm": 1 },
        "also": [{ "resource": "gpt-5", "consume": { "rpm": 2 } }],
    });
    let lease = server.post("/v1/acquire", shared).await.lease();
    let commit = format!("/v1/leases/{lease}/commit");
    for (body, expected) in [
        (json!({ "adjust": { "rpm": 1 } }), "gpt-4, gpt-5"),
        (
            json!({ "also": [{ "resource": "budget", "adjust": { "rpm": 1 } }] }),
            "gpt-4, gpt-5",
        ),
        (
            json!({ "also": [{ "resource": "gpt-5", "adjust": { "usd": 1 } }] }),
            "rpm, tpm",
        ),
        (
            json!({ "adjust": { "usd": 1 } }),
            "gpt-4/rpm, gpt-4/tpm, gpt-5/rpm, gpt-5/tpm",
        ),
    ] {
        let problem = server.post(&commit, body).await.problem(400, "invalid-request");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains(expected), "{detail}");
    }
    let body = json!({ "also": [{ "resource": "gpt-5", "adjust": { "rpm": 1 } }] });
    server.post(&commit, body).await.expect(200);
    assert_eq!(left(&server, "user-1", "gpt-4").await["rpm"], 99);
    assert_eq!(left(&server, "user-1", "gpt-5").await["rpm"], 97);
}

#[tokio::test]
async fn cascade_is_chosen_for_each_resource_with_and_without_a_lease() {
    let server = with_budget().await;
    server
        .post("/v1/entities", json!({ "entity_id": "org" }))
        .await
        .expect(201);
    let user = json!({ "entity_id": "user-1", "parent_id": "org", "cascade": true });
    server.post("/v1/entities", user).await.expect(201);
    let mut alone = request(12);
    alone["also"][0]["cascade"] = json!(false);
    alone["lease_ms"] = json!(0);
    server.post("/v1/acquire", alone).await.expect(200);
    let adjust = json!({
        "entity": "user-1", "resource": "gpt-4", "adjust": { "tpm": 100 },
        "also": [{ "resource": "budget", "adjust": { "usd": 3 }, "cascade": false }],
    });
    let adjusted = server.post("/v1/adjust", adjust).await.expect(200).json();
    assert_eq!(adjusted["written"], true);
    assert_eq!(left(&server, "user-1", "budget").await["usd"], 85);
    assert_eq!(left(&server, "org", "budget").await["usd"], 100);
    assert_eq!(left(&server, "org", "gpt-4").await["tpm"], 9_400);
}

#[tokio::test]
async fn usage_corrects_the_model_and_the_budget() {
    let server = with_budget().await;
    let budget = json!({ "limits": [{ "name": "usd", "capacity": 100_000 }] });
    server.put("/v1/limits?resource=budget", budget).await.expect(200);
    server
        .put(
            "/v1/prices?resource=gpt-4",
            json!({ "input": "$2", "output": "$8" }),
        )
        .await
        .expect(200);
    let estimate = json!({ "input": 1_000, "max_output": 500 });
    let call = json!({
        "entity": "user-1", "resource": "gpt-4", "consume": { "rpm": 1 }, "estimate": estimate,
        "also": [{ "resource": "budget", "estimate": estimate }],
    });
    let lease = server.post("/v1/acquire", call).await.lease();
    assert_eq!(left(&server, "user-1", "budget").await["usd"], 94_000);
    let usage = json!({ "usage": { "input": 900, "output": 100 } });
    let committed = server
        .post(&format!("/v1/leases/{lease}/commit"), usage)
        .await
        .expect(200)
        .json();
    assert_eq!(committed["consumed"], json!({ "rpm": 1, "tpm": 1_000 }));
    assert_eq!(committed["also"][0]["consumed"], json!({ "usd": 2_600 }));
}

//! Prices, estimates and usage.

use serde_json::json;

use crate::client::TestServer;

const PRICES: &str = "/v1/prices?resource=gpt-4";

async fn set(server: &TestServer) {
    let limits = json!({ "limits": [
        { "name": "rpm", "capacity": 100 }, { "name": "tpm", "capacity": 10_000 },
        { "name": "usd", "capacity": 1_000_000, "refill_period_seconds": 86_400 },
    ] });
    let put = server.put("/v1/limits?resource=gpt-4", limits).await;
    put.expect(200);
    let prices = json!({ "input": "$2", "output": "8 usd", "max_output": 4_096 });
    server.put(PRICES, prices).await.expect(200);
}

#[tokio::test]
async fn prices_are_set_shown_and_deleted() {
    let server = TestServer::start().await;
    set(&server).await;
    let stored = json!({ "resource": "gpt-4", "prices": {
        "input": "$2.00", "output": "$8.00", "cached_input": null, "cache_write": null, "per_call": null,
        "default_output": null, "max_output": 4_096, "money_limit": "usd", "token_limits": ["tpm"],
    } });
    assert_eq!(server.get(PRICES).await.expect(200).json(), stored);
    for _ in 0..2 {
        server.delete(PRICES).await.expect(204);
    }
    let nothing = json!({ "resource": "gpt-4", "prices": null });
    assert_eq!(server.get(PRICES).await.expect(200).json(), nothing);
    let limits = server.get("/v1/limits?resource=gpt-4").await.expect(200).json();
    assert_eq!(limits["limits"].as_array().unwrap().len(), 3, "they stay");

    let system = json!({ "per_call": "$0.01" });
    server.put("/v1/prices", system).await.expect(200);
    let shown = server.get("/v1/prices").await.expect(200).json();
    assert_eq!(shown["prices"]["per_call"], "$0.01");
    server.delete("/v1/prices").await.expect(204);
    assert!(server.get("/v1/prices").await.expect(200).json()["prices"].is_null());
}

#[tokio::test]
async fn invalid_prices_name_the_field() {
    let server = TestServer::start().await;
    for (body, field) in [
        (json!({ "input": "2.50" }), "input"),
        (json!({ "output": "$0.0000001" }), "output"),
        (json!({}), "input"),
        (json!({ "input": "$1", "money_limit": "9" }), "limit name"),
        (json!({ "input": "$1", "token_limits": ["usd"] }), "token_limits"),
    ] {
        let response = server.put(PRICES, body.clone()).await;
        assert_eq!(response.problem(400, "invalid-request")["field"], field, "{body}");
    }
    assert!(server.get(PRICES).await.expect(200).json()["prices"].is_null());
}

#[tokio::test]
async fn an_estimate_is_taken_and_a_usage_committed() {
    let server = TestServer::start().await;
    set(&server).await;
    let estimate = json!({
        "entity": "user-1", "resource": "gpt-4", "consume": { "rpm": 1 },
        "estimate": { "input": 1_000, "max_output": 500 },
    });
    let lease = server.post("/v1/acquire", estimate).await.lease();
    let path = |end: &str| format!("/v1/leases/{lease}/{end}");
    let usage = json!({ "usage": { "input": 1_000, "output": 10 }, "adjust": { "rpm": 1 } });
    let adjusted = server.post(&path("adjust"), usage).await.expect(200).json();
    assert_eq!(
        adjusted["consumed"],
        json!({ "rpm": 2, "tpm": 1_010, "usd": 2_080 })
    );

    let usage = json!({ "usage": { "input": 200, "cached_input": 800, "output": 100 } });
    let committed = server.post(&path("commit"), usage).await.expect(200).json();
    assert_eq!(
        committed["consumed"],
        json!({ "rpm": 2, "tpm": 1_100, "usd": 2_800 })
    );
    assert_eq!(server.available("usd").await, 997_200);

    let only = json!({ "entity": "user-1", "resource": "gpt-4", "estimate": { "input": 10 }, "lease_ms": 0 });
    server.post("/v1/acquire", only).await.expect(200);
}

#[tokio::test]
async fn without_prices_a_usage_is_refused_and_the_lease_goes_on() {
    let server = TestServer::start().await;
    let acquire = json!({ "entity": "user-1", "resource": "gpt-4", "consume": { "tpm": 500 } });
    let lease = server.post("/v1/acquire", acquire).await.lease();
    let usage = json!({ "usage": { "input": 1 }, "adjust": { "tpm": -1 } });
    for end in ["adjust", "commit"] {
        let path = format!("/v1/leases/{lease}/{end}");
        server.post(&path, usage.clone()).await.problem(422, "no-prices");
    }
    let estimate = json!({ "entity": "user-1", "resource": "gpt-4", "estimate": { "input": 1 } });
    server
        .post("/v1/acquire", estimate)
        .await
        .problem(422, "no-prices");
    let path = format!("/v1/leases/{lease}/commit");
    let committed = server.post(&path, json!({})).await.expect(200).json();
    assert_eq!(committed["consumed"], json!({ "tpm": 500 }));
}

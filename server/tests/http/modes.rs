//! Modes of levels over HTTP.

use serde_json::{Value, json};

use crate::client::TestServer;

fn call(tokens: u64) -> Value {
    json!({ "entity": "user-1", "resource": "gpt-4", "consume": { "rpm": tokens } })
}

async fn set(server: &TestServer, level: &str, mode: &str) {
    let path = format!("/v1/mode{level}");
    let set = server.put(&path, json!({ "mode": mode })).await.expect(200);
    assert_eq!(set.json()["mode"], mode);
}

#[tokio::test]
async fn a_mode_is_set_shown_and_deleted() {
    let server = TestServer::start().await;
    let level = "?resource=gpt-4";
    set(&server, level, "observe").await;
    let shown = server.get(&format!("/v1/mode{level}")).await.expect(200).json();
    assert_eq!(shown, json!({ "level": "resource", "mode": "observe" }));
    let limits = json!({ "limits": [{ "name": "rpm", "capacity": 5 }] });
    let stored = server
        .put(&format!("/v1/limits{level}"), limits)
        .await
        .expect(200);
    assert_eq!(stored.json()["mode"], "observe", "new limits leave it as it is");
    server.delete(&format!("/v1/mode{level}")).await.expect(204);
    let shown = server.get(&format!("/v1/limits{level}")).await.expect(200).json();
    assert_eq!(
        (&shown["mode"], &shown["limits"][0]["capacity"]),
        (&Value::Null, &json!(5))
    );
    server.put("/v1/mode", json!({ "mode": "off" })).await.expect(400);
    server.put("/v1/mode", json!({})).await.expect(400);
}

#[tokio::test]
async fn an_observed_call_passes_and_says_which_limits_would_refuse_it() {
    let server = TestServer::start().await;
    set(&server, "", "observe").await;
    let granted = server.post("/v1/acquire", call(4)).await.expect(200).json();
    assert_eq!(
        (&granted["admission"], granted.get("observed")),
        (&json!("counted"), None)
    );
    let observed = server.post("/v1/acquire", call(500)).await.expect(200);
    let json = observed.json();
    assert_eq!(json["admission"], "observed");
    let limit = &json["observed"][0];
    assert_eq!(
        (&limit["limit_name"], &limit["exceeded"]),
        (&json!("rpm"), &json!(true))
    );
    let lease = json["lease_id"].as_str().unwrap();
    let path = format!("/v1/leases/{lease}/commit");
    let adjusted = server.post(&path, json!({ "adjust": { "rpm": 3 } }));
    adjusted.await.expect(200);
    let left = server
        .get("/v1/entities/user-1/resources/gpt-4/available")
        .await
        .expect(200);
    assert_eq!(
        left.json()["tokens"]["rpm"],
        96,
        "nothing of the observed call was taken"
    );
    server.get("/readyz").await.expect(200);
    let metrics = server.get("/metrics").await.expect(200);
    let text = String::from_utf8(metrics.body.to_vec()).unwrap();
    // Other tests of this process count here, too.
    let counted = r#"zae_limiter_observed_refusals_total{resource="gpt-4",limit="rpm"} "#;
    assert!(text.contains(counted), "{text}");
}

#[tokio::test]
async fn a_bypassed_call_passes_and_the_server_stays_ready() {
    let server = TestServer::start().await;
    set(&server, "?entity=user-1", "bypass").await;
    let passed = server.post("/v1/acquire", call(9_999)).await.expect(200);
    assert_eq!(passed.header("ratelimit"), None);
    let json = passed.json();
    assert_eq!(
        (&json["admission"], &json["limits"]),
        (&json!("bypassed"), &json!([]))
    );
    server.get("/readyz").await.expect(200);
}

#[tokio::test]
async fn a_disabled_resource_is_403_without_a_time_to_come_back() {
    let server = TestServer::start().await;
    set(&server, "?resource=gpt-4", "disabled").await;
    let refused = server.post("/v1/acquire", call(1)).await;
    assert_eq!(
        (refused.header("retry-after"), refused.header("ratelimit")),
        (None, None)
    );
    let problem = refused.problem(403, "disabled");
    assert_eq!(
        problem["detail"],
        "entity user-1 may not use gpt-4: the mode of the resource is disabled"
    );
    // One entity can be let in.
    set(&server, "?resource=gpt-4&entity=user-1", "enforce").await;
    server.post("/v1/acquire", call(1)).await.expect(200);
}

#[tokio::test]
async fn buckets_are_refreshed_a_page_at_a_time() {
    let server = TestServer::start().await;
    for user in 0..5 {
        let call = json!({ "entity": format!("user-{user}"), "resource": "gpt-4", "consume": { "rpm": 1 } });
        server.post("/v1/acquire", call).await.expect(200);
    }
    let (mut path, mut buckets) = (
        "/v1/buckets/refresh?resource=gpt-4&page_size=2".to_owned(),
        vec![],
    );
    loop {
        let refreshed = server.post(&path, json!({})).await.expect(200).json();
        buckets.push(refreshed["buckets"].as_u64().unwrap());
        let Some(next) = refreshed["next"].as_str() else {
            break;
        };
        path = format!("/v1/buckets/refresh?resource=gpt-4&page_size=2&cursor={next}");
    }
    assert_eq!(buckets, [2, 2, 1]);
    server
        .post("/v1/buckets/refresh?page_size=0", json!({}))
        .await
        .expect(400);
}

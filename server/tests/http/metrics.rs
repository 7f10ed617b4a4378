//! `/metrics`.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use zae_limiter::{CapacityMeter, RateLimiter};
use zae_limiter_server::{Server, Settings};

use crate::client::TestServer;

fn request(tokens: u64) -> Value {
    json!({ "entity": "user-1", "resource": "gpt-4", "consume": { "tpm": tokens } })
}

#[tokio::test]
async fn acquires_and_refusals_are_counted_by_resource_and_limit() {
    let server = TestServer::start().await;
    server.post("/v1/acquire", request(9_000)).await.expect(200);
    server.post("/v1/acquire", request(9_000)).await.expect(429);
    server.post("/v1/acquire", request(9_001)).await.expect(429);
    server.post("/v1/acquire", json!({})).await.expect(400);
    let response = server.get("/metrics").await.expect(200);
    assert!(
        response
            .header("content-type")
            .unwrap()
            .starts_with("text/plain; version=0.0.4")
    );
    let text = String::from_utf8(response.body.to_vec()).unwrap();
    for line in [
        r#"zae_limiter_acquires_total{resource="gpt-4",outcome="granted"} 1"#,
        r#"zae_limiter_acquires_total{resource="gpt-4",outcome="refused"} 2"#,
        r#"zae_limiter_refusals_total{resource="gpt-4",limit="tpm"} 2"#,
        "zae_limiter_acquire_duration_seconds_count 3",
        r#"zae_limiter_http_responses_total{status="400"} 1"#,
        r#"zae_limiter_http_responses_total{status="429"} 2"#,
        "zae_limiter_leases 1",
        "zae_limiter_leases_expired_total 0",
        "zae_limiter_http_requests 1",
    ] {
        assert!(
            text.lines().any(|present| present == line),
            "{line} is not in\n{text}"
        );
    }
}

#[tokio::test]
async fn the_page_is_counted_and_limited_like_the_api() {
    let server = TestServer::start().await;
    server.get("/ui").await.expect(200);
    server.get("/ui/nothing").await.expect(404);
    server.get("/nothing").await.expect(404);
    let metrics = server.get("/metrics").await.expect(200);
    let text = String::from_utf8(metrics.body.to_vec()).unwrap();
    for line in [
        r#"zae_limiter_http_responses_total{status="200"} 1"#,
        r#"zae_limiter_http_responses_total{status="404"} 2"#,
    ] {
        assert!(
            text.lines().any(|present| present == line),
            "{line} is not in\n{text}"
        );
    }
    let mut settings = Settings::default();
    settings.max_requests = 0;
    let full = TestServer::with(settings, None).await;
    for path in ["/ui", "/ui/login", "/v1/entities"] {
        full.get(path).await.problem(503, "overloaded");
    }
    full.get("/healthz").await.expect(200);
}

/// The names in the guide's table of metrics.
fn documented() -> BTreeSet<String> {
    let guide = include_str!("../../../docs/guide/server.md");
    let rows = guide
        .lines()
        .filter_map(|line| line.strip_prefix("| `zae_limiter_"));
    rows.map(|row| format!("zae_limiter_{}", row.split(['`', '{']).next().unwrap()))
        .collect()
}

#[tokio::test]
async fn the_guide_lists_every_metric_and_no_other() {
    let meter = CapacityMeter::new();
    let limiter = RateLimiter::embedded().meter(meter.clone()).await.unwrap();
    let server = Server::builder(limiter).meter(meter);
    let server = server.bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let server = TestServer::running(server, crate::client::noon());
    let text = server.get("/metrics").await.expect(200);
    let text = String::from_utf8(text.body.to_vec()).unwrap();
    let shown: BTreeSet<_> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE "))
        .map(|line| line.split(' ').next().unwrap().to_owned())
        .collect();
    assert_eq!(shown, documented());
}

#[tokio::test]
async fn the_collector_of_the_guide_reads_the_metrics() {
    let guide = include_str!("../../../docs/guide/server.md");
    let block = guide.split("```yaml\nreceivers:").nth(1).unwrap();
    let block = format!("receivers:{}", block.split_once("```").unwrap().0);
    let collector: serde_json::Value = serde_yaml::from_str(&block).unwrap();
    let pipeline = &collector["service"]["pipelines"]["metrics"];
    for kind in ["receivers", "exporters"] {
        for name in pipeline[kind].as_array().unwrap() {
            assert!(
                collector[kind].get(name.as_str().unwrap()).is_some(),
                "{kind}: {name}"
            );
        }
    }
    let job = &collector["receivers"]["prometheus"]["config"]["scrape_configs"][0];
    let token = job["authorization"]["credentials"].as_str().unwrap();
    let tokens = format!("collector read {token}").parse().unwrap();
    let server = TestServer::with(zae_limiter_server::Settings::default(), Some(tokens)).await;
    let header = format!("{} {token}", job["authorization"]["type"].as_str().unwrap());
    let headers = [("authorization", header.as_str())];
    let path = job["metrics_path"].as_str().unwrap();
    server
        .send(hyper::Method::GET, path, &headers, "")
        .await
        .expect(200);
}

//! `/metrics`. A program of its own: metrics are those of a process.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[allow(dead_code, reason = "shared with other programs")]
#[path = "../client.rs"]
mod client;

use serde_json::{Value, json};
use zae_limiter::{CapacityMeter, RateLimiter};
use zae_limiter_server::Server;

use crate::client::{TestServer, limits, noon};

fn request(tokens: u64) -> Value {
    json!({ "entity": "user-1", "resource": "gpt-4", "consume": { "tpm": tokens } })
}

#[tokio::test]
async fn acquires_and_refusals_are_counted_by_resource_and_limit() {
    let meter = CapacityMeter::new();
    let limiter = RateLimiter::embedded()
        .default_limits(limits())
        .meter(meter.clone());
    let server = Server::builder(limiter.await.unwrap()).meter(meter);
    let server = server.bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let server = TestServer::running(server, noon());
    server.post("/v1/acquire", request(9_000)).await.expect(200);
    server.post("/v1/acquire", request(9_000)).await.expect(429);
    server.post("/v1/acquire", request(9_001)).await.expect(429);
    server.post("/v1/acquire", json!({})).await.expect(400);
    server.get("/ui/nothing").await.expect(404);
    server.get("/nothing").await.expect(404);
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
        r#"zae_limiter_acquire_duration_seconds_count{outcome="granted"} 1"#,
        r#"zae_limiter_acquire_duration_seconds_bucket{outcome="refused",le="+Inf"} 2"#,
        r#"zae_limiter_http_responses_total{status="400"} 1"#,
        r#"zae_limiter_http_responses_total{status="429"} 2"#,
        r#"zae_limiter_http_responses_total{status="404"} 2"#,
        r#"zae_limiter_breaker_open{table="limiter"} 0"#,
        "zae_limiter_clock_offset_milliseconds 0",
        "zae_limiter_refill_went_back_total 0",
        "zae_limiter_config_cache_evictions_total 0",
        "zae_limiter_chunk_tokens_peak 0",
        "# TYPE zae_limiter_acquire_duration_seconds histogram",
        "# TYPE zae_limiter_table_read_units_total counter",
        "# TYPE zae_limiter_table_write_units_total counter",
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

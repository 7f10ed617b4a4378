//! The example configuration of Envoy in the guide works with the example mapping beside it.

use serde_json::Value;
use zae_limiter::{Limit, RateLimiter};
use zae_limiter_server::Settings;

use crate::grpc::client::{TestServer, descriptor, request};

const GUIDE: &str = include_str!("../../../docs/guide/envoy.md");

/// The YAML block of the guide that begins with this key.
fn block(key: &str) -> &'static str {
    let mut blocks = GUIDE.split("```yaml\n").skip(1);
    let block = blocks.find(|block| block.starts_with(key)).unwrap();
    block.split_once("```").unwrap().0
}

fn configuration() -> Value {
    serde_yaml::from_str(block("static_resources:")).unwrap()
}

fn find<'a>(list: &'a Value, name: &str) -> &'a Value {
    let mut items = list.as_array().unwrap().iter();
    items.find(|item| item["name"] == name).unwrap()
}

/// The descriptor that Envoy makes of the actions of a rate limit.
fn entries(rate_limit: &Value) -> Vec<(&str, &str)> {
    let actions = rate_limit["actions"].as_array().unwrap();
    actions
        .iter()
        .map(|action| {
            if let Some(header) = action.get("request_headers") {
                let value = match header["header_name"].as_str().unwrap() {
                    "x-user" => "ada",
                    "x-model" => "gpt-4",
                    other => panic!("{other}"),
                };
                (header["descriptor_key"].as_str().unwrap(), value)
            } else if let Some(generic) = action.get("generic_key") {
                let text = |field: &str| generic[field].as_str().unwrap();
                (text("descriptor_key"), text("descriptor_value"))
            } else {
                assert!(action.get("remote_address").is_some(), "{action}");
                ("remote_address", "10.0.0.1")
            }
        })
        .collect()
}

#[tokio::test]
async fn every_descriptor_of_the_example_counts_on_a_limit() {
    let file = configuration();
    let listener = &file["static_resources"]["listeners"][0];
    let manager = &listener["filter_chains"][0]["filters"][0]["typed_config"];
    let filter = &find(&manager["http_filters"], "envoy.filters.http.ratelimit")["typed_config"];
    let service = &filter["rate_limit_service"];
    assert_eq!(service["transport_api_version"], "V3");
    let cluster = service["grpc_service"]["envoy_grpc"]["cluster_name"]
        .as_str()
        .unwrap();
    let cluster = find(&file["static_resources"]["clusters"], cluster);
    assert_eq!(
        cluster["health_checks"][0]["grpc_health_check"],
        serde_json::json!({})
    );

    let limits = [
        Limit::per_minute("rpm", 10).unwrap(),
        Limit::per_minute("tpm", 1_000).unwrap(),
        Limit::per_second("rps", 5).unwrap(),
    ];
    let builder = RateLimiter::embedded().default_limits(limits);
    let mapping = block("domains:");
    let server = TestServer::mapped(builder, Settings::default(), None, mapping).await;
    let host = &manager["route_config"]["virtual_hosts"][0];
    let mut limited = vec![];
    for rate_limit in host["rate_limits"].as_array().unwrap() {
        let mut descriptor = descriptor(&entries(rate_limit));
        let addend = &rate_limit["hits_addend"];
        descriptor.is_negative_hits = addend["is_negative_hits"] == true;
        if !addend.is_null() {
            let value = if descriptor.is_negative_hits { 120 } else { 500 };
            descriptor.hits_addend = Some(value);
        }
        let mut call = request(0, [descriptor]);
        filter["domain"].as_str().unwrap().clone_into(&mut call.domain);
        let response = server.ok(call).await;
        let limit = response.statuses[0].current_limit.as_ref();
        limited.push(limit.map_or(String::new(), |limit| limit.name.clone()));
    }
    assert_eq!(limited, ["rpm", "tpm", "", "rps"], "a refund has no limit");
    assert_eq!(server.left("user-ada", "rpm").await, 9);
    assert_eq!(server.left("user-ada", "tpm").await, 620);
}

//! Trees that only the Python package can store.

use aws_credential_types::Credentials;
use aws_sdk_dynamodb::config::{BehaviorVersion, Region};
use aws_sdk_dynamodb::types::AttributeValue;
use zae_limiter::EmbeddedStore;

use crate::tool::Bench;

/// Two entities, each the parent of the other.
fn store_cycle(bench: &Bench) {
    bench.ok(&["system", "set-defaults", "-l", "rpm:100"]);
    let file = bench.path("table.db");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async move {
        let config = aws_sdk_dynamodb::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::from_static("us-east-1"))
            .endpoint_url("http://embedded.invalid")
            .credentials_provider(Credentials::from_keys("none", "none", None))
            .http_client(EmbeddedStore::file(file).await.unwrap())
            .build();
        let client = aws_sdk_dynamodb::Client::from_conf(config);
        let text = |value: &str| AttributeValue::S(value.to_owned());
        for (id, parent) in [("a", "b"), ("b", "a")] {
            let put = client
                .put_item()
                .table_name("limiter")
                .item("PK", text(&format!("ENTITY#{id}")))
                .item("SK", text("#META"))
                .item("entity_id", text(id))
                .item("name", text(id))
                .item("parent_id", text(parent))
                .item("cascade", AttributeValue::Bool(true))
                .item("metadata", AttributeValue::M([].into()))
                .item("created_at", text("2026-01-31T12:34:56Z"))
                .item("GSI1PK", text(&format!("PARENT#{parent}")))
                .item("GSI1SK", text(&format!("CHILD#{id}")));
            put.send().await.unwrap();
        }
    });
}

#[test]
fn a_cycle_is_shown_refused_and_repaired() {
    let bench = Bench::new();
    store_cycle(&bench);
    assert_eq!(bench.json(&["entity", "list"])["count"], 2);
    assert_eq!(bench.json(&["entity", "children", "a"])["count"], 1);
    let acquire = ["acquire", "a", "gpt-4", "-c", "rpm:1"];
    let refused = bench
        .run(&[&acquire[..], &["--output", "json"]].concat())
        .expect_exit(1);
    assert_eq!(refused.error()["error"], "hierarchy", "{refused:?}");
    bench.run(&["entity", "delete", "a", "--yes"]).expect_exit(1);
    bench.ok(&["entity", "update", "b", "--no-parent"]);
    bench.ok(&acquire);
}

//! Pages of a table with 100,000 entities cost no more calls than those of a small one.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::{AttributeValue, PutRequest, WriteRequest};
use zae_limiter_server::UiOptions;

use crate::ui::stage::Stage;

const ENTITIES: usize = 100_000;

/// The bucket of an entity, as its index sees it.
fn bucket(number: usize) -> WriteRequest {
    let entity = format!("user-{number:06}");
    let attributes = [
        ("PK", format!("ENTITY#{entity}")),
        ("SK", "#BUCKET#gpt-4".to_owned()),
        ("GSI2PK", "RESOURCE#gpt-4".to_owned()),
        ("GSI2SK", format!("BUCKET#{entity}")),
    ];
    let item: HashMap<_, _> = attributes
        .into_iter()
        .map(|(name, value)| (name.to_owned(), AttributeValue::S(value)))
        .collect();
    let put = PutRequest::builder().set_item(Some(item)).build().unwrap();
    WriteRequest::builder().put_request(put).build()
}

async fn put_entities(stage: &Stage) {
    let client = aws_sdk_dynamodb::Client::from_conf(stage.store.sdk_config().build());
    for first in (0..ENTITIES).step_by(25) {
        let requests = (first..first + 25).map(bucket).collect();
        let batch = client.batch_write_item().request_items("limiter", requests);
        batch.send().await.unwrap();
    }
}

/// The calls that a page makes.
async fn cost(stage: &Stage, path: &str) -> Vec<String> {
    stage.limiter.repository().invalidate_config_cache();
    stage.connection.calls();
    stage.page(path).await;
    let mut operations = stage.connection.operations();
    operations.sort();
    operations
}

#[tokio::test]
async fn pages_of_100_000_entities_cost_no_more_calls_than_those_of_four() {
    let pages = [
        "/ui",
        "/ui/entities",
        "/ui/entities?prefix=user-0500",
        "/ui/entities?after=user-090000",
        "/ui/entities/key-1",
        "/ui/resources/gpt-4",
        "/ui/limits",
        "/ui/usage?resource=gpt-4",
        "/ui/audit",
    ];
    let stage = Stage::filled(UiOptions::default()).await;
    let mut before = vec![];
    for path in pages {
        before.push(cost(&stage, path).await);
    }
    put_entities(&stage).await;
    for (path, before) in pages.into_iter().zip(before) {
        let started = std::time::Instant::now();
        let after = cost(&stage, path).await;
        println!("{path}: {} calls, {:?}", after.len(), started.elapsed());
        assert_eq!(after, before, "{path}");
        assert!(
            after.len() <= 64 && !after.contains(&"Scan".to_owned()),
            "{path}: {after:?}"
        );
    }
    let rows = stage.rows("/ui/entities?prefix=user-0500", "entities").await;
    assert_eq!(rows.len(), 100, "user-050000 to user-050099");
    let page = stage.page("/ui/entities?prefix=user-0500").await;
    assert!(
        page.contains("user-050049") && !page.contains("user-050050"),
        "50 a page"
    );
}

//! Many entities.

use std::collections::BTreeMap;

use crate::acquire::support::*;

const ENTITIES: usize = 600;

fn operations(stage: &Stage) -> BTreeMap<String, usize> {
    let mut counted = BTreeMap::new();
    for operation in stage.wire.operations() {
        *counted.entry(operation).or_default() += 1;
    }
    counted
}

#[tokio::test(start_paused = true)]
async fn a_second_pass_costs_one_write_per_entity_and_no_read() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["rpd:100/day"]).await;
    for pass in 0..3 {
        for entity in 0..ENTITIES {
            take(&limiter, &format!("user-{entity}"), "rpd", 1).await.unwrap();
        }
        let operations = operations(&stage);
        assert_eq!(operations["UpdateItem"], ENTITIES, "pass {pass}");
        let reads = operations.get("BatchGetItem").copied().unwrap_or(0);
        assert_eq!(reads, if pass == 0 { ENTITIES } else { 0 }, "pass {pass}");
    }
    assert_eq!(limiter.stats().buckets, ENTITIES as u64);
    for entity in ["user-0", "user-599"] {
        let bucket = stage.bucket(entity).await.unwrap();
        assert_eq!(bucket.consumed("rpd"), 3_000);
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_survives_that_all_other_buckets_are_used_meanwhile() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["rpd:100/day"]).await;
    let mut held = lease(&limiter, "held", "rpd", 10).await.unwrap();
    for entity in 0..ENTITIES {
        take(&limiter, &format!("user-{entity}"), "rpd", 1).await.unwrap();
    }
    held.adjust("rpd", -4);
    held.commit().await.unwrap();
    let bucket = stage.bucket("held").await.unwrap();
    assert_eq!(bucket.consumed("rpd"), 6_000);
}

#[tokio::test(start_paused = true)]
async fn what_was_seen_of_a_bucket_refuses_after_many_others_were_used() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["rpd:1/day"]).await;
    for entity in 0..ENTITIES {
        take(&limiter, &format!("user-{entity}"), "rpd", 1).await.unwrap();
    }
    stage.wire.calls();
    exceeded(take(&limiter, "user-0", "rpd", 1).await.unwrap_err());
    let after = stage.wire.operations();
    assert!(after.len() <= 1, "at most one look: {after:?}");
}

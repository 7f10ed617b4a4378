//! Which configuration a call reads, and what happens if it cannot be read.

use serde_json::Value;
use zae_limiter::{Admission, CapacityMeter, Error, NewEntity, RateLimiter};

use crate::acquire::support::*;

/// A limiter that has just read the defaults of the resource and the system.
async fn knows_the_resource(stage: &Stage) -> RateLimiter {
    let admin = stage.limiter(&[]).await;
    set_resource_limits(&admin, &["rpd:100/day"]).await;
    let limiter = stage.limiter(&[]).await;
    take(&limiter, "user-1", "rpd", 1).await.unwrap();
    stage.wire.calls();
    limiter
}

/// How many keys each read requested, and whether it was consistent.
fn reads(stage: &Stage) -> Vec<(usize, bool)> {
    let calls = stage.wire.calls().into_iter();
    let reads = calls.filter(|call| call.operation == "BatchGetItem");
    let read = |call: zae_limiter_testing::connection::Call| {
        let wanted = &call.request["RequestItems"][TABLE];
        let keys = wanted["Keys"].as_array().unwrap().len();
        (keys, wanted["ConsistentRead"] == Value::Bool(true))
    };
    reads.map(read).collect()
}

#[tokio::test(start_paused = true)]
async fn a_cold_acquire_of_a_new_entity_costs_two_calls_and_two_read_units() {
    let stage = Stage::new();
    let admin = stage.limiter(&[]).await;
    set_resource_limits(&admin, &["rpd:100/day"]).await;
    let meter = CapacityMeter::new();
    let limiter = stage.builder().meter(meter.clone()).await.unwrap();
    take(&limiter, "user-1", "rpd", 1).await.unwrap();
    let before = meter.consumed();
    take(&limiter, "user-2", "rpd", 1).await.unwrap();
    let after = meter.consumed();
    assert_eq!(after.calls - before.calls, 2);
    let read_units = after.read_units - before.read_units;
    assert!((read_units - 2.0).abs() < f64::EPSILON, "{read_units}");
}

#[tokio::test(start_paused = true)]
async fn a_bucket_with_another_etag_is_reloaded_consistently() {
    let stage = Stage::new();
    let limiter = knows_the_resource(&stage).await;
    let admin = stage.builder_on(&stage.another_wire()).await.unwrap();
    set_resource_limits(&admin, &["rpd:50/day"]).await;
    take(&admin, "user-1", "rpd", 1).await.unwrap();
    take(&limiter, "user-1", "rpd", 1).await.unwrap();
    assert_eq!(
        reads(&stage),
        [(6, true)],
        "all six items, and none of them behind"
    );
}

#[tokio::test(start_paused = true)]
async fn reads_are_consistent_only_after_a_write_of_its_own() {
    let stage = Stage::new();
    let limiter = knows_the_resource(&stage).await;
    take(&limiter, "user-2", "rpd", 1).await.unwrap();
    assert_eq!(reads(&stage), [(4, false)]);
    set_limits(&limiter, "user-2", &["rpd:5/day"]).await;
    stage.wire.calls();
    take(&limiter, "user-2", "rpd", 1).await.unwrap();
    let own = reads(&stage);
    assert!(own.iter().all(|(_, consistent)| *consistent), "{own:?}");
    assert_eq!(own[0], (4, true));
}

#[tokio::test(start_paused = true)]
async fn throttled_configuration_does_not_stop_a_writable_bucket() {
    for fault in [
        Fault::Throttled,
        Fault::NothingProcessed,
        Fault::ServerError,
        Fault::Silence,
    ] {
        let stage = Stage::new();
        let limiter = knows_the_resource(&stage).await;
        advance(secs(61)).await;
        stage.wire.always_for("BatchGetItem", fault);
        for _ in 0..20 {
            let lease = lease(&limiter, "user-1", "rpd", 1).await.unwrap();
            assert_eq!(lease.admission(), Admission::Counted, "{fault:?}");
            lease.commit().await.unwrap();
        }
        let stats = limiter.repository().cache_stats();
        assert_eq!((stats.misses, stats.stale_hits), (2, 20), "{fault:?}");
        assert_eq!(
            stage.bucket("user-1").await.unwrap().consumed("rpd"),
            21_000,
            "{fault:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn stale_configuration_gives_way_to_what_the_bucket_says() {
    let stage = Stage::new();
    let limiter = knows_the_resource(&stage).await;
    let admin = stage.builder_on(&stage.another_wire()).await.unwrap();
    set_resource_limits(&admin, &["rpd:5/day"]).await;
    take(&admin, "user-1", "rpd", 1).await.unwrap();
    advance(secs(61)).await;
    stage.wire.plan("BatchGetItem", [Fault::NothingProcessed]);
    // The bucket has another etag, and the reload that it calls for succeeds.
    assert_eq!(drain(&limiter, "user-1", "rpd").await, 4);
    assert_eq!(limiter.repository().cache_stats().stale_hits, 1);
}

#[tokio::test(start_paused = true)]
async fn denied_configuration_reads_are_errors_however_much_is_known() {
    let stage = Stage::new();
    let limiter = knows_the_resource(&stage).await;
    advance(secs(61)).await;
    stage.wire.always_for("BatchGetItem", Fault::Denied);
    let error = take(&limiter, "user-1", "rpd", 1).await.unwrap_err();
    assert!(matches!(error, Error::PermissionDenied { .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_cascade_of_four_reads_all_levels_in_one_call_once_they_are_known() {
    let stage = Stage::new();
    let admin = stage.limiter(&[]).await;
    set_resource_limits(&admin, &["rpd:100/day"]).await;
    create(&admin, NewEntity::new("root")).await;
    for (entity, parent) in [
        ("org", "root"),
        ("team", "org"),
        ("user-1", "team"),
        ("user-2", "team"),
    ] {
        create(&admin, child(entity, parent)).await;
    }
    let limiter = stage.limiter(&[]).await;
    take(&limiter, "user-1", "rpd", 1).await.unwrap();
    assert_eq!(reads(&stage).len(), 4, "each record tells the next");
    take(&limiter, "user-2", "rpd", 1).await.unwrap();
    assert_eq!(reads(&stage), [(4, false)], "the parents are known");
    advance(secs(61)).await;
    take(&limiter, "user-1", "rpd", 1).await.unwrap();
    assert_eq!(reads(&stage), [(4 * 4 + 2, false)]);
}

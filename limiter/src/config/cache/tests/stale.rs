//! Expired configuration that cannot be reloaded goes on being used.

use super::bench::{Fake, bench, gpt, no_table, unavailable};
use super::*;

#[tokio::test]
async fn expired_configuration_is_used_until_it_can_be_reloaded() {
    let bench = bench(Fake::default(), 60, 100);
    assert_eq!(bench.tokens("user-1").await.unwrap(), 100);
    bench.backend.state().tokens = 200;
    bench.backend.fail_with(unavailable());
    bench.after_ttl();
    for _ in 0..10 {
        assert_eq!(bench.tokens("user-1").await.unwrap(), 100);
    }
    assert_eq!(bench.loads(), 2, "one attempt in five seconds");
    let stats = bench.cache.stats();
    assert_eq!((stats.hits, stats.misses, stats.stale_hits), (0, 2, 10));
    bench.clock.advance(Duration::from_secs(5));
    assert_eq!(bench.tokens("user-1").await.unwrap(), 100);
    assert_eq!(bench.loads(), 3);
    bench.backend.heal();
    bench.clock.advance(Duration::from_secs(5));
    assert_eq!(bench.tokens("user-1").await.unwrap(), 200);
    assert_eq!(bench.cache.stats().stale_hits, 11);
}

#[tokio::test]
async fn a_throttled_shared_level_does_not_keep_new_entities_out() {
    for partition in ["SYSTEM#", "RESOURCE#"] {
        let bench = bench(Fake::default(), 60, 100);
        bench.resolve("user-1").await.unwrap();
        bench.after_ttl();
        bench.backend.throttle(partition);
        bench.resolve("user-2").await.unwrap();
        assert_eq!(bench.cache.stats().stale_hits, 1, "{partition}");
        bench.resolve("user-2").await.unwrap();
        assert_eq!(
            (bench.loads(), bench.cache.stats().stale_hits),
            (2, 2),
            "{partition}"
        );
    }
}

#[tokio::test]
async fn while_a_level_is_stale_nobody_waits_for_the_one_who_tries_to_reload_it() {
    let bench = bench::holding();
    let respond = || bench.backend.hold.as_ref().unwrap().notify_one();
    let user = EntityId::parse("user-1").unwrap();
    let spawn = || {
        let (cache, user) = (bench.cache.clone(), user.clone());
        tokio::spawn(async move { cache.resolve(&user, &gpt()).await })
    };
    respond();
    spawn().await.unwrap().unwrap();
    bench.backend.fail_with(unavailable());
    bench.after_ttl();
    respond();
    spawn().await.unwrap().unwrap();
    bench.clock.advance(Duration::from_secs(5));
    let trying = spawn();
    tokio::task::yield_now().await;
    spawn().await.unwrap().unwrap();
    assert_eq!(bench.loads(), 3);
    respond();
    trying.await.unwrap().unwrap();
}

#[tokio::test]
async fn permission_errors_and_missing_tables_remain_errors() {
    let denied = crate::Error::PermissionDenied {
        operation: "BatchGetItem",
        table: "limiter".into(),
        message: "no".into(),
    };
    for error in [denied, no_table()] {
        let bench = bench(Fake::default(), 60, 100);
        bench.resolve("user-1").await.unwrap();
        bench.after_ttl();
        bench.backend.fail_with(error);
        let failed = bench.resolve("user-1").await.unwrap_err();
        assert!(!failed.is_unavailable(), "{failed}");
        assert_eq!(bench.cache.stats().stale_hits, 0);
    }
}

#[tokio::test]
async fn what_was_never_read_or_was_invalidated_has_no_fallback() {
    let bench = bench(Fake::default(), 60, 100);
    bench.resolve("user-1").await.unwrap();
    bench.backend.fail_with(unavailable());
    assert!(bench.resolve("user-2").await.is_err());
    bench
        .cache
        .wrote(&ConfigLevel::Resource(gpt()), PolicyAfter::Unknown);
    assert!(
        bench.resolve("user-1").await.is_err(),
        "it is known to be outdated"
    );
}

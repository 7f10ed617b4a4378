#![allow(clippy::unwrap_used)]

mod bench;
mod chain;
mod levels;
mod stale;

use zae_limiter_schema::Timestamp;

use super::*;
use bench::{Fake, bench, gpt, holding};

#[tokio::test]
async fn a_hit_asks_nobody_until_the_ttl_is_over() {
    let bench = bench(Fake::default(), 60, 100);
    bench.resolve("user-1").await.unwrap();
    bench.clock.advance(Duration::from_millis(59_999));
    assert!(matches!(
        bench.resolve("user-1").await.unwrap().bucket,
        BucketImage::NotRead
    ));
    assert_eq!(bench.loads(), 1);
    bench.clock.advance(Duration::from_millis(1));
    bench.resolve("user-1").await.unwrap();
    assert_eq!(bench.loads(), 2);
    assert_eq!(
        bench.cache.stats(),
        CacheStats {
            hits: 1,
            misses: 2,
            entries: 1,
            levels: 2,
            ..CacheStats::default()
        }
    );
}

#[tokio::test]
async fn a_ttl_of_zero_turns_the_cache_off() {
    let bench = bench(Fake::default(), 0, 100);
    for _ in 0..3 {
        bench.resolve("user-1").await.unwrap();
    }
    assert_eq!(bench.loads(), 3);
    assert_eq!(bench.cache.stats().entries, 0);
}

#[tokio::test]
async fn a_calendar_set_back_does_not_lengthen_the_ttl() {
    let bench = bench(Fake::default(), 60, 100);
    bench.resolve("user-1").await.unwrap();
    bench.clock.set(Timestamp::from_seconds(1_600_000_000));
    bench.clock.advance(Duration::from_secs(60));
    bench.resolve("user-1").await.unwrap();
    assert_eq!(bench.loads(), 2);
}

#[tokio::test]
async fn ten_thousand_entities_cost_one_load_each_and_stay_within_the_bound() {
    let bench = bench(Fake::default(), 60, 1_000);
    for number in 0..10_000 {
        bench.resolve(&format!("user-{number}")).await.unwrap();
    }
    assert_eq!(bench.loads(), 10_000);
    assert_eq!(
        bench.cache.stats(),
        CacheStats {
            misses: 10_000,
            entries: 1_000,
            levels: 2,
            evictions: 9_000,
            ..CacheStats::default()
        }
    );
}

#[tokio::test]
async fn what_is_asked_for_often_outlives_what_is_not() {
    let bench = bench(Fake::default(), 60, 10);
    bench.resolve("regular").await.unwrap();
    for number in 0..100 {
        bench.resolve(&format!("passer-by-{number}")).await.unwrap();
        bench.resolve("regular").await.unwrap();
    }
    assert_eq!(bench.loads(), 101);
}

#[tokio::test]
async fn a_hundred_callers_of_one_key_share_one_load() {
    let bench = holding();
    let callers: Vec<_> = (0..100)
        .map(|_| {
            let cache = bench.cache.clone();
            tokio::spawn(async move {
                cache
                    .resolve(&EntityId::parse("user-1").unwrap(), &gpt())
                    .await
                    .is_ok()
            })
        })
        .collect();
    tokio::task::yield_now().await;
    bench.backend.hold.as_ref().unwrap().notify_one();
    for caller in callers {
        assert!(caller.await.unwrap());
    }
    assert_eq!(bench.loads(), 1);
}

#[tokio::test]
async fn a_load_that_hangs_does_not_hold_up_other_keys() {
    let bench = holding();
    let cache = bench.cache.clone();
    let hanging = tokio::spawn(async move { cache.resolve(&EntityId::parse("slow").unwrap(), &gpt()).await });
    tokio::task::yield_now().await;
    let cache = bench.cache.clone();
    let other = tokio::spawn(async move { cache.resolve(&EntityId::parse("other").unwrap(), &gpt()).await });
    tokio::task::yield_now().await;
    assert_eq!(bench.loads(), 2);
    bench.backend.hold.as_ref().unwrap().notify_waiters();
    assert!(other.await.unwrap().is_ok());
    assert!(hanging.await.unwrap().is_ok());
}

#[tokio::test]
async fn a_cancelled_load_is_taken_over_and_leaves_nothing_behind() {
    let bench = holding();
    let spawn = || {
        let cache = bench.cache.clone();
        tokio::spawn(async move {
            cache
                .resolve(&EntityId::parse("user-1").unwrap(), &gpt())
                .await
                .is_ok()
        })
    };
    let (first, second) = (spawn(), spawn());
    tokio::task::yield_now().await;
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    tokio::task::yield_now().await;
    bench.backend.hold.as_ref().unwrap().notify_waiters();
    assert!(second.await.unwrap());
    assert_eq!(bench.loads(), 2);
    assert!(bench.cache.state().flights.is_empty());
}

#[tokio::test]
async fn a_failed_load_is_not_kept_and_its_callers_share_the_error() {
    let bench = bench(Fake::default(), 60, 100);
    bench.backend.fail_with(bench::no_table());
    assert!(bench.resolve("user-1").await.is_err());
    assert!(bench.resolve("user-1").await.is_err());
    assert_eq!((bench.loads(), bench.cache.stats().entries), (2, 0));
}

#[tokio::test]
async fn what_was_loaded_before_an_invalidation_is_not_kept_after_it() {
    let bench = holding();
    let cache = bench.cache.clone();
    let loading =
        tokio::spawn(async move { cache.resolve(&EntityId::parse("user-1").unwrap(), &gpt()).await });
    tokio::task::yield_now().await;
    bench.cache.invalidate_all();
    bench.backend.hold.as_ref().unwrap().notify_waiters();
    assert!(loading.await.unwrap().is_ok());
    assert_eq!(bench.cache.stats().entries, 0);
}

#[tokio::test]
async fn own_writes_forget_exactly_what_they_may_concern_and_are_read_back_consistently() {
    let bench = bench(Fake::default(), 60, 100);
    let (one, two) = (EntityId::parse("one").unwrap(), EntityId::parse("two").unwrap());
    let other = Resource::parse("gpt-3").unwrap();
    let fill = || async {
        for (entity, resource) in [(&one, &gpt()), (&one, &other), (&two, &gpt()), (&two, &other)] {
            bench.cache.resolve(entity, resource).await.unwrap();
        }
    };
    fill().await;
    let own = |entity, resource| bench::own_keys(entity, resource);
    for (level, read_again) in [
        (ConfigLevel::Entity(one.clone(), gpt()), own("one", "gpt-4")),
        (
            ConfigLevel::EntityDefault(one.clone()),
            [own("one", "gpt-4"), own("one", "gpt-3")].concat(),
        ),
        (
            ConfigLevel::Resource(gpt()),
            vec!["RESOURCE#gpt-4 #CONFIG".to_owned()],
        ),
        (ConfigLevel::System, vec!["SYSTEM# #CONFIG".to_owned()]),
    ] {
        bench.backend.requested();
        bench.cache.wrote(&level, PolicyAfter::Unknown);
        fill().await;
        assert_eq!(bench.backend.requested(), read_again, "{level}");
    }
    let before = bench.backend.consistent.load(Ordering::SeqCst);
    bench.cache.wrote(&ConfigLevel::System, PolicyAfter::Unknown);
    bench.resolve("one").await.unwrap();
    assert_eq!(bench.backend.consistent.load(Ordering::SeqCst), before + 1);
    bench.clock.advance(READ_OWN_WRITES);
    bench.resolve("three").await.unwrap();
    assert_eq!(bench.backend.consistent.load(Ordering::SeqCst), before + 1);
}

#[tokio::test]
async fn the_policy_is_known_without_asking_even_for_strangers_and_after_expiry() {
    let bench = bench(Fake::default(), 60, 100);
    let stranger = EntityId::parse("stranger").unwrap();
    assert_eq!(
        bench.cache.policy(&stranger, &gpt()),
        (OnUnavailable::Block, ConfigOrigin::Builder)
    );
    bench.resolve("user-1").await.unwrap();
    bench.clock.advance(Duration::from_secs(3600));
    assert_eq!(
        bench.cache.policy(&stranger, &gpt()),
        (OnUnavailable::Allow, ConfigOrigin::Resource)
    );
    assert_eq!(
        bench.cache.policy(&EntityId::parse("user-1").unwrap(), &gpt()).0,
        OnUnavailable::Allow
    );
    assert_eq!(bench.loads(), 1);
}

#[tokio::test]
async fn an_entitys_own_policy_is_known_however_little_is_kept() {
    for (ttl, entries) in [(0, 100), (60, 1), (60, 100)] {
        let blocking = Fake {
            own_policy: Some(OnUnavailable::Block),
            ..Fake::default()
        };
        let bench = bench(blocking, ttl, entries);
        bench.resolve("user-1").await.unwrap();
        bench.resolve("user-2").await.unwrap();
        bench.cache.invalidate_all();
        assert_eq!(
            bench.cache.policy(&EntityId::parse("user-1").unwrap(), &gpt()),
            (OnUnavailable::Block, ConfigOrigin::EntityDefault),
            "ttl {ttl}, {entries} entries"
        );
    }
}

#[tokio::test]
async fn a_policy_of_our_own_writing_is_known_at_once() {
    let bench = bench(Fake::default(), 60, 100);
    let user = EntityId::parse("user-1").unwrap();
    bench.resolve("user-1").await.unwrap();
    let policy = || bench.cache.policy(&user, &gpt());
    assert_eq!(policy(), (OnUnavailable::Allow, ConfigOrigin::Resource));
    let wrote = |level: ConfigLevel, policy| {
        let switches = Switches {
            on_unavailable: policy,
            mode: None,
        };
        bench.cache.wrote(&level, PolicyAfter::Is(switches));
    };
    wrote(ConfigLevel::Resource(gpt()), Some(OnUnavailable::Block));
    assert_eq!(policy(), (OnUnavailable::Block, ConfigOrigin::Resource));
    wrote(ConfigLevel::Resource(gpt()), None);
    wrote(ConfigLevel::System, Some(OnUnavailable::Allow));
    assert_eq!(policy(), (OnUnavailable::Allow, ConfigOrigin::System));
    wrote(
        ConfigLevel::Entity(user.clone(), gpt()),
        Some(OnUnavailable::Block),
    );
    assert_eq!(policy(), (OnUnavailable::Block, ConfigOrigin::Entity));
    bench.cache.deleted_entity(&user);
    assert_eq!(policy(), (OnUnavailable::Allow, ConfigOrigin::System));
    wrote(ConfigLevel::System, None);
    assert_eq!(policy(), (OnUnavailable::Block, ConfigOrigin::Builder));
    assert_eq!(bench.loads(), 1);
}

#[tokio::test]
async fn what_was_read_before_our_own_write_does_not_bring_the_old_policy_back() {
    let bench = holding();
    let cache = bench.cache.clone();
    let user = EntityId::parse("user-1").unwrap();
    let loading = tokio::spawn({
        let user = user.clone();
        async move { cache.resolve(&user, &gpt()).await }
    });
    tokio::task::yield_now().await;
    let written = PolicyAfter::Is(Switches {
        on_unavailable: Some(OnUnavailable::Block),
        mode: None,
    });
    bench.cache.wrote(&ConfigLevel::Resource(gpt()), written);
    bench.backend.hold.as_ref().unwrap().notify_waiters();
    loading.await.unwrap().unwrap();
    assert_eq!(bench.cache.policy(&user, &gpt()).0, OnUnavailable::Block);
}

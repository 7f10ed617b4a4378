//! Levels are read and kept by themselves.

use super::bench::{Bench, Fake, RESOURCE, SYSTEM, bench, gpt, holding, own_keys};
use super::*;

#[tokio::test]
async fn a_new_entity_reads_only_its_own_items() {
    let bench = bench(Fake::default(), 60, 100);
    bench.resolve("user-1").await.unwrap();
    let all = [
        vec![SYSTEM.to_owned(), RESOURCE.to_owned()],
        own_keys("user-1", "gpt-4"),
    ]
    .concat();
    assert_eq!(bench.backend.requested(), all);
    bench.resolve("user-2").await.unwrap();
    assert_eq!(bench.backend.requested(), own_keys("user-2", "gpt-4"));
}

#[tokio::test]
async fn a_shared_level_is_reloaded_once_for_all_entities() {
    let bench = bench(Fake::default(), 60, 100);
    bench.resolve("user-1").await.unwrap();
    bench.clock.advance(Duration::from_secs(30));
    bench.resolve("user-2").await.unwrap();
    bench.clock.advance(Duration::from_secs(30));
    bench.backend.state().tokens = 200;
    bench.backend.requested();
    assert_eq!(bench.tokens("user-2").await.unwrap(), 200);
    assert_eq!(bench.backend.requested(), [SYSTEM, RESOURCE]);
    assert_eq!(bench.tokens("user-1").await.unwrap(), 200);
    assert_eq!(bench.backend.requested(), own_keys("user-1", "gpt-4"));
}

#[tokio::test]
async fn what_one_entity_learns_about_a_shared_level_holds_for_all_at_once() {
    let bench = bench(Fake::default(), 60, 100);
    let user = EntityId::parse("user-1").unwrap();
    for entity in ["user-1", "user-2"] {
        assert_eq!(bench.tokens(entity).await.unwrap(), 100);
    }
    bench.backend.state().tokens = 200;
    bench.cache.reload_consistent(&user, &gpt()).await.unwrap();
    let loads = bench.loads();
    assert_eq!(bench.tokens("user-2").await.unwrap(), 200);
    assert_eq!(bench.loads(), loads);
}

#[tokio::test]
async fn fifty_new_entities_at_once_read_a_shared_level_once() {
    let bench = holding();
    let callers: Vec<_> = (0..50)
        .map(|number| {
            let cache = bench.cache.clone();
            let entity = EntityId::parse(format!("user-{number}")).unwrap();
            tokio::spawn(async move { cache.resolve(&entity, &gpt()).await.is_ok() })
        })
        .collect();
    tokio::task::yield_now().await;
    bench.backend.hold.as_ref().unwrap().notify_waiters();
    for caller in callers {
        assert!(caller.await.unwrap());
    }
    let requested = bench.backend.requested();
    let count = |name: &str| requested.iter().filter(|key| *key == name).count();
    assert_eq!((count(SYSTEM), count(RESOURCE)), (1, 1));
    assert_eq!((bench.loads(), requested.len()), (50, 202));
}

#[tokio::test]
async fn a_reload_reads_everything_in_one_consistent_call() {
    let bench = bench(Fake::default(), 60, 100);
    bench.resolve("user-1").await.unwrap();
    bench.backend.requested();
    let user = EntityId::parse("user-1").unwrap();
    bench.cache.reload_consistent(&user, &gpt()).await.unwrap();
    let all = [
        vec![SYSTEM.to_owned(), RESOURCE.to_owned()],
        own_keys("user-1", "gpt-4"),
    ]
    .concat();
    assert_eq!(bench.backend.requested(), all);
    assert_eq!(
        (bench.loads(), bench.backend.consistent.load(Ordering::SeqCst)),
        (2, 1)
    );
}

#[tokio::test]
async fn what_was_read_first_does_not_replace_what_was_kept_meanwhile() {
    let bench = bench(Fake::default(), 60, 100);
    let now = bench.clock.elapsed();
    let read = |tokens: u64| {
        bench.backend.state().tokens = tokens;
        let wanted = ItemsWanted {
            required: part::Part::resource(&gpt()).keys(),
            ..ItemsWanted::default()
        };
        let backend = bench.backend.clone();
        async move {
            let items = backend.read_items(&wanted).await;
            PartsRead::decode([part::Part::resource(&gpt())].iter(), &items)
        }
    };
    let (old, new) = (read(100).await, read(200).await);
    let mut state = bench.cache.state();
    let (slow, quick) = (
        state.load_starts(&Reading::Eventual),
        state.load_starts(&Reading::Eventual),
    );
    let expires = now + Duration::from_secs(60);
    state.keep(&new, quick, now, expires);
    state.keep(&old, slow, now, expires);
    let kept = state.shared.get(&ConfigLevel::Resource(gpt())).unwrap();
    assert_eq!(kept.value.limits.iter().next().unwrap().capacity().get(), 200);
}

type Invalidate<'a> = &'a dyn Fn(&ConfigCache);

#[tokio::test]
async fn an_invalidation_forgets_exactly_what_it_names() {
    let fill = |bench: Bench| async {
        for entity in ["one", "two"] {
            for resource in [gpt(), Resource::parse("gpt-3").unwrap()] {
                let entity = EntityId::parse(entity).unwrap();
                bench.cache.resolve(&entity, &resource).await.unwrap();
            }
        }
        bench
    };
    let one = EntityId::parse("one").unwrap();
    let cases: [(&str, Invalidate<'_>, u64, u64); 4] = [
        ("entity", &|cache| cache.invalidate_entity(&one), 2, 3),
        ("resource", &|cache| cache.invalidate_resource(&gpt()), 2, 2),
        ("both", &|cache| cache.invalidate(&one, &gpt()), 3, 1),
        ("all", &|cache| cache.invalidate_all(), 0, 0),
    ];
    for (name, invalidate, entries, levels) in cases {
        let bench = fill(bench(Fake::default(), 60, 100)).await;
        assert_eq!((bench.cache.stats().entries, bench.cache.stats().levels), (4, 3));
        invalidate(&bench.cache);
        let stats = bench.cache.stats();
        assert_eq!((stats.entries, stats.levels), (entries, levels), "{name}");
        bench.backend.state().tokens = 200;
        let expected = if name == "entity" { 100 } else { 200 };
        assert_eq!(bench.tokens("one").await.unwrap(), expected, "{name}");
    }
}

#[tokio::test]
async fn a_bucket_configuration_is_built_once_and_outlives_reloads_that_change_nothing() {
    let bench = bench(Fake::default(), 60, 100);
    let config = async || {
        let configs = bench.resolve("user-1").await.unwrap().configs;
        configs.stored(zae_limiter_schema::bucket::TtlRule::Never)
    };
    let first = config().await;
    assert!(Arc::ptr_eq(&first, &config().await));
    bench.after_ttl();
    assert!(Arc::ptr_eq(&first, &config().await));
    assert_eq!(bench.loads(), 2);
    bench.backend.state().tokens = 200;
    bench.after_ttl();
    assert!(!Arc::ptr_eq(&first, &config().await));
}

//! How many calls things cost.

use crate::store::faults::stage;
use crate::store::support::{Fault, create_key_of_acme, page};

#[tokio::test(start_paused = true)]
async fn resolving_costs_one_call_on_a_miss_and_none_on_a_hit() {
    let stage = stage();
    let repository = stage.repository().await;
    stage.faults().operations();
    for _ in 0..100 {
        repository.resolve_limits("user-1", "gpt-4").await.unwrap();
    }
    assert_eq!(stage.faults().operations(), ["BatchGetItem"]);
    let stats = repository.cache_stats();
    assert_eq!(
        (stats.hits, stats.misses, stats.entries, stats.evictions),
        (99, 1, 1, 0)
    );
}

#[tokio::test(start_paused = true)]
async fn a_thousand_strangers_cost_one_call_each_per_ttl_and_bounded_memory() {
    const STRANGERS: usize = 1_000;
    let stage = stage();
    let repository = stage
        .builder()
        .config_cache_entries(200)
        .build_repository()
        .await
        .unwrap();
    stage.faults().operations();
    for number in 0..STRANGERS {
        for _ in 0..2 {
            repository
                .resolve_limits(format!("user-{number}"), "gpt-4")
                .await
                .unwrap();
        }
    }
    assert_eq!(stage.faults().operations().len(), STRANGERS);
    let stats = repository.cache_stats();
    assert_eq!((stats.hits, stats.entries), (STRANGERS as u64, 200));
}

#[tokio::test(start_paused = true)]
async fn a_peek_is_one_read_for_each_level_once_the_configuration_is_known() {
    let stage = stage();
    let limiter = stage.limiter().await;
    create_key_of_acme(&limiter).await;
    stage.faults().operations();
    let peek = async || limiter.acquire("key-1", "gpt-4").peek().await.unwrap();
    peek().await;
    assert_eq!(
        stage.faults().operations(),
        ["BatchGetItem", "BatchGetItem", "GetItem", "GetItem"],
        "configuration and bucket of each level"
    );
    peek().await;
    assert_eq!(stage.faults().operations(), ["GetItem", "GetItem"]);
}

#[tokio::test(start_paused = true)]
async fn a_resources_days_are_found_without_reading_its_hours() {
    let stage = stage();
    let repository = stage.repository().await;
    let id = "user-1".parse().unwrap();
    stage
        .put((1..24).map(|number| crate::store::usage::hour(&id, "gpt-4", number, 1)))
        .await;
    stage.put([crate::store::usage::day(&id, "gpt-4", 0, 23)]).await;
    let days = zae_limiter::usage::UsageQuery::of_resource("gpt-4")
        .unwrap()
        .window(zae_limiter::usage::WindowKind::Daily);
    stage.faults().plan("BatchGetItem", [Fault::HalfProcessed]);
    stage.faults().operations();
    let found = repository.list_usage_snapshots(&days, &page(10)).await.unwrap();
    assert_eq!(found.items.len(), 1);
    assert_eq!(
        stage.faults().operations(),
        ["Query", "BatchGetItem"],
        "one key, of which no half stays unprocessed"
    );
}

//! Prices in limits files.

#![allow(clippy::unwrap_used)]

use zae_limiter::money::Prices;
use zae_limiter::{EmbeddedStore, RateLimiter, Repository, Timestamp};
use zae_limiter_limits::Comparison;

async fn repository() -> Repository {
    let store = EmbeddedStore::memory().unwrap();
    RateLimiter::embedded_in(&store).build_repository().await.unwrap()
}

async fn apply(repository: &Repository, file: &str) -> usize {
    let comparison = Comparison::of(repository, file).await.unwrap();
    let changes = comparison.apply(Timestamp::from_seconds(1_790_000_000)).await;
    changes.unwrap().list.len()
}

#[tokio::test]
async fn a_level_in_the_file_has_the_prices_of_the_file() {
    let repository = repository().await;
    let stored = async || repository.get_prices("gpt-4o").await.unwrap();
    let both = "resources: {gpt-4o: {limits: {usd: 5000000/day}, prices: {input: $2.50, output: $10}}}";
    assert_eq!(apply(&repository, both).await, 1);
    let prices = Prices::new("$2.50".parse().unwrap(), "$10".parse().unwrap());
    assert_eq!(stored().await, Some(prices.clone()));
    assert_eq!(apply(&repository, both).await, 0);

    let prices_only = "resources: {gpt-4o: {prices: {input: $2.50, output: $10}}}";
    assert_eq!(apply(&repository, prices_only).await, 1);
    assert_eq!(stored().await, Some(prices));
    assert!(
        repository
            .get_resource_defaults("gpt-4o")
            .await
            .unwrap()
            .is_empty()
    );

    assert_eq!(
        apply(&repository, "resources: {gpt-4o: {limits: {usd: 5000000/day}}}").await,
        1
    );
    assert_eq!(stored().await, None);
    assert_eq!(apply(&repository, prices_only).await, 1);
    assert_eq!(apply(&repository, "").await, 1);
    assert_eq!(stored().await, None);
}

#[tokio::test]
async fn prices_of_the_system_are_managed_too() {
    let repository = repository().await;
    let system = async || {
        let stored = repository
            .get_config(&zae_limiter::ConfigLevel::System)
            .await
            .unwrap();
        stored.and_then(|stored| stored.prices)
    };
    assert_eq!(apply(&repository, "system: {prices: {per_call: $0.01}}").await, 1);
    assert_eq!(system().await.unwrap().per_call.unwrap().get(), 10_000);
    assert_eq!(apply(&repository, "").await, 1);
    assert_eq!(system().await, None);
}

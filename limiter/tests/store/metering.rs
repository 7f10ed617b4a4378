//! What a capacity meter counts.

use zae_limiter::{CapacityMeter, EmbeddedStore, Error, Limit, RateLimiter};

async fn metered(store: &EmbeddedStore) -> (RateLimiter, CapacityMeter) {
    let meter = CapacityMeter::new();
    let builder = RateLimiter::embedded_in(store)
        .default_limits([Limit::per_day("rpd", 10).unwrap()])
        .meter(meter.clone());
    (builder.await.unwrap(), meter)
}

async fn take(limiter: &RateLimiter, tokens: u64) -> zae_limiter::Result<()> {
    let lease = limiter.acquire("user-1", "gpt-4").consume("rpd", tokens).await?;
    lease.commit().await
}

/// What some work consumes.
async fn of<T>(meter: &CapacityMeter, work: impl Future<Output = T>) -> (T, u64, f64, f64) {
    let before = meter.consumed();
    let made = work.await;
    let after = meter.consumed();
    (
        made,
        after.calls - before.calls,
        after.read_units - before.read_units,
        after.write_units - before.write_units,
    )
}

#[tokio::test]
async fn an_acquire_is_charged_what_the_table_says() {
    let (limiter, meter) = metered(&EmbeddedStore::memory().unwrap()).await;
    let (taken, calls, read, write) = of(&meter, take(&limiter, 1)).await;
    taken.unwrap();
    assert!(
        calls >= 2 && read > 0.0 && write > 1.0,
        "the configuration is read, the index written"
    );
    let (taken, calls, read, write) = of(&meter, take(&limiter, 1)).await;
    taken.unwrap();
    assert_eq!(
        (calls, read.to_bits(), write.to_bits()),
        (1, 0f64.to_bits(), 1f64.to_bits())
    );
}

#[tokio::test]
async fn a_write_whose_condition_fails_is_charged_one_unit() {
    let store = EmbeddedStore::memory().unwrap();
    let (limiter, meter) = metered(&store).await;
    take(&limiter, 1).await.unwrap();
    let (other, _) = metered(&store).await;
    take(&other, 9).await.unwrap();
    let (refused, calls, _, write) = of(&meter, take(&limiter, 1)).await;
    assert!(matches!(refused, Err(Error::Refused(_))), "{refused:?}");
    assert_eq!((calls, write.to_bits()), (1, 1f64.to_bits()));
}

#[tokio::test]
async fn lists_and_batches_are_charged_as_well_and_clones_count_together() {
    let (limiter, meter) = metered(&EmbeddedStore::memory().unwrap()).await;
    take(&limiter, 1).await.unwrap();
    let limits = [Limit::per_minute("rpm", 1).unwrap()];
    let (stored, calls, _, write) = of(
        &meter,
        limiter
            .repository()
            .set_resource_defaults("gpt-4", limits)
            .into_future(),
    )
    .await;
    stored.unwrap();
    assert!(calls > 0 && write > 0.0);
    let (deleted, calls, read, write) =
        of(&meter.clone(), limiter.repository().delete_entity("user-1")).await;
    deleted.unwrap();
    assert!(calls > 1 && read > 0.0 && write > 0.0);
}

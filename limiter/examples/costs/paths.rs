//! Every path that an acquire can take, measured.

use std::sync::Arc;
use std::time::Duration;

use aws_credential_types::Credentials;
use tokio::task::JoinSet;
use tokio::time::Instant;
use zae_limiter::{
    Clock, EmbeddedStore, Error, Lease, Limit, ManualClock, NewEntity, RateLimiter, Result, SystemClock,
};

use super::meter::{Bill, CapacityMeter, ROUND_TRIP};

/// What one path costs.
#[derive(Debug)]
pub(crate) struct Cost {
    pub(crate) path: &'static str,
    pub(crate) bill: Bill,
    /// Calls that are made at the same time are one.
    pub(crate) round_trips: u128,
}

/// A table in memory, a clock that is moved by hand, and the costs so far.
struct Stand {
    meter: CapacityMeter,
    clock: Arc<ManualClock>,
    costs: Vec<Cost>,
}

impl Stand {
    async fn limiter(&self) -> Result<RateLimiter> {
        RateLimiter::builder("costs")
            .region("us-east-1")
            .endpoint_url("http://metered.invalid")
            .credentials(Credentials::new("none", "none", None, None, "costs"))
            .http_client(self.meter.clone())
            .clock(self.clock.clone())
            .principal("costs")
            .create_table(true)
            .await
    }

    async fn measure<T>(&mut self, path: &'static str, work: impl Future<Output = T>) -> T {
        self.meter.take();
        let before = Instant::now();
        let made = work.await;
        // A timer may be a millisecond late.
        let round_trips = (before.elapsed() + ROUND_TRIP / 2).as_millis() / ROUND_TRIP.as_millis();
        self.costs.push(Cost {
            path,
            bill: self.meter.take(),
            round_trips,
        });
        made
    }
}

async fn acquire(limiter: &RateLimiter, entity: &str, tokens: u64) -> Result<Lease> {
    let call = limiter.acquire(entity, "gpt-4").consume("rpm", 1);
    call.consume("tpm", tokens).await
}

async fn take(limiter: &RateLimiter, entity: &str, tokens: u64) -> Result<()> {
    acquire(limiter, entity, tokens).await?.commit().await
}

fn refused(result: Result<()>) -> Result<()> {
    match result {
        Err(Error::Refused(_)) => Ok(()),
        other => other,
    }
}

/// Measures every path on a table with two limits a bucket and the index of a deployed one. Time must be tokio's
/// paused time: round trips are told apart by it.
pub(crate) async fn measure() -> Result<Vec<Cost>> {
    let mut stand = Stand {
        meter: CapacityMeter::new(EmbeddedStore::memory()?),
        clock: Arc::new(ManualClock::at(SystemClock::new().now())),
        costs: Vec::new(),
    };
    // Another process sets the limits: one that has just written reads consistently for a while, at twice the price.
    let limits = [
        Limit::per_minute("rpm", 1_000)?,
        Limit::per_minute("tpm", 10_000)?,
    ];
    stand
        .limiter()
        .await?
        .repository()
        .set_resource_defaults("gpt-4", limits)
        .await?;
    let limiter = stand.limiter().await?;
    single(&mut stand, &limiter).await?;
    refusals(&mut stand, &limiter).await?;
    cascades(&mut stand, &limiter).await?;
    Ok(stand.costs)
}

async fn single(stand: &mut Stand, limiter: &RateLimiter) -> Result<()> {
    stand
        .measure("cold acquire, new bucket", take(limiter, "user-1", 100))
        .await?;
    stand
        .measure(
            "cold acquire, new bucket, resource known",
            take(limiter, "user-4", 100),
        )
        .await?;
    stand
        .measure("warm acquire", take(limiter, "user-1", 100))
        .await?;
    take(limiter, "user-1", 9_800).await?;
    stand.clock.advance(Duration::from_secs(6));
    stand
        .measure("warm acquire that needs refill", take(limiter, "user-1", 900))
        .await?;

    let mut lease = acquire(limiter, "user-1", 10).await?;
    lease.adjust("tpm", 40).adjust("rpm", 1);
    stand
        .measure("adjust two limits and commit", lease.commit())
        .await?;
    let lease = acquire(limiter, "user-1", 10).await?;
    stand
        .measure("commit without adjustments", lease.commit())
        .await?;
    let lease = acquire(limiter, "user-1", 10).await?;
    stand.measure("rollback", lease.rollback()).await?;
    stand.clock.advance(Duration::from_secs(20));
    stand.measure("100 acquires at once", hundred(limiter)).await?;

    stand.clock.advance(Duration::from_secs(20));
    let other = stand.limiter().await?;
    stand
        .measure("cold acquire, bucket exists", take(&other, "user-1", 2_000))
        .await?;
    stand.clock.advance(Duration::from_secs(6));
    stand
        .measure(
            "warm acquire, another process wrote since",
            take(limiter, "user-1", 2_000),
        )
        .await?;

    stand.clock.advance(Duration::from_secs(61));
    let acquired = take(limiter, "user-1", 1);
    stand
        .measure("acquire after the configuration's minute", acquired)
        .await?;
    let peek = limiter.acquire("user-1", "gpt-4").peek();
    stand.measure("peek", peek).await?;
    Ok(())
}

async fn hundred(limiter: &RateLimiter) -> Result<()> {
    let mut calls = JoinSet::new();
    for _ in 0..100 {
        let limiter = limiter.clone();
        calls.spawn(async move { take(&limiter, "user-1", 1).await });
    }
    calls.join_all().await.into_iter().collect()
}

async fn refusals(stand: &mut Stand, limiter: &RateLimiter) -> Result<()> {
    take(limiter, "user-2", 9_000).await?;
    stand.clock.advance(Duration::from_secs(2));
    let first = async { refused(take(limiter, "user-2", 5_000).await) };
    stand.measure("refusal", first).await?;
    let again = async { refused(take(limiter, "user-2", 5_000).await) };
    stand.measure("refusal again within a second", again).await
}

async fn cascades(stand: &mut Stand, limiter: &RateLimiter) -> Result<()> {
    limiter.repository().create_entity(NewEntity::new("org")).await?;
    limiter
        .repository()
        .create_entity(NewEntity::new("team").parent("org").cascade(true))
        .await?;
    limiter
        .repository()
        .create_entity(NewEntity::new("user-3").parent("team").cascade(true))
        .await?;
    take(limiter, "team", 1).await?;
    stand
        .measure("warm acquire, cascade of two", take(limiter, "team", 1))
        .await?;
    take(limiter, "user-3", 1).await?;
    stand.clock.advance(Duration::from_secs(61));
    stand
        .measure(
            "cascade of three after the configuration's minute",
            take(limiter, "user-3", 1),
        )
        .await?;
    stand
        .measure("warm acquire, cascade of three", take(limiter, "user-3", 1))
        .await?;
    let mut lease = acquire(limiter, "team", 10).await?;
    lease.adjust("tpm", 5);
    stand
        .measure("adjust and commit, cascade of two", lease.commit())
        .await
}

//! Calls that count money and tokens by the prices of their resource.

use std::num::NonZeroU32;

use zae_limiter::error::{Invalid, NotFound};
use zae_limiter::money::{Estimate, MicroDollars, Prices, Usage};
use zae_limiter::{Admission, ConfigChange, ConfigLevel, Error, NewEntity, OnUnavailable, RateLimiter};

use crate::acquire::support::*;

/// Two micro-dollars per input token and eight per output token.
fn prices() -> Prices {
    let money = |micro_dollars| MicroDollars::new(micro_dollars).unwrap();
    Prices::new(money(2_000_000), money(8_000_000))
}

/// A limiter whose resource has limits and prices, with both in memory.
async fn priced(stage: &Stage, stored: &[&str]) -> RateLimiter {
    let limiter = stage.limiter(&[]).await;
    set_resource_limits(&limiter, stored).await;
    limiter.repository().set_prices(GPT, prices()).await.unwrap();
    limiter.acquire("user-1", GPT).peek().await.unwrap();
    stage.wire.calls();
    limiter
}

const PROCESSES: NonZeroU32 = NonZeroU32::new(10).unwrap();

const LIMITS: &[&str] = &["rpd:100/day", "tpm:10000/day", "usd:100000/day"];

async fn left(limiter: &RateLimiter, entity: &str) -> [i64; 2] {
    [
        available(limiter, entity, "tpm").await,
        available(limiter, entity, "usd").await,
    ]
}

fn no_prices(result: &Result<(), Error>) -> bool {
    matches!(result, Err(Error::NotFound(NotFound::Prices { .. })))
}

#[tokio::test(start_paused = true)]
async fn an_estimate_and_the_real_usage_are_one_write_each() {
    let stage = Stage::new();
    let limiter = priced(&stage, LIMITS).await;
    let estimate = Estimate::new(1_000).max_output(500);
    let lease = limiter
        .acquire("user-1", GPT)
        .consume("rpd", 1)
        .consume_estimate(&estimate)
        .await
        .unwrap();
    assert_eq!(lease.consumed()["tpm"], 1_500);
    assert_eq!(lease.consumed()["usd"], 6_000);
    assert_eq!(stage.wire.operations(), ["UpdateItem"]);

    lease.commit_usage(&Usage::new(900, 100)).await.unwrap();
    assert_eq!(stage.wire.operations(), ["UpdateItem"]);
    let bucket = stage.bucket("user-1").await.unwrap();
    assert_eq!(
        (bucket.consumed("tpm"), bucket.consumed("usd")),
        (1_000_000, 2_600_000)
    );
    assert_eq!(bucket.consumed("rpd"), 1_000, "no price concerns it");
}

#[tokio::test(start_paused = true)]
async fn a_usage_as_estimated_costs_no_write() {
    let stage = Stage::new();
    let limiter = priced(&stage, LIMITS).await;
    let call = limiter.acquire("user-1", GPT);
    let lease = call
        .consume_estimate(&Estimate::new(10).max_output(5))
        .await
        .unwrap();
    stage.wire.calls();
    lease.commit_usage(&Usage::new(10, 5)).await.unwrap();
    assert_eq!(stage.wire.operations(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_commit_reads_nothing_however_long_the_call_took() {
    let stage = Stage::new();
    let limiter = priced(&stage, LIMITS).await;
    let held = lease(&limiter, "user-1", "rpd", 1).await.unwrap();
    // The configuration in memory is too old for another acquire.
    advance(secs(600)).await;
    stage.wire.calls();
    held.commit_usage(&Usage::new(100, 10)).await.unwrap();
    assert_eq!(stage.wire.operations(), ["UpdateItem"]);
    assert_eq!(stage.bucket("user-1").await.unwrap().consumed("usd"), 280_000);
}

#[tokio::test(start_paused = true)]
async fn a_lease_pays_the_prices_that_it_was_taken_under() {
    let stage = Stage::new();
    let limiter = priced(&stage, LIMITS).await;
    let held = lease(&limiter, "user-1", "rpd", 1).await.unwrap();
    limiter.repository().delete_prices(GPT).await.unwrap();
    held.commit_usage(&Usage::new(1, 0)).await.unwrap();
    assert_eq!(stage.bucket("user-1").await.unwrap().consumed("usd"), 2_000);
    let held = lease(&limiter, "user-1", "rpd", 1).await.unwrap();
    assert!(no_prices(&held.commit_usage(&Usage::new(1, 0)).await));
}

#[tokio::test(start_paused = true)]
async fn a_usage_larger_than_the_budget_is_debt() {
    let stage = Stage::new();
    let limiter = priced(&stage, LIMITS).await;
    let held = lease(&limiter, "user-1", "rpd", 1).await.unwrap();
    held.commit_usage(&Usage::new(60_000, 0)).await.unwrap();
    assert_eq!(left(&limiter, "user-1").await, [-50_000, -20_000]);
    let refused = exceeded(take(&limiter, "user-1", "usd", 1).await.unwrap_err());
    assert_eq!(refused.primary_limit().unwrap().limit.name().as_str(), "usd");
}

#[tokio::test(start_paused = true)]
async fn an_estimate_that_does_not_fit_the_budget_is_refused_and_takes_nothing() {
    let stage = Stage::new();
    let limiter = priced(&stage, LIMITS).await;
    let call = limiter.acquire("user-1", GPT).consume("rpd", 1);
    let estimate = Estimate::new(0).max_output(7_000);
    drop(exceeded(
        call.clone()
            .consume_estimate(&Estimate::new(0).max_output(13_000))
            .await
            .unwrap_err(),
    ));
    call.clone()
        .consume_estimate(&estimate)
        .await
        .unwrap()
        .commit()
        .await
        .unwrap();
    let refused = exceeded(call.consume_estimate(&estimate).await.unwrap_err());
    let names: Vec<_> = refused
        .refused_limits()
        .map(|status| status.limit.name().as_str())
        .collect();
    assert_eq!(names, ["tpm", "usd"]);
    assert_eq!(left(&limiter, "user-1").await, [3_000, 44_000]);
}

#[tokio::test(start_paused = true)]
async fn without_prices_an_estimate_is_an_error_before_any_write_and_a_usage_keeps_the_lease() {
    let stage = Stage::new();
    let limiter = stage.limiter(LIMITS).await;
    let estimate = Estimate::new(10);
    let refused = limiter.acquire("user-1", GPT).consume_estimate(&estimate).await;
    assert!(no_prices(&refused.map(drop)));
    assert!(!stage.wire.operations().contains(&"UpdateItem".to_owned()));

    let held = lease(&limiter, "user-1", "tpm", 500).await.unwrap();
    stage.wire.calls();
    assert!(no_prices(&held.commit_usage(&Usage::new(1, 1)).await));
    limiter.settled().await;
    assert_eq!(stage.wire.operations(), Vec::<String>::new());
    assert_eq!(
        available(&limiter, "user-1", "tpm").await,
        9_500,
        "the call was made"
    );

    let mut held = lease(&limiter, "user-1", "tpm", 500).await.unwrap();
    assert!(no_prices(&held.adjust_to_usage(&Usage::new(1, 1)).map(drop)));
    held.rollback().await.unwrap();
    assert_eq!(available(&limiter, "user-1", "tpm").await, 9_500);
}

#[tokio::test(start_paused = true)]
async fn a_usage_or_an_estimate_that_no_limit_could_count_is_invalid() {
    let stage = Stage::new();
    let limiter = priced(&stage, LIMITS).await;
    let huge = Estimate::new(u64::MAX);
    let error = limiter
        .acquire("user-1", GPT)
        .consume_estimate(&huge)
        .await
        .unwrap_err();
    let is_about = |error: &Error, name: &str| matches!(error, Error::Invalid(Invalid::Argument { field, .. }) if *field == name);
    assert!(is_about(&error, "estimate"), "{error}");
    let held = lease(&limiter, "user-1", "rpd", 1).await.unwrap();
    let error = held.commit_usage(&Usage::new(0, u64::MAX)).await.unwrap_err();
    assert!(is_about(&error, "usage"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn the_usage_of_a_stream_replaces_what_was_adjusted_before() {
    let stage = Stage::new();
    let limiter = priced(&stage, LIMITS).await;
    let mut held = lease(&limiter, "user-1", "tpm", 300).await.unwrap();
    held.adjust("rpd", 2);
    for output in [10, 20, 30] {
        held.adjust_to_usage(&Usage::new(100, output)).unwrap();
        let tokens = i64::try_from(output).unwrap() + 100;
        assert_eq!(held.consumed()["tpm"], tokens);
    }
    held.commit().await.unwrap();
    let bucket = stage.bucket("user-1").await.unwrap();
    assert_eq!(
        (bucket.consumed("tpm"), bucket.consumed("usd")),
        (130_000, 440_000)
    );
    assert_eq!(bucket.consumed("rpd"), 2_000);
}

#[tokio::test(start_paused = true)]
async fn limits_that_the_entity_does_not_have_are_left_out() {
    let stage = Stage::new();
    let limiter = priced(&stage, &["tpm:10000/day"]).await;
    let call = limiter.acquire("user-1", GPT);
    let held = call.consume_estimate(&Estimate::new(100)).await.unwrap();
    assert_eq!(held.consumed().len(), 1);
    held.commit_usage(&Usage::new(100, 50)).await.unwrap();
    assert_eq!(available(&limiter, "user-1", "tpm").await, 9_850);
}

#[tokio::test(start_paused = true)]
async fn a_budget_that_only_the_parent_has_is_charged_and_corrected() {
    let stage = Stage::new();
    let limiter = priced(&stage, &["tpm:10000/day"]).await;
    create(&limiter, NewEntity::new("team")).await;
    create(&limiter, child("user-1", "team")).await;
    set_limits(&limiter, "team", &["usd:100000/day"]).await;
    let spent = async || 100_000 - available(&limiter, "team", "usd").await;

    let call = limiter.acquire("user-1", GPT);
    let held = call.consume_estimate(&Estimate::new(1_000)).await.unwrap();
    assert_eq!(spent().await, 2_000);
    held.commit_usage(&Usage::new(300, 0)).await.unwrap();
    assert_eq!(
        (spent().await, available(&limiter, "user-1", "tpm").await),
        (600, 9_700)
    );

    let held = lease(&limiter, "user-1", "tpm", 1).await.unwrap();
    held.commit_usage(&Usage::new(100, 0)).await.unwrap();
    assert_eq!(
        (spent().await, available(&limiter, "user-1", "tpm").await),
        (800, 9_600)
    );
}

#[tokio::test(start_paused = true)]
async fn the_limits_that_count_may_have_other_names() {
    let stage = Stage::new();
    let limiter = priced(
        &stage,
        &["spend:100000/day", "tpd:10000/day", "in:10000/day", "usd:1/day"],
    )
    .await;
    let named = Prices {
        money_limit: "spend".parse().unwrap(),
        token_limits: ["tpd", "in"].map(|name| name.parse().unwrap()).into(),
        ..prices()
    };
    limiter.repository().set_prices(GPT, named).await.unwrap();
    let call = limiter.acquire("user-1", GPT);
    let held = call.consume_estimate(&Estimate::new(100)).await.unwrap();
    let consumed: Vec<_> = held
        .consumed()
        .into_iter()
        .map(|(name, taken)| (name.to_string(), taken))
        .collect();
    let expected = [("in", 100), ("spend", 200), ("tpd", 100)];
    assert_eq!(consumed, expected.map(|(name, taken)| (name.to_owned(), taken)));
    held.commit().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn prices_of_the_system_apply_to_resources_without_their_own() {
    let stage = Stage::new();
    let limiter = stage.limiter(LIMITS).await;
    let change = ConfigChange::new().prices(prices());
    limiter
        .repository()
        .set_config(&ConfigLevel::System, change)
        .await
        .unwrap();
    let held = lease(&limiter, "user-1", "rpd", 1).await.unwrap();
    held.commit_usage(&Usage::new(5, 0)).await.unwrap();
    assert_eq!(available(&limiter, "user-1", "usd").await, 99_990);
}

#[tokio::test(start_paused = true)]
async fn while_the_table_is_unavailable_the_policy_decides_about_estimates_too() {
    let stage = Stage::new();
    let builder = stage.builder().default_limits(limits(LIMITS));
    let limiter = builder.on_unavailable(OnUnavailable::Allow).await.unwrap();
    limiter.repository().set_prices(GPT, prices()).await.unwrap();
    take(&limiter, "user-1", "rpd", 1).await.unwrap();
    stage.wire.always(Fault::LostRequest);
    for entity in ["user-1", "user-2"] {
        let call = limiter.acquire(entity, GPT);
        let held = call.consume_estimate(&Estimate::new(100)).await.unwrap();
        assert_eq!(held.admission(), Admission::AllowedWhileUnavailable);
        drop(held);
    }
    let call = limiter.acquire("user-1", GPT);
    let held = call.consume_estimate(&Estimate::new(100)).await.unwrap();
    assert_eq!(held.consumed()["usd"], 200, "by the prices that were known last");
    held.commit_usage(&Usage::new(50, 0)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_own_fraction_during_an_outage_counts_estimates() {
    let stage = Stage::new();
    let builder = stage
        .builder()
        .default_limits(limits(LIMITS))
        .outage_fraction(PROCESSES);
    let limiter = builder.on_unavailable(OnUnavailable::Allow).await.unwrap();
    limiter.repository().set_prices(GPT, prices()).await.unwrap();
    take(&limiter, "user-1", "rpd", 1).await.unwrap();
    stage.wire.always(Fault::LostRequest);
    // A tenth of the budget are 10,000 micro-dollars, 1,000 of the tokens.
    let estimate = Estimate::new(0).max_output(600);
    let call = limiter.acquire("user-1", GPT).consume_estimate(&estimate);
    let first = call.clone().await.unwrap();
    assert_eq!(first.admission(), Admission::Local);
    assert!(call.clone().await.is_err(), "twice 600 tokens are too many");
    first.commit_usage(&Usage::new(0, 100)).await.unwrap();
    call.await.unwrap().commit().await.unwrap();
}

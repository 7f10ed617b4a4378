//! Calls that charge several resources, all or none.

use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};

use tokio::time::Instant;
use zae_limiter::error::Invalid;
use zae_limiter::money::{Estimate, MicroDollars, Prices, Usage};
use zae_limiter::{
    Acquire, Admission, BreakerState, ConfigChange, ConfigLevel, EntityChange, Error, MAX_RESOURCES,
    NewEntity, OnUnavailable, RateLimitHeaders, RateLimiter, Refusal, Resource,
};

use crate::acquire::support::*;

/// The resource that calls charge beside [`GPT`].
const BUDGET: &str = "budget";

/// A model with two limits and a budget of 100, with both in memory.
async fn model_and_budget(stage: &Stage) -> RateLimiter {
    let limiter = stage.limiter(&[]).await;
    set_resource_limits(&limiter, &["rpm:10/day", "tpm:1000/day"]).await;
    set_budget(&limiter, &["usd:100/day"]).await;
    call(&limiter).peek().await.unwrap();
    stage.wire.calls();
    limiter
}

async fn set_budget(limiter: &RateLimiter, stored: &[&str]) {
    let stored = limits(stored);
    let set = limiter.repository().set_resource_defaults(BUDGET, stored).await;
    set.unwrap();
}

/// One request of 500 tokens, for 12 of the budget.
fn call(limiter: &RateLimiter) -> Acquire {
    limiter
        .acquire("user-1", GPT)
        .consume("rpm", 1)
        .consume("tpm", 500)
        .and(BUDGET)
        .consume("usd", 12)
}

/// What an entity has left of a limit of its own.
async fn left_of(limiter: &RateLimiter, entity: &str, resource: &str, limit: &str) -> i64 {
    let peek = limiter.acquire(entity, resource).peek().await.unwrap();
    let own = peek
        .statuses()
        .iter()
        .find(|status| status.limit.name().as_str() == limit && status.entity.as_str() == entity);
    own.unwrap().available
}

/// `rpm`, `tpm` and `usd` of `user-1`.
async fn left(limiter: &RateLimiter) -> [i64; 3] {
    [
        left_of(limiter, "user-1", GPT, "rpm").await,
        left_of(limiter, "user-1", GPT, "tpm").await,
        left_of(limiter, "user-1", BUDGET, "usd").await,
    ]
}

/// Takes tokens of the budget and commits.
async fn spend(limiter: &RateLimiter, entity: &str, limit: &str, tokens: u64) {
    let call = limiter.acquire(entity, BUDGET).consume(limit, tokens);
    call.commit().await.unwrap();
}

fn refused(refusal: &Refusal) -> Vec<(&str, &str, &str)> {
    let limits = refusal.refused_limits();
    let names = limits.map(|one| {
        (
            one.entity.as_str(),
            one.resource.as_str(),
            one.limit.name().as_str(),
        )
    });
    names.collect()
}

fn rule(error: Error) -> String {
    match error {
        Error::Invalid(Invalid::Argument { .. }) => error.to_string(),
        other => panic!("not an invalid argument: {other}"),
    }
}

#[tokio::test(start_paused = true)]
async fn all_resources_are_written_at_the_same_time_and_statuses_name_them() {
    let stage = Stage::new();
    let limiter = model_and_budget(&stage).await;
    stage.wire.latency(millis(10));
    let before = Instant::now();
    let lease = call(&limiter).await.unwrap();
    assert_eq!(stage.wire.most_in_flight(), 2);
    assert_eq!(stage.wire.operations(), ["UpdateItem"; 2]);
    assert!(before.elapsed() < millis(20), "{:?}", before.elapsed());
    let statuses: Vec<_> = lease
        .statuses()
        .iter()
        .map(|one| {
            (
                one.resource.to_string(),
                one.limit.name().to_string(),
                one.available,
            )
        })
        .collect();
    let expected = [(GPT, "rpm", 9), (GPT, "tpm", 500), (BUDGET, "usd", 88)];
    assert_eq!(
        statuses,
        expected.map(|(resource, limit, left)| (resource.to_owned(), limit.to_owned(), left))
    );
    let resources: Vec<_> = lease.resources().map(Resource::as_str).collect();
    assert_eq!(resources, [GPT, BUDGET]);
    assert_eq!(lease.resource().as_str(), GPT);
    assert_eq!(
        lease
            .consumed_on(BUDGET)
            .unwrap()
            .into_values()
            .collect::<Vec<_>>(),
        [12]
    );
    let headers: Vec<_> = RateLimitHeaders::admitted(&lease.statuses())
        .into_iter()
        .collect();
    assert!(headers[0].1.contains(r#""budget/usd";q=100"#), "{headers:?}");
    stage.wire.calls();
    lease.commit().await.unwrap();
    assert_eq!(stage.wire.operations(), [""; 0], "nothing to correct");
    assert_eq!(left(&limiter).await, [9, 500, 88]);
}

#[tokio::test(start_paused = true)]
async fn configuration_of_all_resources_is_read_at_the_same_time() {
    let stage = Stage::new();
    drop(model_and_budget(&stage).await);
    let cold = stage.limiter(&[]).await;
    stage.wire.latency(millis(10));
    let before = Instant::now();
    call(&cold).commit().await.unwrap();
    assert!(before.elapsed() <= millis(20), "{:?}", before.elapsed());
}

#[tokio::test(start_paused = true)]
async fn if_one_resource_refuses_nothing_of_the_others_is_kept() {
    for known in [false, true] {
        for short in [GPT, BUDGET] {
            let stage = Stage::new();
            let limiter = model_and_budget(&stage).await;
            call(&limiter).await.unwrap().rollback().await.unwrap();
            // Another process takes the rest, so that memory predicts success.
            let other = if known {
                limiter.clone()
            } else {
                stage.limiter(&[]).await
            };
            let (limit, rest) = if short == GPT { ("tpm", 600) } else { ("usd", 90) };
            let take = other.acquire("user-1", short).consume(limit, rest);
            take.commit().await.unwrap();
            let refusal = exceeded(call(&limiter).await.unwrap_err());
            assert_eq!(refused(&refusal), [("user-1", short, limit)]);
            let resources: Vec<_> = refusal
                .statuses()
                .iter()
                .map(|one| one.resource.as_str())
                .collect();
            assert_eq!(resources, [GPT, GPT, BUDGET], "of all resources, in order");
            limiter.settled().await;
            let expected = if short == GPT {
                [10, 400, 100]
            } else {
                [10, 1000, 10]
            };
            assert_eq!(left(&limiter).await, expected, "{short}, known: {known}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_names_resources_where_several_refuse() {
    let stage = Stage::new();
    let limiter = model_and_budget(&stage).await;
    limiter
        .acquire("user-1", GPT)
        .consume("tpm", 900)
        .commit()
        .await
        .unwrap();
    spend(&limiter, "user-1", "usd", 90).await;
    let refusal = exceeded(call(&limiter).await.unwrap_err());
    // The first that is known to be short is asked alone.
    assert_eq!(refused(&refusal)[0], ("user-1", GPT, "tpm"));
    let peek = call(&limiter).peek().await.unwrap();
    assert!(!peek.would_pass());
    assert_eq!(
        (peek.tokens_on(GPT, "tpm"), peek.tokens_on(BUDGET, "usd")),
        (Some(100), Some(10))
    );
    assert_eq!(peek.tokens_on(BUDGET, "tpm"), None);
    let text = refusal.to_string();
    assert!(text.starts_with("Rate limit exceeded for user-1/"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_refusal_counts_on_the_resource_that_refused() {
    let stage = Stage::new();
    let limiter = model_and_budget(&stage).await;
    call(&limiter).commit().await.unwrap();
    spend(&limiter, "user-1", "usd", 80).await;
    exceeded(call(&limiter).await.unwrap_err());
    limiter.settled().await;
    stage.wire.calls();
    tokio::time::sleep(secs(66)).await;
    let written = stage.wire.calls();
    let keys: Vec<_> = written
        .iter()
        .map(|call| &call.request["Key"]["SK"]["S"])
        .collect();
    assert_eq!(keys, ["#BUCKET#budget"]);
}

#[tokio::test(start_paused = true)]
async fn resources_of_a_call_are_different_bounded_and_need_something_to_take() {
    let stage = Stage::new();
    let limiter = model_and_budget(&stage).await;
    let twice = limiter
        .acquire("user-1", GPT)
        .consume("rpm", 1)
        .and(GPT)
        .consume("rpm", 1);
    assert!(rule(twice.await.unwrap_err()).contains("a call names each resource once"));
    let mut many = limiter.acquire("user-1", GPT).consume("rpm", 1);
    for number in 1..=MAX_RESOURCES {
        many = many.and(format!("resource-{number}"));
    }
    assert!(rule(many.await.unwrap_err()).contains("at most 8 resources"));
    let nothing = limiter.acquire("user-1", GPT).and(BUDGET);
    assert!(rule(nothing.await.unwrap_err()).contains("consume"));
    let unknown = limiter
        .acquire("user-1", GPT)
        .consume("rpm", 1)
        .and(BUDGET)
        .consume("rpm", 1);
    let unknown = unknown.await.unwrap_err().to_string();
    assert!(unknown.contains("rpm") && unknown.contains(BUDGET), "{unknown}");
    assert_eq!(stage.wire.operations(), [""; 0], "before any write");
}

#[tokio::test(start_paused = true)]
async fn adjustments_find_the_resource_by_the_limit() {
    let stage = Stage::new();
    let limiter = model_and_budget(&stage).await;
    let mut lease = call(&limiter).await.unwrap();
    assert_eq!(lease.resource_of("usd").unwrap().as_str(), BUDGET);
    lease.adjust("tpm", -120).adjust("usd", 3);
    lease.consume("usd", 5).await.unwrap();
    stage.wire.calls();
    lease.commit().await.unwrap();
    assert_eq!(stage.wire.operations(), ["UpdateItem"; 2], "one for each bucket");
    assert_eq!(left(&limiter).await, [9, 620, 80]);
}

#[tokio::test(start_paused = true)]
async fn a_limit_that_several_resources_have_needs_its_resource() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["calls:100/day", "tpm:1000/day"]).await;
    let both = || {
        let call = limiter.acquire("user-1", GPT).consume("calls", 1);
        call.and(BUDGET).consume("calls", 2)
    };
    let mut lease = both().await.unwrap();
    let several = rule(lease.resource_of("calls").unwrap_err());
    assert!(several.contains("gpt-4, budget"), "{several}");
    assert!(rule(lease.consume("calls", 1).await.unwrap_err()).contains("gpt-4, budget"));
    lease.on(BUDGET).adjust("calls", 7).release("calls", 1);
    lease.on(GPT).consume("calls", 3).await.unwrap();
    lease.commit().await.unwrap();
    let calls = |resource| left_of(&limiter, "user-1", resource, "calls");
    assert_eq!((calls(GPT).await, calls(BUDGET).await), (96, 92));

    // What is ambiguous is left out; the rest of the lease is kept.
    let mut lease = both().await.unwrap();
    lease.adjust("calls", 7).on(BUDGET).adjust("calls", 1);
    assert!(rule(lease.commit().await.unwrap_err()).contains("gpt-4, budget"));
    assert_eq!((calls(GPT).await, calls(BUDGET).await), (95, 89));

    // Of a limit that no resource took anything of, both might be meant.
    let mut lease = both().await.unwrap();
    assert!(lease.resource_of("tpm").is_err());
    lease.on("gpt-5").adjust("calls", 1);
    let elsewhere = rule(lease.commit().await.unwrap_err());
    assert!(
        elsewhere.contains("gpt-5") && elsewhere.contains("the lease is on gpt-4, budget"),
        "{elsewhere}"
    );
}

#[tokio::test(start_paused = true)]
async fn the_resource_that_took_of_a_limit_is_meant() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["rpd:100/day", "usd:1000/day"]).await;
    let call = limiter
        .acquire("user-1", GPT)
        .consume("rpd", 1)
        .and(BUDGET)
        .consume("usd", 12);
    let mut lease = call.await.unwrap();
    lease.adjust("usd", 3).adjust("rpd", 1);
    lease.commit().await.unwrap();
    for (resource, expected) in [(GPT, (98, 1000)), (BUDGET, (100, 985))] {
        let own = (
            left_of(&limiter, "user-1", resource, "rpd").await,
            left_of(&limiter, "user-1", resource, "usd").await,
        );
        assert_eq!(own, expected, "{resource}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_dropped_or_cancelled_gives_every_resource_back() {
    let stage = Stage::new();
    let limiter = model_and_budget(&stage).await;
    drop(call(&limiter).await.unwrap());
    limiter.settled().await;
    assert_eq!(left(&limiter).await, [10, 1000, 100]);
    // The model's bucket has written when the caller gives up, the budget's has not.
    stage.wire.latency_of_resource(GPT, millis(2));
    stage.wire.latency_of_resource(BUDGET, millis(100));
    let cancelled = tokio::time::timeout(millis(20), call(&limiter).into_future()).await;
    assert!(cancelled.is_err());
    limiter.settled().await;
    assert_eq!(left(&limiter).await, [10, 1000, 100]);
}

#[tokio::test(start_paused = true)]
async fn a_resource_whose_responses_are_lost_leaves_nothing_behind_in_the_end() {
    for lost in [GPT, BUDGET] {
        for fault in [
            Fault::SilentResponse,
            Fault::LostResponse,
            Fault::Silence,
            Fault::Denied,
        ] {
            let stage = Stage::new();
            let limiter = model_and_budget(&stage).await;
            call(&limiter).commit().await.unwrap();
            stage.wire.always_on_resource(lost, fault);
            let error = call(&limiter).await.unwrap_err();
            assert!(
                error.is_unavailable() || fault == Fault::Denied,
                "{lost}, {fault:?}: {error}"
            );
            tokio::time::sleep(secs(2)).await;
            stage.wire.heal();
            let report = limiter.shutdown().await;
            assert_eq!(report.unwritten_total, 0, "{lost}, {fault:?}");
            let fresh = stage.limiter(&[]).await;
            assert_eq!(left(&fresh).await, [9, 500, 88], "{lost}, {fault:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn two_calls_that_each_hold_what_the_other_needs_cannot_both_lose() {
    for seed in 0..30 {
        let stage = Stage::new();
        let set_up = stage.limiter(&["calls:1/day"]).await;
        let mut calls = Vec::new();
        // Each names first what it reaches first.
        for (number, (first, second)) in [(GPT, BUDGET), (BUDGET, GPT)].into_iter().enumerate() {
            let wire = stage.another_wire();
            let builder = stage.builder_on(&wire).default_limits(limits(&["calls:1/day"]));
            let limiter = builder.seed(seed * 2 + number as u64).await.unwrap();
            let call = limiter.acquire("user-1", first).consume("calls", 1);
            let call = call.and(second).consume("calls", 1);
            call.clone().peek().await.unwrap();
            wire.calls();
            wire.latency_of_resource(first, millis(2 + seed % 3));
            wire.latency_of_resource(second, millis(20 + seed % 7));
            calls.push((wire, tokio::spawn(async move { (call.commit().await, limiter) })));
        }
        let mut admitted = 0;
        for (wire, call) in calls {
            let (result, limiter) = call.await.unwrap();
            admitted += u32::from(result.is_ok());
            limiter.settled().await;
            let lost = wire.calls().iter().filter(|call| call.status == 400).count();
            assert!(lost > 0, "seed {seed}: each loses a resource at first");
        }
        assert_eq!(admitted, 1, "seed {seed}");
        for resource in [GPT, BUDGET] {
            assert_eq!(left_of(&set_up, "user-1", resource, "calls").await, 0);
        }
    }
}

/// `user-1` of an organization, whose limits are those of the resources.
async fn with_organization(stage: &Stage, cascade: bool) -> RateLimiter {
    let limiter = model_and_budget(stage).await;
    create(&limiter, NewEntity::new("org")).await;
    create(&limiter, NewEntity::new("user-1").parent("org").cascade(cascade)).await;
    limiter
}

#[tokio::test(start_paused = true)]
async fn cascade_is_chosen_for_each_resource() {
    for stored in [true, false] {
        let stage = Stage::new();
        let limiter = with_organization(&stage, stored).await;
        let acquire = limiter.acquire("user-1", GPT).cascade(true).consume("tpm", 500);
        let mut lease = acquire
            .and(BUDGET)
            .cascade(false)
            .consume("usd", 12)
            .await
            .unwrap();
        lease.adjust("tpm", 100).adjust("usd", 1);
        lease.consume("tpm", 50).await.unwrap();
        lease.consume("usd", 1).await.unwrap();
        lease.commit().await.unwrap();
        assert_eq!(left(&limiter).await, [10, 350, 86]);
        assert_eq!(
            left_of(&limiter, "org", GPT, "tpm").await,
            350,
            "stored: {stored}"
        );
        assert_eq!(
            left_of(&limiter, "org", BUDGET, "usd").await,
            100,
            "stored: {stored}"
        );
        // The buckets say what is stored, so that other clients do not rewrite them.
        let bucket = stage.bucket("user-1").await.unwrap();
        assert_eq!(bucket.0["cascade"].as_bool().copied(), Ok(stored));
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_choice_the_record_of_the_entity_says_for_every_resource() {
    let stage = Stage::new();
    let limiter = with_organization(&stage, true).await;
    call(&limiter).commit().await.unwrap();
    assert_eq!(left_of(&limiter, "org", GPT, "tpm").await, 500);
    assert_eq!(left_of(&limiter, "org", BUDGET, "usd").await, 88);
    // What is above the parent is for the parent to say.
    create(&limiter, NewEntity::new("group")).await;
    let change = EntityChange::new().parent("group").cascade(true);
    limiter.repository().update_entity("org", change).await.unwrap();
    let acquire = limiter.acquire("user-1", GPT).cascade(false).consume("tpm", 1);
    acquire
        .and(BUDGET)
        .cascade(true)
        .consume("usd", 1)
        .commit()
        .await
        .unwrap();
    assert_eq!(left_of(&limiter, "group", GPT, "tpm").await, 1000);
    assert_eq!(left_of(&limiter, "group", BUDGET, "usd").await, 99);
}

#[tokio::test(start_paused = true)]
async fn a_correction_without_a_lease_is_about_several_resources_too() {
    let stage = Stage::new();
    let limiter = with_organization(&stage, true).await;
    call(&limiter).commit().await.unwrap();
    let adjust = limiter.adjust("user-1", GPT, [("tpm", -120), ("rpm", 0)]);
    let written = adjust.and(BUDGET, [("usd", 3)]).cascade(false).await.unwrap();
    assert!(written);
    assert_eq!(left(&limiter).await, [9, 620, 85]);
    assert_eq!(left_of(&limiter, "org", GPT, "tpm").await, 620);
    assert_eq!(left_of(&limiter, "org", BUDGET, "usd").await, 88);
    // An error changes nothing.
    let unknown = limiter
        .adjust("user-1", GPT, [("tpm", 5)])
        .and(BUDGET, [("eur", 3)]);
    assert!(unknown.await.is_err());
    assert!(
        limiter
            .adjust("user-1", GPT, [("tpm", 5)])
            .and(GPT, [("tpm", 5)])
            .await
            .is_err()
    );
    assert_eq!(left(&limiter).await, [9, 620, 85]);
}

fn prices() -> Prices {
    let money = |micro_dollars| MicroDollars::new(micro_dollars).unwrap();
    Prices::new(money(2_000_000), money(8_000_000))
}

#[tokio::test(start_paused = true)]
async fn usage_corrects_tokens_of_the_model_and_money_of_the_budget() {
    let stage = Stage::new();
    let limiter = stage.limiter(&[]).await;
    set_resource_limits(&limiter, &["rpm:10/day", "tpm:10000/day"]).await;
    set_budget(&limiter, &["usd:100000/day"]).await;
    limiter.repository().set_prices(GPT, prices()).await.unwrap();
    let estimate = Estimate::new(1_000).max_output(500);
    let acquire = limiter
        .acquire("user-1", GPT)
        .consume("rpm", 1)
        .consume_estimate(&estimate);
    // The budget has no prices: what is called has.
    let acquire = acquire.and(BUDGET).consume_estimate(&estimate);
    let lease = acquire.await.unwrap();
    assert_eq!(lease.consumed()["tpm"], 1_500);
    assert_eq!(lease.consumed_on(BUDGET).unwrap()["usd"], 6_000);
    lease.commit_usage(&Usage::new(900, 100)).await.unwrap();
    assert_eq!(left(&limiter).await, [9, 9_000, 100_000 - 2_600]);

    // A budget that nothing was taken of is charged by the usage all the same.
    let acquire = limiter.acquire("user-1", GPT).consume("rpm", 1).and(BUDGET);
    acquire
        .await
        .unwrap()
        .commit_usage(&Usage::new(1_000, 0))
        .await
        .unwrap();
    assert_eq!(left(&limiter).await, [8, 8_000, 95_400]);
}

#[tokio::test(start_paused = true)]
async fn usage_corrects_money_wherever_it_was_taken() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["tpm:10000/day", "usd:100000/day"]).await;
    limiter.repository().set_prices(GPT, prices()).await.unwrap();
    let usd = |resource| left_of(&limiter, "user-1", resource, "usd");
    let acquire = limiter
        .acquire("user-1", GPT)
        .consume("usd", 10)
        .and(BUDGET)
        .consume("usd", 12);
    let lease = acquire.await.unwrap();
    lease.commit_usage(&Usage::new(1_000, 0)).await.unwrap();
    assert_eq!((usd(GPT).await, usd(BUDGET).await), (98_000, 98_000));
    // Only the budget took some.
    let acquire = limiter
        .acquire("user-1", GPT)
        .consume("tpm", 10)
        .and(BUDGET)
        .consume("usd", 12);
    let lease = acquire.await.unwrap();
    lease.commit_usage(&Usage::new(1_000, 0)).await.unwrap();
    assert_eq!((usd(GPT).await, usd(BUDGET).await), (98_000, 96_000));
}

#[tokio::test(start_paused = true)]
async fn permits_and_quotas_of_different_resources_come_back_with_the_lease() {
    let stage = Stage::new();
    let limiter = stage.limiter(&[]).await;
    set_resource_limits(&limiter, &["parallel:2 at once for 60s"]).await;
    set_budget(&limiter, &["spend:100 per day"]).await;
    let call = || {
        let acquire = limiter.acquire("user-1", GPT).consume("parallel", 1);
        acquire.and(BUDGET).consume("spend", 40)
    };
    let first = call().await.unwrap();
    let second = call().await.unwrap();
    let refusal = exceeded(call().await.unwrap_err());
    assert_eq!(refused(&refusal)[0], ("user-1", GPT, "parallel"));
    assert!(!first.is_lost());
    first.rollback().await.unwrap();
    second.commit().await.unwrap();
    assert_eq!(left_of(&limiter, "user-1", GPT, "parallel").await, 2);
    assert_eq!(left_of(&limiter, "user-1", BUDGET, "spend").await, 60);
    // The quota refuses, and the permit is free again.
    let big = limiter.acquire("user-1", GPT).consume("parallel", 1);
    let refusal = exceeded(big.and(BUDGET).consume("spend", 61).await.unwrap_err());
    assert_eq!(refused(&refusal), [("user-1", BUDGET, "spend")]);
    limiter.settled().await;
    assert_eq!(left_of(&limiter, "user-1", GPT, "parallel").await, 2);
    assert_eq!(left_of(&limiter, "user-1", BUDGET, "spend").await, 60);
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_lost_with_a_permit_of_any_of_its_resources() {
    let stage = Stage::new();
    let limiter = stage.limiter(&[]).await;
    set_resource_limits(&limiter, &["rpm:10/day"]).await;
    set_budget(&limiter, &["parallel:2 at once for 60s"]).await;
    let acquire = limiter.acquire("user-1", GPT).consume("rpm", 1);
    let lease = acquire.and(BUDGET).consume("parallel", 1).await.unwrap();
    stage.wire.always(Fault::ConnectionRefused);
    assert!(!lease.is_lost());
    lease.lost().await;
    assert!(lease.is_lost());
    stage.wire.heal();
    drop(lease.commit().await);
}

#[tokio::test(start_paused = true)]
async fn chunks_are_spent_in_an_outage_only_if_every_resource_has_one() {
    let stage = Stage::new();
    let builder = stage.builder().token_chunks_on(GPT);
    let limiter = builder.default_limits([hoard("rpm", 100_000)]).await.unwrap();
    let both = || {
        let acquire = limiter.acquire("user-1", GPT).consume("rpm", 1);
        acquire.and(BUDGET).consume("rpm", 1)
    };
    both().commit().await.unwrap();
    for number in 0..20 {
        let other = format!("other-{number}");
        take(&limiter, &other, "rpm", 1).await.unwrap();
    }
    while limiter.stats().chunk_tokens <= 15 {
        take(&limiter, "user-1", "rpm", 1).await.unwrap();
        tokio::time::sleep(millis(10)).await;
    }
    stage.wire.always(Fault::ConnectionRefused);
    let others = (0..20).map(|number| {
        let limiter = limiter.clone();
        tokio::spawn(async move { take(&limiter, &format!("other-{number}"), "rpm", 1).await })
    });
    let others: Vec<_> = others.collect();
    // One that is not used is given back.
    while limiter.stats().breaker == BreakerState::Closed {
        tokio::time::sleep(millis(100)).await;
        take(&limiter, "user-1", "rpm", 1).await.unwrap();
    }
    for other in others {
        assert!(other.await.unwrap().unwrap_err().is_unavailable());
    }
    let before = limiter.stats().chunk_tokens;
    assert!(both().await.unwrap_err().is_unavailable());
    assert_eq!(limiter.stats().chunk_tokens, before);
    take(&limiter, "user-1", "rpm", 1).await.unwrap();
    assert_eq!(limiter.stats().chunk_tokens, before - 1);
}

/// A model with plenty and a shared allowance that is empty.
async fn waiting_for_the_budget(stage: &Stage) -> RateLimiter {
    let limiter = stage.limiter(&["rps:100/sec"]).await;
    set_budget(&limiter, &["rps:10/sec"]).await;
    spend(&limiter, "user-1", "rps", 10).await;
    limiter
}

#[tokio::test(start_paused = true)]
async fn calls_that_wait_for_the_same_resource_are_served_in_order_whatever_else_they_take() {
    let stage = Stage::new();
    let limiter = waiting_for_the_budget(&stage).await;
    let served = Arc::new(Mutex::new(Vec::new()));
    let mut callers = Vec::new();
    for (number, (tokens, resources)) in [
        (8, vec![GPT, BUDGET]),
        (1, vec![BUDGET, GPT]),
        (1, vec![BUDGET]),
        (3, vec!["zoo", BUDGET, GPT]),
        (1, vec![GPT, BUDGET]),
    ]
    .into_iter()
    .enumerate()
    {
        let mut resources = resources.into_iter();
        let mut acquire = limiter.acquire("user-1", resources.next().unwrap());
        acquire = acquire.consume("rps", tokens);
        for resource in resources {
            acquire = acquire.and(resource).consume("rps", tokens);
        }
        acquire = acquire.wait_up_to(secs(60));
        let served = served.clone();
        callers.push(tokio::spawn(async move {
            acquire.await.unwrap().commit().await.unwrap();
            served.lock().unwrap().push(number);
        }));
        tokio::task::yield_now().await;
    }
    for caller in callers {
        caller.await.unwrap();
    }
    assert_eq!(*served.lock().unwrap(), [0, 1, 2, 3, 4]);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_for_the_budget_does_not_hold_up_those_that_need_only_the_model() {
    let stage = Stage::new();
    let limiter = waiting_for_the_budget(&stage).await;
    let both = limiter
        .acquire("user-1", GPT)
        .consume("rps", 1)
        .and(BUDGET)
        .consume("rps", 10);
    let both = tokio::spawn(both.wait_up_to(secs(60)).into_future());
    tokio::time::sleep(millis(10)).await;
    let before = Instant::now();
    let model = limiter.acquire("user-1", GPT).consume("rps", 1);
    model.wait_up_to(secs(60)).commit().await.unwrap();
    assert_eq!(before.elapsed(), millis(0));
    both.await.unwrap().unwrap().commit().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn in_an_outage_the_strictest_policy_of_the_resources_decides() {
    for (stored, admitted) in [(OnUnavailable::Allow, true), (OnUnavailable::Block, false)] {
        let stage = Stage::new();
        let limiter = model_and_budget(&stage).await;
        for (resource, policy) in [(GPT, OnUnavailable::Allow), (BUDGET, stored)] {
            let change = ConfigChange::new().on_unavailable(policy);
            let level = ConfigLevel::Resource(resource.parse().unwrap());
            limiter.repository().set_config(&level, change).await.unwrap();
        }
        call(&limiter).commit().await.unwrap();
        stage.wire.always(Fault::Silence);
        let result = call(&limiter).await;
        match result {
            Ok(mut lease) if admitted => {
                assert_eq!(lease.admission(), Admission::AllowedWhileUnavailable);
                lease.adjust("usd", 3);
                assert_eq!(lease.consumed_on(BUDGET).unwrap()["usd"], 15);
                lease.commit().await.unwrap();
            }
            Err(error) if !admitted => assert!(error.is_unavailable(), "{error}"),
            result => panic!("{stored:?}: {result:?}"),
        }
        let allowed = call(&limiter).on_unavailable(OnUnavailable::Allow).await.unwrap();
        assert_eq!(allowed.admission(), Admission::AllowedWhileUnavailable);
        allowed.commit().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn the_outage_fraction_of_all_resources_is_taken_or_none() {
    let stage = Stage::new();
    let builder = stage.builder().on_unavailable(OnUnavailable::Allow);
    let limiter = builder
        .outage_fraction(NonZeroU32::new(4).unwrap())
        .await
        .unwrap();
    set_resource_limits(&limiter, &["rpm:100/day"]).await;
    set_budget(&limiter, &["rpm:40/day"]).await;
    let call = |tokens| {
        let acquire = limiter.acquire("user-1", GPT).consume("rpm", 1);
        acquire.and(BUDGET).consume("rpm", tokens)
    };
    call(1).await.unwrap().rollback().await.unwrap();
    stage.wire.always(Fault::LostRequest);
    let local = |lease: &zae_limiter::Lease| assert_eq!(lease.admission(), Admission::Local);
    // A quarter of 40 and of 100.
    let mut lease = call(6).await.unwrap();
    local(&lease);
    lease.on(BUDGET).adjust("rpm", 1);
    lease.on(GPT).consume("rpm", 3).await.unwrap();
    lease.commit().await.unwrap();
    let refusal = exceeded(call(4).await.unwrap_err());
    assert_eq!(refused(&refusal), [("user-1", BUDGET, "rpm")]);
    let given_back = call(3).await.unwrap();
    local(&given_back);
    given_back.rollback().await.unwrap();
    let rest = limiter.acquire("user-1", GPT).consume("rpm", 21);
    let rest = rest.and(BUDGET).consume("rpm", 3).await.unwrap();
    local(&rest);
    rest.commit().await.unwrap();
    for resource in [GPT, BUDGET] {
        exceeded(
            limiter
                .acquire("user-1", resource)
                .consume("rpm", 1)
                .await
                .unwrap_err(),
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_takes_more_of_one_resource_under_the_limits_that_came_with_the_call() {
    let stage = Stage::new();
    let limiter = stage.limiter(&[]).await;
    let trial = |texts: &[&str]| limits(texts);
    let acquire = limiter
        .acquire("user-1", GPT)
        .limits(trial(&["rpd:5/day"]))
        .consume("rpd", 1);
    let acquire = acquire
        .and(BUDGET)
        .limits(trial(&["usd:20/day"]))
        .consume("usd", 12);
    let mut lease = acquire.await.unwrap();
    stage.wire.calls();
    lease.consume("usd", 8).await.unwrap();
    assert_eq!(stage.wire.operations(), ["UpdateItem"], "the other is left alone");
    let refusal = exceeded(lease.consume("usd", 1).await.unwrap_err());
    assert_eq!(refused(&refusal), [("user-1", BUDGET, "usd")]);
    assert_eq!(lease.consumed_on(BUDGET).unwrap()["usd"], 20);
    assert_eq!(lease.consumed()["rpd"], 1);
    lease.commit().await.unwrap();
}

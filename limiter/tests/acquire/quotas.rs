//! Quotas: an amount per period, on one table with several clients.

use zae_limiter::{Error, NewEntity, RetryAfter, Timestamp};

use crate::acquire::support::*;

/// The stage begins at noon on January 31, 2026.
const MIDNIGHT: u64 = 12 * 3600;

fn at(text: &str) -> i64 {
    Timestamp::parse(text).unwrap().millis()
}

#[tokio::test(start_paused = true)]
async fn a_quota_is_used_up_and_comes_back_whole_when_its_period_ends() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["spend:10 per month"]).await;
    take(&limiter, "user-1", "spend", 7).await.unwrap();
    let refusal = exceeded(take(&limiter, "user-1", "spend", 4).await.unwrap_err());
    let status = refusal.primary_limit().unwrap();
    assert_eq!((status.available, status.requested), (3, 4));
    let reset = status.reset.unwrap();
    assert_eq!(reset.at.to_string(), "2026-02-01T00:00:00Z");
    assert!(reset.after <= secs(MIDNIGHT));
    let RetryAfter::After(wait) = refusal.retry_after() else {
        panic!("{:?}", refusal.retry_after());
    };
    assert!(wait >= reset.after && wait <= reset.after + secs(3), "{wait:?}");
    take(&limiter, "user-1", "spend", 3).await.unwrap();
    advance(secs(MIDNIGHT)).await;
    take(&limiter, "user-1", "spend", 10).await.unwrap();
    exceeded(take(&limiter, "user-1", "spend", 1).await.unwrap_err());
    let bucket = stage.bucket("user-1").await.unwrap();
    assert_eq!(bucket.number("q_spend_us"), Some(10_000));
    assert_eq!(bucket.number("q_spend_pe"), Some(at("2026-03-01T00:00:00Z")));
    assert_eq!(
        bucket.number("q_spend_tc"),
        Some(20_000),
        "all that was ever used"
    );
}

#[tokio::test(start_paused = true)]
async fn all_kinds_of_limits_are_taken_in_one_write_or_none_is() {
    let stage = Stage::new();
    let limiter = stage
        .limiter(&["rpm:100", "spend:10 per day", "parallel:2 at once for 60s"])
        .await;
    let call = |spend| {
        let call = limiter.acquire("user-1", GPT).consume("rpm", 1);
        call.consume("spend", spend).consume("parallel", 1)
    };
    let first = call(1).await.unwrap();
    stage.wire.calls();
    let second = call(1).await.unwrap();
    assert_eq!(stage.wire.calls().len(), 1, "one request");
    // The third finds no permit, and takes nothing of the others.
    exceeded(call(1).await.unwrap_err());
    first.commit().await.unwrap();
    exceeded(call(9).await.unwrap_err());
    assert_eq!(available(&limiter, "user-1", "rpm").await, 98);
    assert_eq!(available(&limiter, "user-1", "spend").await, 8);
    assert_eq!(available(&limiter, "user-1", "parallel").await, 1);
    second.rollback().await.unwrap();
    assert_eq!(available(&limiter, "user-1", "spend").await, 9);
    assert_eq!(available(&limiter, "user-1", "parallel").await, 2);
}

#[tokio::test(start_paused = true)]
async fn a_refund_reaches_only_the_period_that_it_was_taken_from() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["spend:10 per day"]).await;
    let before = lease(&limiter, "user-1", "spend", 6).await.unwrap();
    let mut costs_more = lease(&limiter, "user-1", "spend", 1).await.unwrap();
    advance(secs(MIDNIGHT)).await;
    take(&limiter, "user-1", "spend", 5).await.unwrap();
    before.rollback().await.unwrap();
    assert_eq!(
        available(&limiter, "user-1", "spend").await,
        5,
        "not credited to today"
    );
    costs_more.adjust("spend", 2);
    costs_more.commit().await.unwrap();
    assert_eq!(
        available(&limiter, "user-1", "spend").await,
        3,
        "a cost counts today"
    );
    let within = lease(&limiter, "user-1", "spend", 3).await.unwrap();
    within.rollback().await.unwrap();
    assert_eq!(available(&limiter, "user-1", "spend").await, 3);
}

#[tokio::test(start_paused = true)]
async fn an_adjustment_may_use_more_than_the_quota_but_no_call_is_admitted_after_it() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["spend:10 per day"]).await;
    let mut call = lease(&limiter, "user-1", "spend", 5).await.unwrap();
    call.adjust("spend", 20);
    call.commit().await.unwrap();
    assert_eq!(available(&limiter, "user-1", "spend").await, -15);
    exceeded(take(&limiter, "user-1", "spend", 1).await.unwrap_err());
    advance(secs(MIDNIGHT)).await;
    assert_eq!(
        available(&limiter, "user-1", "spend").await,
        10,
        "a period owes nothing to the next"
    );
}

#[tokio::test(start_paused = true)]
async fn a_period_from_first_use_begins_with_an_admitted_call_only() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["burst:5 per 1h from first use"]).await;
    exceeded(take(&limiter, "user-1", "burst", 6).await.unwrap_err());
    advance(secs(1800)).await;
    take(&limiter, "user-1", "burst", 5).await.unwrap();
    advance(secs(3599)).await;
    exceeded(take(&limiter, "user-1", "burst", 1).await.unwrap_err());
    advance(secs(1)).await;
    take(&limiter, "user-1", "burst", 1).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_behind_does_not_open_the_old_period_again() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["spend:10 per day"]).await;
    let behind = stage
        .builder_on(&stage.another_wire())
        .clock(stage.clock.off_by(-1_000))
        .default_limits(limits(&["spend:10 per day"]))
        .await
        .unwrap();
    advance(secs(MIDNIGHT)).await;
    take(&limiter, "user-1", "spend", 10).await.unwrap();
    // For this client it is a second before midnight.
    exceeded(take(&behind, "user-1", "spend", 1).await.unwrap_err());
    advance(secs(2)).await;
    exceeded(take(&behind, "user-1", "spend", 1).await.unwrap_err());
}

#[tokio::test(start_paused = true)]
async fn a_changed_amount_applies_at_once_and_what_was_used_stays_used() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["rpm:1"]).await;
    set_limits(&limiter, "user-1", &["spend:10 per month"]).await;
    take(&limiter, "user-1", "spend", 8).await.unwrap();
    set_limits(&limiter, "user-1", &["spend:20 per month"]).await;
    take(&limiter, "user-1", "spend", 12).await.unwrap();
    exceeded(take(&limiter, "user-1", "spend", 1).await.unwrap_err());
    // A shorter period counts what was used of the longer one, and ends sooner.
    set_limits(&limiter, "user-1", &["spend:25 per day"]).await;
    take(&limiter, "user-1", "spend", 5).await.unwrap();
    exceeded(take(&limiter, "user-1", "spend", 1).await.unwrap_err());
    let bucket = stage.bucket("user-1").await.unwrap();
    assert_eq!(bucket.number("q_spend_pe"), Some(at("2026-02-01T00:00:00Z")));
}

#[tokio::test(start_paused = true)]
async fn a_bucket_does_not_expire_while_a_period_is_used() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["spend:10 per year"]).await;
    take(&limiter, "user-1", "spend", 1).await.unwrap();
    let bucket = stage.bucket("user-1").await.unwrap();
    let ends = bucket.number("q_spend_pe").unwrap() / 1_000;
    assert!(bucket.number("ttl").unwrap() > ends);
}

#[tokio::test(start_paused = true)]
async fn a_lost_response_neither_counts_twice_nor_opens_a_period_twice() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["spend:10 per day"]).await;
    for _ in 0..5 {
        stage.wire.plan("UpdateItem", [Fault::LostResponse]);
        take(&limiter, "user-1", "spend", 1).await.unwrap();
    }
    limiter.settled().await;
    assert_eq!(available(&limiter, "user-1", "spend").await, 5);
    advance(secs(MIDNIGHT)).await;
    stage.wire.plan("UpdateItem", [Fault::LostResponse]);
    take(&limiter, "user-1", "spend", 4).await.unwrap();
    assert_eq!(available(&limiter, "user-1", "spend").await, 6);
}

#[tokio::test(start_paused = true)]
async fn a_parent_counts_a_quota_of_its_own() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["spend:100 per month"]).await;
    create(&limiter, NewEntity::new("team")).await;
    create(&limiter, child("user-1", "team")).await;
    create(&limiter, child("user-2", "team")).await;
    set_limits(&limiter, "team", &["spend:10 per month"]).await;
    take(&limiter, "user-1", "spend", 6).await.unwrap();
    let refusal = exceeded(take(&limiter, "user-2", "spend", 5).await.unwrap_err());
    let names: Vec<_> = refusal
        .refused_limits()
        .map(|status| status.entity.to_string())
        .collect();
    assert_eq!(names, ["team"]);
    take(&limiter, "user-2", "spend", 4).await.unwrap();
    assert_eq!(available(&limiter, "user-2", "spend").await, 96);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_is_refused_at_once_if_the_period_ends_too_late() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["spend:1 per hour"]).await;
    take(&limiter, "user-1", "spend", 1).await.unwrap();
    let started = tokio::time::Instant::now();
    let call = limiter.acquire("user-1", GPT).consume("spend", 1);
    exceeded(call.wait_up_to(secs(60)).await.unwrap_err());
    assert_eq!(started.elapsed(), secs(0));
    let call = limiter.acquire("user-1", GPT).consume("spend", 1);
    call.wait_up_to(secs(3700)).await.unwrap().commit().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_limit_of_a_kind_that_this_version_does_not_know_is_refused() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["rpm:1"]).await;
    set_limits(&limiter, "user-1", &["spend:10 per month"]).await;
    let client = stage.client();
    let update = client.update_item().table_name(TABLE);
    let key = |text: &str| aws_sdk_dynamodb::types::AttributeValue::S(text.to_owned());
    update
        .key("PK", key("ENTITY#user-1"))
        .key("SK", key("#CONFIG#gpt-4"))
        .update_expression("SET limits_format = :v")
        .expression_attribute_values(
            ":v",
            aws_sdk_dynamodb::types::AttributeValue::N("1000".to_owned()),
        )
        .send()
        .await
        .unwrap();
    let newcomer = stage.limiter(&["rpm:1"]).await;
    let error = take(&newcomer, "user-1", "spend", 1).await.unwrap_err();
    assert!(matches!(error, Error::Internal(_)), "{error}");
    assert!(
        error.to_string().contains("use zae-limiter 0.1.0 or later"),
        "{error}"
    );
}

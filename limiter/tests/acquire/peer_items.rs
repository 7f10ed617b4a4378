//! Buckets that the Python peer has written, or left behind.

use aws_sdk_dynamodb::types::AttributeValue;
use zae_limiter::Clock;
use zae_limiter::error::Internal;

use crate::acquire::support::*;

/// A bucket with one limit as the peer writes it, without anything of ours.
async fn put_bucket(stage: &Stage, tokens: i64, refilled_before: i64, extra: &[(&str, i64)]) {
    let number = |value: i64| AttributeValue::N(value.to_string());
    let text = |value: &str| AttributeValue::S(value.to_owned());
    let client = stage.client();
    let mut put = client
        .put_item()
        .table_name(TABLE)
        .item("PK", text("ENTITY#user-1"))
        .item("SK", text(&format!("#BUCKET#{GPT}")))
        .item("GSI2PK", text(&format!("RESOURCE#{GPT}")))
        .item("GSI2SK", text("BUCKET#user-1"))
        .item("entity_id", text("user-1"))
        .item("resource", text(GPT))
        .item("cascade", AttributeValue::Bool(false))
        .item("rf", number(stage.clock.now().millis() - refilled_before))
        .item("b_rpm_tk", number(tokens))
        .item("b_rpm_cp", number(60_000))
        .item("b_rpm_bx", number(60_000))
        .item("b_rpm_ra", number(60_000))
        .item("b_rpm_rp", number(60_000))
        .item("b_rpm_tc", number(5_000));
    for (name, value) in extra {
        put = put.item(*name, number(*value));
    }
    put.send().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_bucket_of_the_peer_is_taken_over_with_its_level() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["rpm:60"]).await;
    put_bucket(&stage, 10_000, 5_000, &[]).await;
    assert_eq!(drain(&limiter, "user-1", "rpm").await, 15);
    let bucket = stage.bucket("user-1").await.unwrap();
    assert!(bucket.0.contains_key("cf"));
    assert_eq!(bucket.consumed("rpm"), 20_000, "the count goes on");
}

#[tokio::test(start_paused = true)]
async fn a_stub_that_the_peer_left_is_made_a_bucket() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["rpm:60"]).await;
    // What its adjustment of an expired bucket leaves: no parameters, no time of the last refill.
    stage
        .tamper("user-1", &[("b_rpm_tk", Some(-7_000)), ("b_rpm_tc", Some(7_000))])
        .await;
    assert_eq!(drain(&limiter, "user-1", "rpm").await, 60);
    let bucket = stage.bucket("user-1").await.unwrap();
    assert_eq!(bucket.consumed("rpm"), 67_000, "what it counted stays counted");
    assert_eq!(bucket.0["entity_id"].as_s().unwrap(), "user-1");
}

#[tokio::test(start_paused = true)]
async fn refunds_on_a_stub_create_nothing() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["rpm:60"]).await;
    let held = lease(&limiter, "user-1", "rpm", 10).await.unwrap();
    stage.delete_bucket("user-1").await;
    stage
        .tamper("user-1", &[("b_rpm_tk", Some(-7_000)), ("b_rpm_tc", Some(7_000))])
        .await;
    held.rollback().await.unwrap();
    let bucket = stage.bucket("user-1").await.unwrap();
    assert_eq!((bucket.number("rf"), bucket.level("rpm")), (None, -7_000));
}

#[tokio::test(start_paused = true)]
async fn a_limit_without_parameters_is_written_anew() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["rpm:60", "tpm:1000"]).await;
    // The slow path of the peer adds to a limit that it has just heard of: no parameters.
    let zero = [("b_tpm_tk", 0), ("b_tpm_tc", 0)];
    put_bucket(&stage, 10_000, 0, &zero).await;
    take(&limiter, "user-1", "tpm", 1000).await.unwrap();
    exceeded(take(&limiter, "user-1", "tpm", 1).await.unwrap_err());
    assert_eq!(drain(&limiter, "user-1", "rpm").await, 10);
}

#[tokio::test(start_paused = true)]
async fn a_limit_that_a_bucket_of_the_peer_lacks_starts_full() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["rpm:60", "tpm:1000"]).await;
    put_bucket(&stage, 10_000, 0, &[]).await;
    let call = || {
        limiter
            .acquire("user-1", GPT)
            .consume("rpm", 1)
            .consume("tpm", 600)
    };
    call().await.unwrap().commit().await.unwrap();
    let refused = exceeded(call().await.unwrap_err());
    let violated: Vec<_> = refused
        .refused_limits()
        .map(|one| one.limit.name().as_str())
        .collect();
    assert_eq!(violated, ["tpm"]);
}

#[tokio::test(start_paused = true)]
async fn a_level_above_the_burst_is_cut_to_it() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["rpm:60"]).await;
    // The peer's refunds are not bounded.
    put_bucket(&stage, 1_009_000, 0, &[]).await;
    assert_eq!(drain(&limiter, "user-1", "rpm").await, 60);
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_changes_the_period_under_us_gives_nothing_away() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["rpd:100/day"]).await;
    take(&limiter, "user-1", "rpd", 100).await.unwrap();
    advance(millis(863_999)).await;
    // A remainder is kept that is almost a token of a day.
    exceeded(take(&limiter, "user-1", "rpd", 2).await.unwrap_err());
    stage
        .tamper(
            "user-1",
            &[("b_rpd_rp", Some(1_000)), ("b_rpd_rr", Some(86_399_999))],
        )
        .await;
    let other = stage.limiter(&["rpd:100/day"]).await;
    let taken = drain(&other, "user-1", "rpd").await;
    assert!(
        taken <= 100,
        "a burst at the new rate, not what the old remainder would give: {taken}"
    );
    let bucket = stage.bucket("user-1").await.unwrap();
    assert_eq!(
        bucket.number("b_rpd_rp"),
        Some(86_400_000),
        "and the configured period is back"
    );
    assert_eq!(bucket.number("b_rpd_rr"), None);
}

#[tokio::test(start_paused = true)]
async fn parameters_that_the_peer_changed_without_the_configuration_are_set_right() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["rpd:100/day"]).await;
    take(&limiter, "user-1", "rpd", 10).await.unwrap();
    stage
        .tamper(
            "user-1",
            &[("b_rpd_bx", Some(1_000_000)), ("b_rpd_ra", Some(1_000_000))],
        )
        .await;
    advance(secs(61)).await;
    take(&limiter, "user-1", "rpd", 1).await.unwrap();
    take(&limiter, "user-1", "rpd", 1).await.unwrap();
    let bucket = stage.bucket("user-1").await.unwrap();
    assert_eq!(
        (bucket.number("b_rpd_bx"), bucket.number("b_rpd_ra")),
        (Some(100_000), Some(100_000))
    );
    assert_eq!(drain(&limiter, "user-1", "rpd").await, 88);
}

#[tokio::test(start_paused = true)]
async fn what_is_unknown_on_an_item_stays() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["rpm:60"]).await;
    put_bucket(&stage, 10_000, 0, &[("something_new", 42)]).await;
    take(&limiter, "user-1", "rpm", 1).await.unwrap();
    advance(secs(30)).await;
    take(&limiter, "user-1", "rpm", 20).await.unwrap();
    assert_eq!(
        stage.bucket("user-1").await.unwrap().number("something_new"),
        Some(42)
    );
}

#[tokio::test(start_paused = true)]
async fn an_item_that_is_no_bucket_is_an_error_and_stays_untouched() {
    let stage = Stage::new();
    let builder = stage.builder().default_limits(limits(&["rpm:60"]));
    let limiter = builder
        .on_unavailable(zae_limiter::OnUnavailable::Allow)
        .await
        .unwrap();
    put_bucket(&stage, 10_000, 0, &[]).await;
    stage.tamper("user-1", &[("rf", Some(-5))]).await;
    let before = stage.bucket("user-1").await;
    let error = take(&limiter, "user-1", "rpm", 1).await.unwrap_err();
    assert!(
        matches!(error, zae_limiter::Error::Internal(Internal::Malformed(_))),
        "{error:?}"
    );
    assert_eq!(stage.bucket("user-1").await, before);
}

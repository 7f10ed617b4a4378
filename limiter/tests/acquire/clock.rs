//! Clocks that are wrong.

use zae_limiter::{Clock, ManualClock, RateLimiter, Timestamp};

use crate::acquire::support::*;

#[tokio::test(start_paused = true)]
async fn a_wrong_clock_is_corrected_by_the_server_s_date_and_reported() {
    let stage = Stage::new();
    let right = stage.limiter(&["rpm:60"]).await;
    take(&right, "user-1", "rpm", 60).await.unwrap();
    // Two minutes ahead: by that clock the bucket would be full again.
    let wire = stage.another_wire();
    wire.date("Sat, 31 Jan 2026 12:00:00 GMT");
    let wrong = stage
        .builder_on(&wire)
        .clock(stage.clock.off_by(120_000))
        .default_limits(limits(&["rpm:60"]))
        .await
        .unwrap();
    // Its very first call reads the bucket, and the response to that shows the time already.
    exceeded(take(&wrong, "user-1", "rpm", 5).await.unwrap_err());
    let offset = wrong.stats().clock_offset_ms;
    assert!((-120_000..=-119_000).contains(&offset), "{offset}");
    assert_eq!(stage.bucket("user-1").await.unwrap().consumed("rpm"), 60_000);
    assert_eq!(right.stats().clock_offset_ms, 0);
}

#[tokio::test(start_paused = true)]
async fn a_difference_of_two_seconds_is_left_alone() {
    for off_by in [-2_000, -500, 0, 500, 2_000] {
        let stage = Stage::new();
        stage.wire.date("Sat, 31 Jan 2026 12:00:00 GMT");
        let builder = stage.builder().clock(stage.clock.off_by(off_by));
        let limiter = builder.default_limits(limits(&["rpm:60"])).await.unwrap();
        take(&limiter, "user-1", "rpm", 1).await.unwrap();
        assert_eq!(limiter.stats().clock_offset_ms, 0, "{off_by}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_time_of_refill_never_goes_back() {
    let stage = Stage::new();
    let ahead = stage
        .builder_on(&stage.another_wire())
        .clock(stage.clock.off_by(1_500))
        .default_limits(limits(&["rps:10/sec"]))
        .await
        .unwrap();
    let behind = stage.limiter(&["rps:10/sec"]).await;
    let mut latest = 0;
    for round in 0..40 {
        let limiter = if round % 2 == 0 { &ahead } else { &behind };
        let _ = take(limiter, "user-1", "rps", 1 + round % 5).await;
        let refilled_at = stage.bucket("user-1").await.unwrap().number("rf").unwrap();
        assert!(refilled_at >= latest, "round {round}");
        latest = refilled_at;
        advance(millis(130)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_spread_of_clocks_costs_at_most_the_rate_times_the_spread() {
    let stage = Stage::new();
    let ahead = stage
        .builder_on(&stage.another_wire())
        .clock(stage.clock.off_by(500))
        .default_limits(limits(&["rps:10/sec"]))
        .await
        .unwrap();
    let behind = stage.limiter(&["rps:10/sec"]).await;
    let mut admitted = 0;
    for _ in 0..200 {
        admitted += drain(&ahead, "user-1", "rps").await + drain(&behind, "user-1", "rps").await;
        advance(millis(50)).await;
    }
    assert!(admitted <= 10 + 100 + 5, "{admitted}");
    assert!(admitted >= 10 + 99, "{admitted}");
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_back_gives_nothing_away_and_blocks_nothing_for_good() {
    let stage = Stage::new();
    let clock = std::sync::Arc::new(ManualClock::at(Timestamp::parse("2026-01-31T12:00:00Z").unwrap()));
    let limiter = stage
        .builder()
        .clock(clock.clone())
        .default_limits(limits(&["rpm:60"]))
        .await
        .unwrap();
    take(&limiter, "user-1", "rpm", 60).await.unwrap();
    clock.set(Timestamp::parse("2026-01-31T11:00:00Z").unwrap());
    exceeded(take(&limiter, "user-1", "rpm", 1).await.unwrap_err());
    clock.advance(secs(3600 + 30));
    take(&limiter, "user-1", "rpm", 30).await.unwrap();
    exceeded(take(&limiter, "user-1", "rpm", 1).await.unwrap_err());
    assert_eq!(clock.now().to_string(), "2026-01-31T12:00:30Z");
}

#[tokio::test(start_paused = true)]
async fn a_time_of_refill_that_somebody_set_back_is_noticed() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["rpm:60"]).await;
    take(&limiter, "user-1", "rpm", 60).await.unwrap();
    advance(secs(5)).await;
    take(&limiter, "user-1", "rpm", 5).await.unwrap();
    let refilled_at = stage.bucket("user-1").await.unwrap().number("rf").unwrap();
    stage.tamper("user-1", &[("rf", Some(refilled_at - 3_000))]).await;
    advance(secs(10)).await;
    take(&limiter, "user-1", "rpm", 5).await.unwrap();
    assert_eq!(limiter.stats().refill_went_back, 1);
}

/// A limiter whose clock three responses have confirmed, and the date they carry.
async fn confirmed(stage: &Stage) -> RateLimiter {
    stage.wire.date("Sat, 31 Jan 2026 12:00:00 GMT");
    let limiter = stage.limiter(&["rpm:60"]).await;
    for _ in 0..4 {
        take(&limiter, "other", "rpm", 1).await.unwrap();
    }
    limiter
}

#[tokio::test(start_paused = true)]
async fn a_bucket_that_a_wrong_clock_left_in_the_future_is_set_back_and_reported() {
    let stage = Stage::new();
    let right = confirmed(&stage).await;
    // Two minutes ahead. It knows no better until it has heard three responses; here it hears none with a date.
    let wrong = stage
        .builder_on(&stage.another_wire())
        .clock(stage.clock.off_by(120_000))
        .default_limits(limits(&["rpm:60"]))
        .await
        .unwrap();
    take(&wrong, "user-1", "rpm", 60).await.unwrap();
    let now = stage.clock.now().millis();
    let refilled_at = stage.bucket("user-1").await.unwrap().number("rf").unwrap();
    assert_eq!(refilled_at - now, 120_000);

    exceeded(take(&right, "user-1", "rpm", 1).await.unwrap_err());
    right.settled().await;
    let refilled_at = stage.bucket("user-1").await.unwrap().number("rf").unwrap();
    assert!(refilled_at - now <= 2_000, "{refilled_at}");
    assert_eq!(right.stats().refills_set_back, 1);
    assert_eq!(
        stage.bucket("user-1").await.unwrap().consumed("rpm"),
        60_000,
        "nothing is given back"
    );

    // One token a second, from then on.
    advance(secs(12)).await;
    take(&right, "user-1", "rpm", 10).await.unwrap();
    exceeded(take(&right, "user-1", "rpm", 3).await.unwrap_err());
    assert_eq!(right.stats().refills_set_back, 1);
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_was_behind_and_is_set_right_neither_refills_nor_freezes_a_bucket() {
    let stage = Stage::new();
    let right = confirmed(&stage).await;
    let clock = std::sync::Arc::new(ManualClock::at(stage.clock.now().plus_millis(-120_000)));
    let wire = stage.another_wire();
    wire.date("Sat, 31 Jan 2026 12:00:00 GMT");
    let set_right = stage
        .builder_on(&wire)
        .clock(clock.clone())
        .default_limits(limits(&["rpm:60"]))
        .await
        .unwrap();
    for _ in 0..4 {
        take(&set_right, "another", "rpm", 1).await.unwrap();
    }
    let offset = set_right.stats().clock_offset_ms;
    assert!((119_000..=121_000).contains(&offset), "{offset}");
    take(&set_right, "user-1", "rpm", 60).await.unwrap();
    clock.set(stage.clock.now());
    exceeded(take(&set_right, "user-1", "rpm", 3).await.unwrap_err());
    let refilled_at = stage.bucket("user-1").await.unwrap().number("rf").unwrap();
    assert!(refilled_at - stage.clock.now().millis() <= 2_000);
    advance(secs(6)).await;
    take(&right, "user-1", "rpm", 4).await.unwrap();
}

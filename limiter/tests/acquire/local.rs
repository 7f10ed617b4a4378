//! A process's own part of the limits, while the table cannot be reached.

use std::num::NonZeroU32;

use tokio::time::Instant;
use zae_limiter::{Admission, Error, NewEntity, OnUnavailable, RateLimiter, RetryAfter};

use crate::acquire::support::*;

const DAY: [&str; 1] = ["rpd:100/day"];

/// One of four processes, with a bucket that it has seen and taken nothing from, and an outage.
async fn cut_off(stage: &Stage, defaults: &[&str]) -> RateLimiter {
    let limiter = one_of_four(stage, defaults).await;
    see(&limiter, "user-1").await;
    stage.wire.always(Fault::LostRequest);
    limiter
}

/// Takes a token and returns it.
async fn see(limiter: &RateLimiter, entity: &str) {
    let lease = lease(limiter, entity, "rpd", 1).await.unwrap();
    lease.rollback().await.unwrap();
}

async fn one_of_four(stage: &Stage, defaults: &[&str]) -> RateLimiter {
    stage
        .builder()
        .default_limits(limits(defaults))
        .on_unavailable(OnUnavailable::Allow)
        .outage_fraction(NonZeroU32::new(4).unwrap())
        .await
        .unwrap()
}

async fn local(limiter: &RateLimiter, tokens: u64) -> Result<(), Error> {
    let lease = lease(limiter, "user-1", "rpd", tokens).await?;
    assert_eq!(lease.admission(), Admission::Local);
    lease.commit().await
}

#[tokio::test(start_paused = true)]
async fn a_process_admits_its_part_and_no_more() {
    let stage = Stage::new();
    let limiter = cut_off(&stage, &DAY).await;
    for _ in 0..25 {
        local(&limiter, 1).await.unwrap();
    }
    let refused = exceeded(local(&limiter, 1).await.unwrap_err());
    let RetryAfter::After(wait) = refused.retry_after() else {
        panic!("{refused:?}")
    };
    assert!(
        wait > secs(3_000),
        "a quarter of 100 a day is one in 3,456 seconds: {wait:?}"
    );
    assert_eq!(limiter.stats().refused, 1);
    advance(wait).await;
    local(&limiter, 1).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn nothing_of_it_is_counted_in_the_table() {
    let stage = Stage::new();
    let limiter = cut_off(&stage, &DAY).await;
    let mut kept = lease(&limiter, "user-1", "rpd", 3).await.unwrap();
    kept.adjust("rpd", 2);
    stage.wire.heal();
    kept.commit().await.unwrap();
    let counted = lease(&limiter, "user-1", "rpd", 1).await.unwrap();
    assert_eq!(counted.admission(), Admission::Counted, "the table is back");
    counted.commit().await.unwrap();
    limiter.settled().await;
    assert_eq!(stage.bucket("user-1").await.unwrap().consumed("rpd"), 1_000);
}

#[tokio::test(start_paused = true)]
async fn what_is_given_back_or_corrected_is_so_in_the_own_part() {
    let stage = Stage::new();
    let limiter = cut_off(&stage, &DAY).await;
    lease(&limiter, "user-1", "rpd", 25)
        .await
        .unwrap()
        .rollback()
        .await
        .unwrap();
    drop(lease(&limiter, "user-1", "rpd", 25).await.unwrap());
    let mut less = lease(&limiter, "user-1", "rpd", 20).await.unwrap();
    less.adjust("rpd", -10);
    less.commit().await.unwrap();
    let mut more = lease(&limiter, "user-1", "rpd", 5).await.unwrap();
    more.consume("rpd", 5).await.unwrap();
    exceeded(more.consume("rpd", 6).await.unwrap_err());
    more.adjust("rpd", 3);
    more.commit().await.unwrap();
    local(&limiter, 2).await.unwrap();
    exceeded(local(&limiter, 1).await.unwrap_err());
}

#[tokio::test(start_paused = true)]
async fn calls_with_limits_of_their_own_do_not_give_the_part_back() {
    let stage = Stage::new();
    let limiter = cut_off(&stage, &DAY).await;
    local(&limiter, 25).await.unwrap();
    for _ in 0..2 {
        let own = limiter.acquire("user-1", GPT).limits(limits(&["burst:100/day"]));
        own.consume("burst", 1).await.unwrap().commit().await.unwrap();
        exceeded(local(&limiter, 1).await.unwrap_err());
    }
}

#[tokio::test(start_paused = true)]
async fn parents_have_parts_too() {
    let stage = Stage::new();
    let limiter = one_of_four(&stage, &DAY).await;
    create(&limiter, NewEntity::new("team")).await;
    for user in ["user-1", "user-2"] {
        create(&limiter, child(user, "team")).await;
    }
    for user in ["user-1", "user-2"] {
        see(&limiter, user).await;
    }
    limiter.settled().await;
    stage.wire.always(Fault::LostRequest);
    lease(&limiter, "user-1", "rpd", 20)
        .await
        .unwrap()
        .commit()
        .await
        .unwrap();
    let refused = exceeded(lease(&limiter, "user-2", "rpd", 6).await.unwrap_err());
    let short: Vec<_> = refused
        .refused_limits()
        .map(|status| status.entity.as_str().to_owned())
        .collect();
    assert_eq!(short, ["team"]);
    lease(&limiter, "user-2", "rpd", 5)
        .await
        .unwrap()
        .commit()
        .await
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn without_known_limits_or_against_the_policy_nothing_is_admitted() {
    let stage = Stage::new();
    let limiter = one_of_four(&stage, &[]).await;
    stage.wire.always(Fault::LostRequest);
    let unknown = local(&limiter, 1).await.unwrap_err();
    assert!(unknown.is_unavailable(), "{unknown}");
    let limiter = cut_off(&Stage::new(), &DAY).await;
    let call = limiter.acquire("user-1", GPT).consume("rpd", 1);
    let blocked = call.on_unavailable(OnUnavailable::Block).await.unwrap_err();
    assert!(blocked.is_unavailable(), "{blocked}");
    let never = exceeded(local(&limiter, 26).await.unwrap_err());
    assert_eq!(never.retry_after(), RetryAfter::Never);
}

#[tokio::test(start_paused = true)]
async fn more_of_a_counted_lease_is_bounded_by_it() {
    let stage = Stage::new();
    let limiter = one_of_four(&stage, &DAY).await;
    let mut lease = lease(&limiter, "user-1", "rpd", 10).await.unwrap();
    stage.wire.always(Fault::LostRequest);
    lease.consume("rpd", 15).await.unwrap();
    assert_eq!(lease.admission(), Admission::PartlyCounted);
    exceeded(lease.consume("rpd", 1).await.unwrap_err());
    stage.wire.heal();
    lease.commit().await.unwrap();
    limiter.settled().await;
    assert_eq!(stage.bucket("user-1").await.unwrap().consumed("rpd"), 10_000);
}

#[tokio::test(start_paused = true)]
async fn what_the_table_admitted_counts_for_the_part() {
    for (counted, left) in [(20, 5), (40, 0), (100, 0)] {
        let stage = Stage::new();
        let limiter = one_of_four(&stage, &DAY).await;
        take(&limiter, "user-1", "rpd", counted).await.unwrap();
        stage.wire.always(Fault::LostRequest);
        for _ in 0..left {
            local(&limiter, 1).await.unwrap();
        }
        exceeded(local(&limiter, 1).await.unwrap_err());
        // However much other processes have left to it, some of its part is there again after two days.
        advance(secs(2 * 86_400)).await;
        local(&limiter, 1).await.unwrap();
    }
}

/// The table responds and is unavailable in turns, and as many calls are made as are admitted.
#[tokio::test(start_paused = true)]
async fn while_the_table_comes_and_goes_no_more_is_admitted_than_the_limit_allows() {
    for turn in [500, 2_000, 10_000, 60_000] {
        let stage = Stage::new();
        let limiter = stage
            .builder()
            .default_limits(limits(&["rpm:600"]))
            .on_unavailable(OnUnavailable::Allow)
            .outage_fraction(NonZeroU32::MIN)
            .await
            .unwrap();
        let start = Instant::now();
        let (mut counted, mut uncounted) = (0_u128, 0_u128);
        while start.elapsed() < secs(600) {
            if start.elapsed().as_millis() / turn % 2 == 1 {
                stage.wire.always(Fault::ConnectionRefused);
            } else {
                stage.wire.heal();
            }
            while let Ok(lease) = lease(&limiter, "user-1", "rpm", 1).await {
                match lease.admission() {
                    Admission::Counted => counted += 1,
                    _ => uncounted += 1,
                }
                lease.commit().await.unwrap();
            }
            tokio::time::sleep(millis(100)).await;
        }
        let admitted = counted + uncounted;
        // Ten a second; and what the table has regained by the end of an outage, at most its burst.
        let most = 600 + start.elapsed().as_millis() / 100 + (turn / 100).min(600);
        assert!(admitted <= most, "{turn} ms: {admitted} of {most}");
        assert!(
            uncounted > 0 && admitted * 100 >= 6_600 * 95,
            "{turn} ms: {counted} and {uncounted}"
        );
    }
}

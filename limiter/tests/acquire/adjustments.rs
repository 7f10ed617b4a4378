//! Correcting what was used.

use zae_limiter::{Error, Lease, NewEntity};

use crate::acquire::leases::with;
use crate::acquire::support::*;

#[tokio::test(start_paused = true)]
async fn what_a_body_has_made_is_not_lost_because_its_adjustment_cannot_be_written_yet() {
    let (stage, limiter) = with(&["tpm:1000"]).await;
    let wire = stage.wire.clone();
    let response = limiter
        .acquire("user-1", GPT)
        .consume("tpm", 500)
        .run(async |lease: &mut Lease| {
            lease.adjust("tpm", 100);
            wire.always(Fault::LostRequest);
            Ok::<_, Error>("paid for")
        })
        .await;
    assert_eq!(response.unwrap(), "paid for");
    stage.wire.heal();
    limiter.settled().await;
    assert_eq!(stage.bucket("user-1").await.unwrap().consumed("tpm"), 600_000);
}

#[tokio::test(start_paused = true)]
async fn an_adjustment_may_make_debt_which_time_pays() {
    let (_stage, limiter) = with(&["tpm:1000"]).await;
    let mut held = lease(&limiter, "user-1", "tpm", 500).await.unwrap();
    held.adjust("tpm", 1500);
    assert_eq!(held.consumed().values().copied().collect::<Vec<_>>(), [2000]);
    held.commit().await.unwrap();
    assert_eq!(available(&limiter, "user-1", "tpm").await, -1000);
    advance(secs(60)).await;
    assert_eq!(available(&limiter, "user-1", "tpm").await, 0);
    exceeded(take(&limiter, "user-1", "tpm", 1).await.unwrap_err());
    advance(secs(60)).await;
    take(&limiter, "user-1", "tpm", 1000).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_adjustment_is_local_until_it_is_committed() {
    let (stage, limiter) = with(&["tpm:1000"]).await;
    let mut held = lease(&limiter, "user-1", "tpm", 500).await.unwrap();
    stage.wire.calls();
    held.adjust("tpm", 100).release("tpm", 50);
    assert_eq!(stage.wire.operations(), Vec::<String>::new());
    assert_eq!(available(&limiter, "user-1", "tpm").await, 500);
    held.rollback().await.unwrap();
    assert_eq!(
        available(&limiter, "user-1", "tpm").await,
        1000,
        "rolled back whole"
    );
}

#[tokio::test(start_paused = true)]
async fn adjusting_a_limit_that_was_not_consumed_works() {
    let (_stage, limiter) = with(&["rpm:10", "tpm:1000"]).await;
    let mut held = lease(&limiter, "user-1", "rpm", 1).await.unwrap();
    held.adjust("tpm", 300);
    held.commit().await.unwrap();
    assert_eq!(available(&limiter, "user-1", "tpm").await, 700);
}

#[tokio::test(start_paused = true)]
async fn adjusting_an_unknown_limit_is_told_by_the_commit_and_the_rest_is_booked() {
    let (_stage, limiter) = with(&["tpm:1000"]).await;
    let mut held = lease(&limiter, "user-1", "tpm", 100).await.unwrap();
    held.adjust("tmp", 300).adjust("tpm", 50);
    let error = held.commit().await.unwrap_err();
    assert!(error.to_string().contains("\"tmp\""), "{error}");
    assert_eq!(available(&limiter, "user-1", "tpm").await, 850);
}

#[tokio::test(start_paused = true)]
async fn a_lease_never_gives_back_more_than_it_took() {
    let (_stage, limiter) = with(&["tpm:1000"]).await;
    take(&limiter, "user-1", "tpm", 900).await.unwrap();
    let mut held = lease(&limiter, "user-1", "tpm", 50).await.unwrap();
    held.release("tpm", 5000);
    assert_eq!(held.consumed().values().copied().collect::<Vec<_>>(), [0]);
    held.commit().await.unwrap();
    assert_eq!(available(&limiter, "user-1", "tpm").await, 100);
}

#[tokio::test(start_paused = true)]
async fn adjustments_count_as_their_sum_whatever_they_pass_through() {
    for adjustments in [[-150, 120], [120, -150]] {
        let (stage, limiter) = with(&["tpm:1000"]).await;
        let mut held = lease(&limiter, "user-1", "tpm", 100).await.unwrap();
        for tokens in adjustments {
            held.adjust("tpm", tokens);
        }
        assert_eq!(held.consumed().values().copied().collect::<Vec<_>>(), [70]);
        held.commit().await.unwrap();
        assert_eq!(stage.bucket("user-1").await.unwrap().consumed("tpm"), 70_000);
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_given_back_before_more_is_taken_is_not_lost() {
    let (stage, limiter) = with(&["tpm:1000"]).await;
    let mut held = lease(&limiter, "user-1", "tpm", 50).await.unwrap();
    held.release("tpm", 80);
    assert_eq!(held.consumed().values().copied().collect::<Vec<_>>(), [0]);
    held.consume("tpm", 100).await.unwrap();
    assert_eq!(held.consumed().values().copied().collect::<Vec<_>>(), [70]);
    held.commit().await.unwrap();
    assert_eq!(stage.bucket("user-1").await.unwrap().consumed("tpm"), 70_000);
}

#[tokio::test(start_paused = true)]
async fn what_a_body_has_made_is_not_lost_because_its_adjustment_is_denied() {
    for fault in [Fault::Denied, Fault::NoTable, Fault::Invalid] {
        let (stage, limiter) = with(&["tpm:1000"]).await;
        let wire = stage.wire.clone();
        let call = limiter.acquire("user-1", GPT).consume("tpm", 500);
        let response = call.run(async |lease: &mut Lease| {
            lease.adjust("tpm", 100);
            wire.always(fault);
            Ok::<_, Error>("paid for")
        });
        assert_eq!(response.await.unwrap(), "paid for", "{fault:?}");
        let report = limiter.shutdown().await;
        assert_eq!(report.unwritten[0].changes[0].1, 100_000, "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_adjusts_a_limit_that_does_not_exist_is_told() {
    let (_stage, limiter) = with(&["tpm:1000"]).await;
    let call = limiter.acquire("user-1", GPT).consume("tpm", 500);
    let response = call.run(async |lease: &mut Lease| {
        lease.adjust("tmp", 100);
        Ok::<_, Error>("paid for")
    });
    let error = response.await.unwrap_err();
    assert!(error.to_string().contains("\"tmp\""), "{error}");
}

#[tokio::test(start_paused = true)]
async fn an_adjustment_of_a_limit_that_has_left_the_bucket_is_reported() {
    let (stage, limiter) = with(&["rpm:10", "tpm:1000"]).await;
    let mut held = lease(&limiter, "user-1", "rpm", 1).await.unwrap();
    set_resource_limits(&limiter, &["rpm:10"]).await;
    advance(secs(1)).await;
    let other = stage.limiter(&[]).await;
    take(&other, "user-1", "rpm", 1).await.unwrap();
    assert_eq!(stage.bucket("user-1").await.unwrap().number("b_tpm_tk"), None);
    held.adjust("tpm", 300).adjust("rpm", 2);
    held.commit().await.unwrap();
    let report = limiter.shutdown().await;
    assert_eq!(report.unwritten_total, 1);
    let [(limit, change)] = &report.unwritten[0].changes[..] else {
        panic!("{report:?}")
    };
    assert_eq!((limit.as_str(), *change), ("tpm", 300_000));
    assert_eq!(stage.bucket("user-1").await.unwrap().consumed("rpm"), 4_000);
}

#[tokio::test(start_paused = true)]
async fn a_parent_that_was_asked_nothing_is_charged_for_more_and_gives_nothing_back() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["rpm:10", "tpm:100"]).await;
    create(&limiter, NewEntity::new("team")).await;
    create(&limiter, child("user-1", "team")).await;
    let team = limits(&["tpm:100"]);
    limiter.repository().set_limits("team", GPT, team).await.unwrap();
    take(&limiter, "user-1", "tpm", 10).await.unwrap();
    for (change, consumed) in [(5, 15_000), (-5, 15_000)] {
        let mut lease = lease(&limiter, "user-1", "rpm", 1).await.unwrap();
        lease.adjust("tpm", change);
        lease.commit().await.unwrap();
        limiter.settled().await;
        assert_eq!(
            stage.bucket("team").await.unwrap().consumed("tpm"),
            consumed,
            "{change}"
        );
    }
}

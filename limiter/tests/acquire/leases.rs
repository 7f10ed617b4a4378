//! What becomes of tokens that were taken.

use zae_limiter::{Admission, Error, Lease, RateLimiter};

use crate::acquire::support::*;

pub(crate) async fn with(limits: &[&str]) -> (Stage, RateLimiter) {
    let stage = Stage::new();
    let limiter = stage.limiter(limits).await;
    (stage, limiter)
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_dropped_goes_back_and_a_committed_one_does_not() {
    let (_stage, limiter) = with(&["rpm:10"]).await;
    let held = lease(&limiter, "user-1", "rpm", 4).await.unwrap();
    assert_eq!(
        available(&limiter, "user-1", "rpm").await,
        6,
        "taken before the call goes ahead"
    );
    drop(held);
    limiter.settled().await;
    assert_eq!(available(&limiter, "user-1", "rpm").await, 10);
    take(&limiter, "user-1", "rpm", 4).await.unwrap();
    limiter.settled().await;
    assert_eq!(available(&limiter, "user-1", "rpm").await, 6);
}

#[tokio::test(start_paused = true)]
async fn a_panic_gives_the_tokens_back() {
    let (_stage, limiter) = with(&["rpm:10"]).await;
    let call = {
        let limiter = limiter.clone();
        tokio::spawn(async move {
            let _held = lease(&limiter, "user-1", "rpm", 4).await.unwrap();
            panic!("the call went wrong");
        })
    };
    assert!(call.await.unwrap_err().is_panic());
    limiter.settled().await;
    assert_eq!(available(&limiter, "user-1", "rpm").await, 10);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_call_gives_the_tokens_back() {
    let (_stage, limiter) = with(&["rpm:10"]).await;
    let call = {
        let limiter = limiter.clone();
        tokio::spawn(async move {
            let _held = lease(&limiter, "user-1", "rpm", 4).await.unwrap();
            std::future::pending::<()>().await;
        })
    };
    advance(millis(10)).await;
    assert_eq!(available(&limiter, "user-1", "rpm").await, 6);
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
    limiter.settled().await;
    assert_eq!(available(&limiter, "user-1", "rpm").await, 10);
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_leaves_in_the_middle_of_an_acquire_leaks_nothing() {
    let (stage, limiter) = with(&["rpm:100"]).await;
    take(&limiter, "user-1", "rpm", 10).await.unwrap();
    stage.wire.latency(millis(10));
    // Before the write is carried out, after it, and after the response.
    for patience in [1, 4, 6, 9, 10, 11] {
        let call = lease(&limiter, "user-1", "rpm", 50);
        let held = tokio::time::timeout(millis(patience), call).await;
        drop(held);
        limiter.settled().await;
        assert_eq!(
            stage.bucket("user-1").await.unwrap().consumed("rpm"),
            10_000,
            "after {patience} ms"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_dropped_outside_of_any_runtime_goes_back() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["rpm:10"]).await;
    let held = lease(&limiter, "user-1", "rpm", 4).await.unwrap();
    std::thread::spawn(move || drop(held)).join().unwrap();
    limiter.settled().await;
    assert_eq!(available(&limiter, "user-1", "rpm").await, 10);
}

#[test]
fn a_limiter_outlives_the_runtime_that_used_it() {
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .unwrap()
    };
    let first = runtime();
    let (stage, limiter, held) = first.block_on(async {
        let stage = Stage::new();
        let limiter = stage.limiter(&["rpm:10"]).await;
        let held = lease(&limiter, "user-1", "rpm", 4).await.unwrap();
        (stage, limiter, held)
    });
    drop(first);
    // No runtime is left: this goes back with the next work on the bucket.
    drop(held);
    runtime().block_on(async {
        take(&limiter, "user-1", "rpm", 1).await.unwrap();
        limiter.settled().await;
        assert_eq!(stage.bucket("user-1").await.unwrap().consumed("rpm"), 1_000);
    });
}

#[tokio::test(start_paused = true)]
async fn a_body_that_succeeds_commits_and_one_that_fails_rolls_back() {
    let (_stage, limiter) = with(&["tpm:1000"]).await;
    let run = |succeeds: bool| {
        limiter
            .acquire("user-1", GPT)
            .consume("tpm", 500)
            .run(async move |lease: &mut Lease| {
                lease.adjust("tpm", -100);
                if succeeds {
                    Ok("response")
                } else {
                    Err(Failed("no response".to_owned()))
                }
            })
    };
    assert_eq!(run(false).await.unwrap_err().0, "no response");
    assert_eq!(available(&limiter, "user-1", "tpm").await, 1000);
    assert_eq!(run(true).await.unwrap(), "response");
    assert_eq!(available(&limiter, "user-1", "tpm").await, 600);
    run(true).await.unwrap();
    assert!(
        run(true).await.unwrap_err().0.contains("Rate limit exceeded"),
        "a refusal is the caller's error too"
    );
}

#[derive(Debug)]
struct Failed(String);

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self(error.to_string())
    }
}

#[tokio::test(start_paused = true)]
async fn credits_never_lift_a_bucket_above_its_burst() {
    let (stage, limiter) = with(&["rps:10/sec"]).await;
    let held = lease(&limiter, "user-1", "rps", 10).await.unwrap();
    advance(secs(5)).await;
    drop(held);
    limiter.settled().await;
    assert_eq!(available(&limiter, "user-1", "rps").await, 10);
    assert_eq!(drain(&limiter, "user-1", "rps").await, 10);
    assert_eq!(stage.bucket("user-1").await.unwrap().consumed("rps"), 10_000);
}

#[tokio::test(start_paused = true)]
async fn more_of_a_lease_is_a_real_acquire() {
    let (stage, limiter) = with(&["tpm:1000"]).await;
    let mut first = lease(&limiter, "user-1", "tpm", 600).await.unwrap();
    let mut second = lease(&limiter, "user-1", "tpm", 200).await.unwrap();
    first.consume("tpm", 150).await.unwrap();
    assert_eq!(first.statuses()[0].requested, 750);
    exceeded(second.consume("tpm", 100).await.unwrap_err());
    assert_eq!(second.consumed().values().copied().collect::<Vec<_>>(), [200]);
    drop(first);
    second.commit().await.unwrap();
    limiter.settled().await;
    assert_eq!(stage.bucket("user-1").await.unwrap().consumed("tpm"), 200_000);
}

#[tokio::test(start_paused = true)]
async fn a_lease_knows_whether_it_was_counted() {
    let (_stage, limiter) = with(&["tpm:1000"]).await;
    let held = lease(&limiter, "user-1", "tpm", 100).await.unwrap();
    assert_eq!(held.admission(), Admission::Counted);
    assert_eq!(
        (held.entity().as_str(), held.resource().as_str()),
        ("user-1", GPT)
    );
    let status = &held.statuses()[0];
    assert_eq!((status.available, status.requested), (900, 100));
    assert!(!status.refused, "it was taken");
    held.commit().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn adjustments_and_refunds_on_a_bucket_that_is_gone_create_nothing() {
    let (stage, limiter) = with(&["tpm:1000"]).await;
    for adjusts in [true, false] {
        let mut held = lease(&limiter, "user-1", "tpm", 100).await.unwrap();
        stage.delete_bucket("user-1").await;
        if adjusts {
            held.adjust("tpm", 300);
            held.commit().await.unwrap();
        } else {
            held.rollback().await.unwrap();
        }
        limiter.settled().await;
        assert!(stage.bucket("user-1").await.is_none());
    }
    assert_eq!(limiter.stats().unwritten, 2);
    let report = limiter.shutdown().await;
    assert_eq!(report.unwritten_total, 2);
    let (used, given_back) = (&report.unwritten[0], &report.unwritten[1]);
    assert_eq!((used.entity.as_str(), used.changes[0].1), ("user-1", 300_000));
    assert_eq!(given_back.changes[0].1, -100_000);
    assert!(used.reason.contains("no longer exists"), "{}", used.reason);
}

#[tokio::test(start_paused = true)]
async fn a_refund_does_not_go_into_another_incarnation_of_the_bucket() {
    let (stage, limiter) = with(&["tpd:1000/day"]).await;
    let held = lease(&limiter, "user-1", "tpd", 500).await.unwrap();
    stage.delete_bucket("user-1").await;
    let other = stage.limiter(&["tpd:1000/day"]).await;
    take(&other, "user-1", "tpd", 900).await.unwrap();
    drop(held);
    limiter.settled().await;
    let bucket = stage.bucket("user-1").await.unwrap();
    assert_eq!(
        bucket.level("tpd"),
        100_000,
        "those tokens were never taken from this one"
    );
    assert_eq!(bucket.consumed("tpd"), 400_000, "but the count of usage is right");
}

#[tokio::test(start_paused = true)]
async fn what_was_used_more_is_booked_on_the_next_incarnation() {
    let (stage, limiter) = with(&["tpd:1000/day"]).await;
    let mut held = lease(&limiter, "user-1", "tpd", 500).await.unwrap();
    stage.delete_bucket("user-1").await;
    let other = stage.limiter(&["tpd:1000/day"]).await;
    take(&other, "user-1", "tpd", 100).await.unwrap();
    held.adjust("tpd", 200);
    held.commit().await.unwrap();
    assert_eq!(stage.bucket("user-1").await.unwrap().level("tpd"), 700_000);
}

#[tokio::test(start_paused = true)]
async fn a_bucket_that_was_deleted_and_made_again_by_the_same_process_is_another_one() {
    let (stage, limiter) = with(&["tpd:1000/day"]).await;
    let held = lease(&limiter, "user-1", "tpd", 500).await.unwrap();
    stage.delete_bucket("user-1").await;
    advance(secs(2)).await;
    take(&limiter, "user-1", "tpd", 900).await.unwrap();
    drop(held);
    limiter.settled().await;
    assert_eq!(stage.bucket("user-1").await.unwrap().level("tpd"), 100_000);
}

#[tokio::test(start_paused = true)]
async fn a_lease_on_two_incarnations_gives_each_no_more_than_it_took_from_it() {
    for rolls_back in [true, false] {
        let (stage, limiter) = with(&["tpd:1000/day"]).await;
        let mut held = lease(&limiter, "user-1", "tpd", 500).await.unwrap();
        stage.delete_bucket("user-1").await;
        advance(secs(2)).await;
        held.consume("tpd", 100).await.unwrap();
        take(&limiter, "user-1", "tpd", 600).await.unwrap();
        if rolls_back {
            held.rollback().await.unwrap();
        } else {
            held.release("tpd", 600);
            held.commit().await.unwrap();
        }
        let bucket = stage.bucket("user-1").await.unwrap();
        assert_eq!(bucket.level("tpd"), 400_000, "100 of the 600 came from this one");
        assert_eq!(bucket.consumed("tpd"), 100_000, "700 taken, 600 given back");
    }
}

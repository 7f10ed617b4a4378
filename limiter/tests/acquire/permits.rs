//! Limits on calls in flight: permits that are held, renewed, released, and that come back when their holder is gone.

use std::time::Duration;

use tokio::time::Instant;
use zae_limiter::{Error, NewEntity, RateLimiter};

use crate::acquire::support::*;

const LIMIT: &str = "parallel:2 at once for 60s";

async fn hold(limiter: &RateLimiter) -> Result<zae_limiter::Lease, Error> {
    lease(limiter, "user-1", "parallel", 1).await
}

async fn held(stage: &Stage) -> i64 {
    stage
        .bucket("user-1")
        .await
        .unwrap()
        .number("c_parallel_n")
        .unwrap()
}

/// Another process.
async fn another(stage: &Stage) -> RateLimiter {
    let builder = stage.builder_on(&stage.another_wire());
    builder.default_limits(limits(&[LIMIT])).await.unwrap()
}

/// The numbers of the epochs of a bucket, and how many permits are held by its count.
async fn epochs(stage: &Stage) -> (Vec<i64>, i64) {
    let bucket = stage.bucket("user-1").await.unwrap();
    let epochs = bucket.0.keys().filter(|name| name.starts_with("c_parallel_e"));
    let epochs = epochs.map(|name| bucket.number(name).unwrap()).collect();
    (epochs, bucket.number("c_parallel_n").unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_permit_is_held_until_the_lease_ends_however_it_ends() {
    let stage = Stage::new();
    let limiter = stage.limiter(&[LIMIT]).await;
    let (one, two) = (hold(&limiter).await.unwrap(), hold(&limiter).await.unwrap());
    let refusal = exceeded(hold(&limiter).await.unwrap_err());
    let status = refusal.primary_limit().unwrap();
    assert_eq!((status.available, status.requested, status.reset), (0, 1, None));
    one.commit().await.unwrap();
    let three = hold(&limiter).await.unwrap();
    drop(two);
    limiter.settled().await;
    let four = hold(&limiter).await.unwrap();
    exceeded(hold(&limiter).await.unwrap_err());
    three.rollback().await.unwrap();
    four.commit_in_background();
    limiter.settled().await;
    assert_eq!(held(&stage).await, 0);
}

#[tokio::test(start_paused = true)]
async fn the_release_goes_with_the_adjustment_in_one_write() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["rpm:100", LIMIT]).await;
    let call = || {
        limiter
            .acquire("user-1", GPT)
            .consume("rpm", 5)
            .consume("parallel", 1)
    };
    call().await.unwrap().commit().await.unwrap();
    let mut lease = call().await.unwrap();
    stage.wire.calls();
    lease.adjust("rpm", 2);
    lease.commit().await.unwrap();
    assert_eq!(stage.wire.operations(), ["UpdateItem"]);
    assert_eq!(held(&stage).await, 0);
}

#[tokio::test(start_paused = true)]
async fn permits_are_renewed_together_while_their_calls_run() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["parallel:20 at once for 60s"]).await;
    let mut leases = Vec::new();
    for _ in 0..20 {
        leases.push(hold(&limiter).await.unwrap());
    }
    stage.wire.calls();
    tokio::time::sleep(secs(600)).await;
    let renewals = stage.wire.operations().len();
    assert!(
        (10..=25).contains(&renewals),
        "{renewals} writes in ten minutes for 20 calls"
    );
    assert!(leases.iter().all(|lease| !lease.is_lost()));
    exceeded(hold(&limiter).await.unwrap_err());
    let other = another(&stage).await;
    exceeded(hold(&other).await.unwrap_err());
    for lease in leases {
        lease.commit().await.unwrap();
    }
    assert_eq!(held(&stage).await, 0);
}

#[tokio::test(start_paused = true)]
async fn renewals_stop_with_the_limiter_and_the_permits_come_back() {
    let stage = Stage::new();
    let limiter = stage.limiter(&[LIMIT]).await;
    let lease = hold(&limiter).await.unwrap();
    assert!(limiter.shutdown().await.unwritten.is_empty());
    stage.wire.calls();
    tokio::time::sleep(secs(120)).await;
    assert_eq!(stage.wire.calls().len(), 0);
    assert!(lease.is_lost());
    let other = another(&stage).await;
    let (_one, _two) = (hold(&other).await.unwrap(), hold(&other).await.unwrap());
    exceeded(hold(&other).await.unwrap_err());
}

#[tokio::test(start_paused = true)]
async fn the_permits_of_a_process_that_died_come_back_after_their_expiry() {
    let stage = Stage::new();
    let dies = another(&stage).await;
    let leases = (hold(&dies).await.unwrap(), hold(&dies).await.unwrap());
    // It never does anything again, its drops included.
    dies.shutdown().await;
    std::mem::forget(leases);
    let limiter = stage.limiter(&[LIMIT]).await;
    tokio::time::sleep(secs(58)).await;
    exceeded(hold(&limiter).await.unwrap_err());
    // The longest: the expiry, the rest of its epoch, and the grace for clocks that differ.
    tokio::time::sleep(secs(20)).await;
    let (_one, _two) = (hold(&limiter).await.unwrap(), hold(&limiter).await.unwrap());
    let (epochs, held) = epochs(&stage).await;
    assert_eq!((epochs.iter().sum::<i64>(), held), (2_000, 2_000));
}

#[tokio::test(start_paused = true)]
async fn a_lease_whose_permit_could_not_be_renewed_is_lost_and_takes_nothing_from_others() {
    let stage = Stage::new();
    let limiter = stage.limiter(&[LIMIT]).await;
    let lease = hold(&limiter).await.unwrap();
    stage.wire.always(Fault::ConnectionRefused);
    let started = Instant::now();
    lease.lost().await;
    assert!(lease.is_lost());
    let lasted = started.elapsed();
    assert!(lasted >= secs(60) && lasted < secs(80), "{lasted:?}");
    // Grace for clocks that differ.
    tokio::time::sleep(secs(3)).await;
    let other = another(&stage).await;
    let (_one, _two) = (hold(&other).await.unwrap(), hold(&other).await.unwrap());
    stage.wire.heal();
    // The breaker may still be open: then the release goes on in the background.
    drop(lease.commit().await);
    tokio::time::sleep(secs(20)).await;
    limiter.settled().await;
    let (epochs, held) = epochs(&stage).await;
    assert_eq!((epochs.iter().sum::<i64>(), held), (2_000, 2_000));
    exceeded(hold(&other).await.unwrap_err());
}

/// Time passes without its process running, as after SIGSTOP and SIGCONT.
#[tokio::test(start_paused = true)]
async fn a_process_that_was_paused_beyond_the_expiry_finds_out_with_its_next_step() {
    let stage = Stage::new();
    let limiter = stage.limiter(&[LIMIT]).await;
    let (one, two) = (hold(&limiter).await.unwrap(), hold(&limiter).await.unwrap());
    let other = another(&stage).await;
    advance(secs(90)).await;
    let (_three, _four) = (hold(&other).await.unwrap(), hold(&other).await.unwrap());
    assert!(one.is_lost() && two.is_lost());
    one.lost().await;
    one.commit().await.unwrap();
    drop(two);
    limiter.settled().await;
    let (epochs, held) = epochs(&stage).await;
    assert_eq!(
        (epochs.iter().sum::<i64>(), held),
        (2_000, 2_000),
        "those of the other process"
    );
    exceeded(hold(&limiter).await.unwrap_err());
}

#[tokio::test(start_paused = true)]
async fn a_lost_response_to_a_release_or_renewal_is_traced() {
    let stage = Stage::new();
    let limiter = stage.limiter(&[LIMIT]).await;
    for _ in 0..5 {
        let lease = hold(&limiter).await.unwrap();
        stage.wire.plan("UpdateItem", [Fault::LostResponse]);
        lease.commit().await.unwrap();
    }
    assert_eq!(held(&stage).await, 0);
    let lease = hold(&limiter).await.unwrap();
    for _ in 0..10 {
        stage.wire.plan("UpdateItem", [Fault::LostResponse]);
        tokio::time::sleep(secs(60)).await;
        assert!(!lease.is_lost());
    }
    lease.commit().await.unwrap();
    let (epochs, held) = epochs(&stage).await;
    assert_eq!((epochs.iter().sum::<i64>(), held), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_is_woken_by_a_release_of_its_process() {
    let stage = Stage::new();
    let limiter = stage.limiter(&[LIMIT]).await;
    let (one, _two) = (hold(&limiter).await.unwrap(), hold(&limiter).await.unwrap());
    let waits = {
        let limiter = limiter.clone();
        tokio::spawn(async move {
            let call = limiter.acquire("user-1", GPT).consume("parallel", 1);
            call.wait_up_to(secs(30)).await
        })
    };
    tokio::time::sleep(millis(20)).await;
    let released = Instant::now();
    one.commit().await.unwrap();
    waits.await.unwrap().unwrap().commit().await.unwrap();
    assert_eq!(released.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_gets_a_permit_that_another_process_releases() {
    let stage = Stage::new();
    let (limiter, other) = (stage.limiter(&[LIMIT]).await, another(&stage).await);
    let (one, _two) = (hold(&other).await.unwrap(), hold(&other).await.unwrap());
    let release = async {
        tokio::time::sleep(secs(5)).await;
        one.commit().await.unwrap();
        Instant::now()
    };
    let call = limiter.acquire("user-1", GPT).consume("parallel", 1);
    let (released, lease) = tokio::join!(release, call.wait_up_to(secs(30)));
    let waited = released.elapsed();
    assert!(waited <= secs(1), "{waited:?}");
    lease.unwrap().commit().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_remembered_for_a_tenth_of_a_second_only() {
    let stage = Stage::new();
    let (limiter, other) = (stage.limiter(&[LIMIT]).await, another(&stage).await);
    let (one, _two) = (hold(&other).await.unwrap(), hold(&other).await.unwrap());
    exceeded(hold(&limiter).await.unwrap_err());
    one.commit().await.unwrap();
    exceeded(hold(&limiter).await.unwrap_err());
    advance(millis(101)).await;
    hold(&limiter).await.unwrap().commit().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn epochs_stay_few_however_many_calls_there_are() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["parallel:1000 at once for 60s"]).await;
    let mut leases = std::collections::VecDeque::new();
    let mut most = 0;
    for _ in 0..600 {
        leases.push_back(hold(&limiter).await.unwrap());
        tokio::time::sleep(secs(1)).await;
        if leases.len() > 100 {
            leases.pop_front().unwrap().commit().await.unwrap();
        }
        most = most.max(epochs(&stage).await.0.len());
    }
    assert!(most <= 8, "{most}");
    let (epochs, held) = epochs(&stage).await;
    assert_eq!(epochs.iter().sum::<i64>(), held);
    assert_eq!(held, 1_000 * i64::try_from(leases.len()).unwrap());
}

#[tokio::test(start_paused = true)]
async fn permits_cannot_be_adjusted() {
    let stage = Stage::new();
    let limiter = stage.limiter(&[LIMIT]).await;
    let mut lease = hold(&limiter).await.unwrap();
    lease.adjust("parallel", 1);
    let error = lease.commit().await.unwrap_err();
    assert!(matches!(error, Error::Invalid(_)), "{error}");
    assert_eq!(held(&stage).await, 0, "the permit is released all the same");
    let error = limiter
        .adjust("user-1", GPT, [("parallel", -1)])
        .await
        .unwrap_err();
    assert!(error.to_string().contains("calls in flight"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_parent_counts_permits_of_its_own() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["parallel:5 at once for 60s"]).await;
    create(&limiter, NewEntity::new("team")).await;
    create(&limiter, child("user-1", "team")).await;
    create(&limiter, child("user-2", "team")).await;
    set_limits(&limiter, "team", &[LIMIT]).await;
    let one = lease(&limiter, "user-1", "parallel", 1).await.unwrap();
    let _two = lease(&limiter, "user-2", "parallel", 1).await.unwrap();
    let refusal = exceeded(lease(&limiter, "user-2", "parallel", 1).await.unwrap_err());
    assert_eq!(refusal.primary_limit().unwrap().entity.as_str(), "team");
    one.commit().await.unwrap();
    let _three = lease(&limiter, "user-2", "parallel", 1).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_bucket_that_was_deleted_takes_its_permits_along() {
    let stage = Stage::new();
    let limiter = stage.limiter(&[LIMIT]).await;
    let lease = hold(&limiter).await.unwrap();
    stage.delete_bucket("user-1").await;
    let _new = hold(&limiter).await.unwrap();
    lease.commit().await.unwrap();
    assert_eq!(held(&stage).await, 1_000, "only that of the new bucket");
}

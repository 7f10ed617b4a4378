//! What is admitted: all limits of a call or none, by the server's condition, never too much.

use crate::acquire::support::*;

#[tokio::test(start_paused = true)]
async fn tokens_are_taken_until_there_are_none() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["rpm:3"]).await;
    assert_eq!(drain(&limiter, "user-1", "rpm").await, 3);
    assert_eq!(available(&limiter, "user-1", "rpm").await, 0);
    assert_eq!(
        available(&limiter, "user-2", "rpm").await,
        3,
        "everybody has their own"
    );
}

#[tokio::test(start_paused = true)]
async fn all_limits_of_a_call_are_taken_or_none() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["rpm:3", "tpm:1000"]).await;
    let call = |tokens| {
        limiter
            .acquire("user-1", GPT)
            .consume("rpm", 1)
            .consume("tpm", tokens)
    };
    call(900).await.unwrap().commit().await.unwrap();
    let refused = exceeded(call(200).await.unwrap_err());
    assert_eq!(refused.refused_limits().count(), 1);
    assert_eq!(refused.primary_limit().unwrap().limit.name().as_str(), "tpm");
    assert_eq!(
        available(&limiter, "user-1", "rpm").await,
        2,
        "a refused call takes nothing"
    );
    call(100).await.unwrap().commit().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn amounts_of_one_limit_add_up() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["tpm:1000"]).await;
    let lease = limiter
        .acquire("user-1", GPT)
        .consume("tpm", 400)
        .consume("tpm", 300)
        .await
        .unwrap();
    assert_eq!(lease.consumed().values().copied().collect::<Vec<_>>(), [700]);
    lease.commit().await.unwrap();
    assert_eq!(available(&limiter, "user-1", "tpm").await, 300);
}

#[tokio::test(start_paused = true)]
async fn a_bucket_gives_its_burst_at_once_and_then_its_rate() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["rps:10/sec:25"]).await;
    assert_eq!(drain(&limiter, "user-1", "rps").await, 25);
    advance(secs(1)).await;
    assert_eq!(drain(&limiter, "user-1", "rps").await, 10);
}

#[tokio::test(start_paused = true)]
async fn an_idle_full_bucket_never_gives_two_bursts() {
    for idle in [
        millis(1),
        secs(30),
        secs(60),
        secs(61),
        secs(3600),
        secs(86_400 * 30),
    ] {
        let stage = Stage::new();
        let limiter = stage.limiter(&["rpm:100"]).await;
        // One process made the bucket and kept its image; another one uses it after the pause.
        take(&limiter, "user-1", "rpm", 100).await.unwrap();
        advance(secs(60)).await;
        take(&limiter, "user-1", "rpm", 1).await.unwrap();
        advance(secs(1)).await;
        let full = available(&limiter, "user-1", "rpm").await;
        assert_eq!(full, 100);
        advance(idle).await;
        let other = stage.limiter(&["rpm:100"]).await;
        let taken = drain(&limiter, "user-1", "rpm").await + drain(&other, "user-1", "rpm").await;
        assert_eq!(taken, 100, "after {idle:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn concurrent_callers_of_several_processes_get_exactly_what_is_there() {
    let stage = Stage::new();
    let mut callers = Vec::new();
    for process in 0..4 {
        let wire = stage.another_wire();
        wire.latency(millis(3 + process));
        let limiter = stage
            .builder_on(&wire)
            .default_limits([hoard("calls", 100)])
            .await
            .unwrap();
        callers.extend((0..60).map(|_| {
            let limiter = limiter.clone();
            tokio::spawn(async move { take(&limiter, "user-1", "calls", 1).await })
        }));
    }
    let (mut admitted, mut refused) = (0, 0);
    for caller in callers {
        match caller.await.unwrap() {
            Ok(()) => admitted += 1,
            Err(error) => {
                exceeded(error);
                refused += 1;
            }
        }
    }
    assert_eq!((admitted, refused), (100, 140));
    assert_eq!(stage.bucket("user-1").await.unwrap().level("calls"), 0);
}

#[tokio::test(start_paused = true)]
async fn processes_that_create_the_bucket_at_once_are_all_admitted() {
    let stage = Stage::new();
    let mut callers = Vec::new();
    for _ in 0..10 {
        let wire = stage.another_wire();
        wire.latency(millis(5));
        let limiter = stage
            .builder_on(&wire)
            .default_limits([hoard("calls", 10)])
            .await
            .unwrap();
        callers.push(tokio::spawn(
            async move { take(&limiter, "user-1", "calls", 1).await },
        ));
    }
    for caller in callers {
        caller.await.unwrap().unwrap();
    }
    assert_eq!(stage.bucket("user-1").await.unwrap().level("calls"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_does_not_fit_does_not_hold_up_those_behind_it() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["tpm:100"]).await;
    take(&limiter, "user-1", "tpm", 10).await.unwrap();
    stage.wire.latency(millis(10));
    let call = |tokens| {
        let limiter = limiter.clone();
        tokio::spawn(async move { take(&limiter, "user-1", "tpm", tokens).await })
    };
    let calls = [call(30), call(80), call(30), call(40), call(30)];
    let mut admitted = Vec::new();
    for one in calls {
        admitted.push(one.await.unwrap().is_ok());
    }
    assert_eq!(admitted, [true, false, true, false, true]);
}

#[tokio::test(start_paused = true)]
async fn limit_names_with_any_allowed_character_work() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["tokens-per.minute_v2:100", "ADD:5"]).await;
    let lease = limiter
        .acquire("user@example.com:1", GPT)
        .consume("tokens-per.minute_v2", 60)
        .consume("ADD", 5)
        .await
        .unwrap();
    lease.commit().await.unwrap();
    assert_eq!(available(&limiter, "user@example.com:1", "ADD").await, 0);
}

#[tokio::test(start_paused = true)]
async fn what_was_granted_and_refused_is_counted() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["rpm:2"]).await;
    drain(&limiter, "user-1", "rpm").await;
    let stats = limiter.stats();
    assert_eq!((stats.granted, stats.refused, stats.unavailable), (2, 1, 0));
    assert_eq!(stage.bucket("user-1").await.unwrap().number("ev"), Some(2));
}

//! Single faults at the worst time.

use crate::acquire::support::*;

#[tokio::test(start_paused = true)]
async fn a_debit_whose_answer_is_lost_happens_once() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["rpd:10/day"]).await;
    for (before, lost) in [(0, 1), (4, 1)] {
        stage.wire.plan("UpdateItem", vec![Fault::LostResponse; lost]);
        take(&limiter, "user-1", "rpd", 4).await.unwrap();
        let bucket = stage.bucket("user-1").await.unwrap();
        assert_eq!(bucket.level("rpd"), (10 - before - 4) * 1000);
    }
}

#[tokio::test(start_paused = true)]
async fn a_creation_whose_answer_is_lost_happens_once() {
    for fault in [
        Fault::LostResponse,
        Fault::Late(millis(50)),
        Fault::SilentResponse,
    ] {
        let stage = Stage::new();
        let limiter = stage.limiter(&["rpd:10/day"]).await;
        stage.wire.plan("UpdateItem", [fault]);
        take(&limiter, "user-1", "rpd", 4).await.unwrap();
        advance(secs(1)).await;
        limiter.settled().await;
        assert_eq!(
            stage.bucket("user-1").await.unwrap().level("rpd"),
            6_000,
            "{fault:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn another_writer_in_between_does_not_hide_that_a_debit_happened() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["rpd:10/day"]).await;
    take(&limiter, "user-1", "rpd", 1).await.unwrap();
    let other_wire = stage.another_wire();
    let other = stage
        .builder_on(&other_wire)
        .default_limits(limits(&["rpd:10/day"]))
        .await
        .unwrap();
    stage.wire.latency(millis(20));
    stage.wire.plan("UpdateItem", [Fault::LostResponse]);
    let (mine, theirs) = tokio::join!(take(&limiter, "user-1", "rpd", 3), async {
        // Carried out after ten milliseconds; sent again at once; the other one writes before that arrives.
        tokio::time::sleep(millis(11)).await;
        take(&other, "user-1", "rpd", 2).await
    });
    mine.unwrap();
    theirs.unwrap();
    assert_eq!(stage.bucket("user-1").await.unwrap().level("rpd"), 4_000);
}

#[tokio::test(start_paused = true)]
async fn a_copy_that_arrives_late_changes_nothing() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["rpd:100/day"]).await;
    take(&limiter, "user-1", "rpd", 1).await.unwrap();
    for delay in [1, 30, 200, 900] {
        stage.wire.plan("UpdateItem", [Fault::Late(millis(delay))]);
        take(&limiter, "user-1", "rpd", 3).await.unwrap();
    }
    tokio::time::sleep(secs(2)).await;
    take(&limiter, "user-1", "rpd", 1).await.unwrap();
    limiter.settled().await;
    assert_eq!(stage.bucket("user-1").await.unwrap().consumed("rpd"), 14_000);
}

#[tokio::test(start_paused = true)]
async fn a_credit_whose_answer_is_lost_happens_once() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["rpd:100/day"]).await;
    take(&limiter, "user-1", "rpd", 50).await.unwrap();
    for fault in [
        Fault::LostResponse,
        Fault::SilentResponse,
        Fault::Late(millis(40)),
        Fault::LostRequest,
    ] {
        let held = lease(&limiter, "user-1", "rpd", 20).await.unwrap();
        stage.wire.plan("UpdateItem", [fault]);
        held.rollback().await.unwrap();
        tokio::time::sleep(secs(1)).await;
        assert_eq!(
            stage.bucket("user-1").await.unwrap().consumed("rpd"),
            50_000,
            "{fault:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_cut_again_after_a_lost_answer_admits_each_caller_once() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["rpd:10/day"]).await;
    take(&limiter, "user-1", "rpd", 1).await.unwrap();
    let other = stage
        .builder_on(&stage.another_wire())
        .default_limits(limits(&["rpd:10/day"]))
        .await
        .unwrap();
    // The write with the first two is carried out late; meanwhile the bucket changes under it, so that it is combined again.
    stage.wire.latency(millis(10));
    stage
        .wire
        .plan("UpdateItem", [Fault::Late(millis(25)), Fault::LostRequest]);
    let call = |tokens| {
        let limiter = limiter.clone();
        tokio::spawn(async move { take(&limiter, "user-1", "rpd", tokens).await })
    };
    let calls = [call(2), call(2)];
    tokio::time::sleep(millis(8)).await;
    let theirs = take(&other, "user-1", "rpd", 3).await;
    let late = [call(1), call(1)];
    let mut admitted = 3 * i64::from(theirs.is_ok()) + 1;
    for (call, tokens) in calls.into_iter().zip([2, 2]).chain(late.into_iter().zip([1, 1])) {
        admitted += i64::from(call.await.unwrap().is_ok()) * tokens;
    }
    tokio::time::sleep(secs(2)).await;
    limiter.settled().await;
    assert_eq!(
        stage.bucket("user-1").await.unwrap().consumed("rpd"),
        admitted * 1000
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_that_keeps_losing_to_other_writers_is_refused_and_never_unavailable() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["rpd:1000/day"]).await;
    take(&limiter, "user-1", "rpd", 1).await.unwrap();
    stage.wire.latency(millis(4));
    // A writer that moves the refill time all the time, so that every write finds another bucket.
    let busy = {
        let stage_clock = stage.clock;
        let client = stage.client();
        tokio::spawn(async move {
            use aws_sdk_dynamodb::types::AttributeValue::{N, S};
            use zae_limiter::Clock;
            loop {
                let update = client
                    .update_item()
                    .table_name(TABLE)
                    .key("PK", S("ENTITY#user-1".to_owned()))
                    .key("SK", S(format!("#BUCKET#{GPT}")))
                    .update_expression("SET cf = :c, rf = :r")
                    .expression_attribute_values(":c", S(format!("x.{}", stage_clock.now().millis())))
                    .expression_attribute_values(":r", N(stage_clock.now().millis().to_string()));
                update.send().await.unwrap();
                tokio::time::sleep(millis(1)).await;
            }
        })
    };
    advance(millis(50)).await;
    let error = take(&limiter, "user-1", "rpd", 1).await.unwrap_err();
    busy.abort();
    assert!(!error.is_unavailable(), "{error:?}");
    exceeded(error);
    take(&limiter, "user-1", "rpd", 1).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn unprocessed_keys_of_a_cold_read_are_asked_for_again() {
    let stage = Stage::new();
    let admin = stage.limiter(&[]).await;
    set_resource_limits(&admin, &["rpd:10/day"]).await;
    let limiter = stage.limiter(&["rpd:1000/day"]).await;
    let faults = [Fault::NothingProcessed, Fault::Throttled, Fault::NothingProcessed];
    stage.wire.plan("BatchGetItem", faults);
    assert_eq!(
        drain(&limiter, "user-1", "rpd").await,
        10,
        "never the builder's limits instead of stored ones"
    );
    let reads = stage.wire.operations();
    let reads = reads.iter().filter(|operation| *operation == "BatchGetItem");
    assert_eq!(reads.count(), 1 + faults.len());
}

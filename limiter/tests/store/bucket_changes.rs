//! Top-ups and resets of a bucket by hand.

use std::time::Duration;

use zae_limiter::audit::AuditAction;
use zae_limiter::error::{Conflict, Invalid, NotFound};
use zae_limiter::usage::CapacityScope;
use zae_limiter::{Error, Limit, RateLimiter};
use zae_limiter_schema::AttributeValue;

use crate::store::faults::stage;
use crate::store::support::{Fault, Stage, events_about, rpm};

on_every_store! {
    a_quota_is_topped_up_for_its_period,
    a_rate_is_topped_up_to_its_burst,
    a_bucket_that_does_not_exist_is_topped_up,
    limits_are_reset_one_by_one_or_together,
    what_calls_took_before_a_reset_does_not_come_back,
    a_reset_revokes_all_permits_of_the_bucket,
    a_change_under_one_key_is_made_once,
    a_key_stands_for_one_change,
    changes_that_break_a_rule_are_refused_before_anything_is_written,
}

fn spend(amount: u64) -> Limit {
    Limit::quota("spend", amount, "month".parse().unwrap()).unwrap()
}

fn parallel(permits: u64) -> Limit {
    Limit::concurrency("parallel", permits, Duration::from_secs(60)).unwrap()
}

async fn with_limits(stage: &Stage, limits: impl IntoIterator<Item = Limit>) -> RateLimiter {
    let limiter = stage.limiter().await;
    let set = limiter.repository().set_limits("team-1", "gpt-4", limits).await;
    set.unwrap();
    limiter
}

async fn take(limiter: &RateLimiter, limit: &str, tokens: u64) -> Result<(), Error> {
    limiter
        .acquire("team-1", "gpt-4")
        .consume(limit, tokens)
        .commit()
        .await
}

async fn left(limiter: &RateLimiter, limit: &str) -> i64 {
    let peek = limiter.acquire("team-1", "gpt-4").peek().await.unwrap();
    peek.tokens(limit).unwrap()
}

/// The bucket's numbers, as anybody would see them.
async fn number(stage: &Stage, name: &str) -> Option<i64> {
    let bucket = stage.item("ENTITY#team-1", "#BUCKET#gpt-4").await?;
    Some(bucket.get(name)?.as_n().unwrap().parse().unwrap())
}

async fn a_quota_is_topped_up_for_its_period(stage: Stage) {
    let limiter = with_limits(&stage, [spend(100)]).await;
    take(&limiter, "spend", 100).await.unwrap();
    assert!(matches!(take(&limiter, "spend", 1).await, Err(Error::Refused(_))));

    let top_up = |amount| limiter.repository().top_up("team-1", "gpt-4", "spend", amount);
    let made = top_up(30).reason("approved").await.unwrap();
    assert_eq!(
        (made.amount, made.added, made.left, made.repeated),
        (30, 30, 30, false)
    );
    assert!(made.period_end.is_some());
    assert_eq!(top_up(20).await.unwrap().left, 50);
    assert_eq!(
        number(&stage, "q_spend_us").await,
        Some(100_000),
        "used is what was used"
    );
    assert_eq!(number(&stage, "q_spend_tc").await, Some(100_000));
    let bucket = limiter.repository().get_bucket("team-1", "gpt-4").await.unwrap();
    assert_eq!(bucket.unwrap().limits[0].available, 50);
    let peek = limiter.acquire("team-1", "gpt-4").peek().await.unwrap();
    let status = &peek.statuses()[0];
    assert_eq!((status.available, status.used), (50, Some(100)));

    let bucket = limiter.repository().get_bucket("team-1", "gpt-4").await.unwrap();
    let shown = &bucket.unwrap().limits[0];
    assert_eq!((shown.available, shown.burst, shown.capacity), (50, 150, 100));
    let peek = limiter.acquire("team-1", "gpt-4").peek().await.unwrap();
    let status = &peek.statuses()[0];
    assert_eq!((status.available, status.topped_up, status.most()), (50, 50, 150));
    let capacity = limiter
        .repository()
        .get_resource_capacity("gpt-4", "spend", CapacityScope::Everyone);
    let capacity = capacity.await.unwrap();
    assert_eq!((capacity.total_capacity, capacity.total_available), (150, 50));

    stage.clock.advance(Duration::from_secs(2));
    take(&limiter, "spend", 50).await.unwrap();
    assert!(matches!(take(&limiter, "spend", 1).await, Err(Error::Refused(_))));

    let events = events_about(limiter.repository(), "team-1").await;
    let event = events
        .iter()
        .find(|event| event.id.to_string() == made.event_id)
        .unwrap();
    assert_eq!(event.action, AuditAction::ToppedUp);
    assert_eq!(event.principal.as_deref(), Some("tester"));
    assert_eq!(event.resource.as_deref(), Some("gpt-4"));
    let text = |text: &str| Some(AttributeValue::S(text.to_owned()));
    let detail = |name: &str| event.details.get(name).cloned();
    assert_eq!(
        (detail("limit"), detail("reason")),
        (text("spend"), text("approved"))
    );
    assert_eq!(detail("amount"), Some(AttributeValue::N("30".to_owned())));
}

#[tokio::test]
async fn the_next_period_has_its_own_amount() {
    let stage = Stage::memory();
    let limiter = with_limits(&stage, [spend(100)]).await;
    take(&limiter, "spend", 90).await.unwrap();
    let made = limiter
        .repository()
        .top_up("team-1", "gpt-4", "spend", 30)
        .await
        .unwrap();
    assert_eq!(made.period_end.unwrap().to_string(), "2099-02-01T00:00:00Z");
    stage.clock.advance(Duration::from_secs(12 * 3600));
    assert_eq!(left(&limiter, "spend").await, 100);
    take(&limiter, "spend", 100).await.unwrap();
    assert!(matches!(take(&limiter, "spend", 1).await, Err(Error::Refused(_))));
}

async fn a_rate_is_topped_up_to_its_burst(stage: Stage) {
    let slow = Limit::custom("tpm", 6_000, 6_000, 1, Limit::MAX_PERIOD_SECONDS).unwrap();
    let limiter = with_limits(&stage, [rpm(60), slow]).await;
    let mut lease = limiter
        .acquire("team-1", "gpt-4")
        .consume("tpm", 1_000)
        .await
        .unwrap();
    lease.adjust("tpm", 7_000);
    lease.commit().await.unwrap();
    assert_eq!(left(&limiter, "tpm").await, -2_000);
    let top_up = |amount| limiter.repository().top_up("team-1", "gpt-4", "tpm", amount);
    let made = top_up(2_500).await.unwrap();
    assert_eq!((made.added, made.left, made.period_end), (2_500, 500, None));
    let made = top_up(6_000).await.unwrap();
    assert_eq!((made.added, made.left), (5_500, 6_000), "up to the burst");
    assert_eq!(left(&limiter, "tpm").await, 6_000);
    assert_eq!(
        number(&stage, "b_tpm_tc").await,
        Some(8_000_000),
        "a top-up is no consumption"
    );
}

async fn a_bucket_that_does_not_exist_is_topped_up(stage: Stage) {
    let limiter = with_limits(&stage, [rpm(60), spend(100)]).await;
    let made = limiter
        .repository()
        .top_up("team-1", "gpt-4", "spend", 30)
        .await
        .unwrap();
    assert_eq!((made.added, made.left), (30, 130));
    take(&limiter, "spend", 130).await.unwrap();
    assert!(matches!(take(&limiter, "spend", 1).await, Err(Error::Refused(_))));
    assert_eq!(left(&limiter, "rpm").await, 60);
}

async fn limits_are_reset_one_by_one_or_together(stage: Stage) {
    let limiter = with_limits(&stage, [rpm(60), spend(100)]).await;
    let repository = limiter.repository();
    let nothing = repository.reset("team-1", "gpt-4").await.unwrap();
    assert!(
        nothing.limits.is_empty() && !nothing.repeated,
        "there is no bucket yet"
    );
    let call = limiter
        .acquire("team-1", "gpt-4")
        .consume("rpm", 60)
        .consume("spend", 90);
    call.clone().commit().await.unwrap();
    repository.top_up("team-1", "gpt-4", "spend", 5).await.unwrap();

    let made = repository.reset("team-1", "gpt-4").limit("rpm").await.unwrap();
    assert_eq!(made.limits, ["rpm".parse().unwrap()]);
    assert_eq!(
        (left(&limiter, "rpm").await, left(&limiter, "spend").await),
        (60, 15)
    );
    let made = repository
        .reset("team-1", "gpt-4")
        .reason("a loop")
        .await
        .unwrap();
    assert_eq!(made.limits.len(), 2);
    assert!(!made.permits_revoked);
    assert_eq!(
        (left(&limiter, "rpm").await, left(&limiter, "spend").await),
        (60, 100)
    );
    stage.clock.advance(Duration::from_secs(2));
    call.commit().await.unwrap();
    assert_eq!(number(&stage, "q_spend_tc").await, Some(180_000), "usage stays");

    let events = events_about(repository, "team-1").await;
    let resets: Vec<_> = events
        .iter()
        .filter(|event| event.action == AuditAction::LimitsReset)
        .collect();
    assert_eq!(resets.len(), 3);
    assert_eq!(
        resets[0].details["reason"],
        AttributeValue::S("a loop".to_owned())
    );
}

async fn what_calls_took_before_a_reset_does_not_come_back(stage: Stage) {
    let limiter = with_limits(&stage, [spend(100)]).await;
    let lease = limiter
        .acquire("team-1", "gpt-4")
        .consume("spend", 80)
        .await
        .unwrap();
    limiter
        .repository()
        .reset("team-1", "gpt-4")
        .limit("spend")
        .await
        .unwrap();
    stage.clock.advance(Duration::from_secs(2));
    take(&limiter, "spend", 90).await.unwrap();
    lease.rollback().await.unwrap();
    assert_eq!(left(&limiter, "spend").await, 10);
    assert_eq!(
        number(&stage, "q_spend_tc").await,
        Some(90_000),
        "it only changes the usage"
    );
    assert_eq!(number(&stage, "q_spend_us").await, Some(90_000));
}

async fn a_reset_revokes_all_permits_of_the_bucket(stage: Stage) {
    let limiter = with_limits(&stage, [rpm(60), parallel(2)]).await;
    let other = stage.limiter().await;
    let hold = |limiter: &RateLimiter| {
        let call = limiter
            .acquire("team-1", "gpt-4")
            .consume("rpm", 1)
            .consume("parallel", 1);
        async move { call.await }
    };
    let (one, two) = (hold(&limiter).await.unwrap(), hold(&other).await.unwrap());
    assert!(matches!(hold(&limiter).await, Err(Error::Refused(_))));
    let made = limiter
        .repository()
        .reset("team-1", "gpt-4")
        .limit("parallel")
        .await
        .unwrap();
    assert!(made.permits_revoked);

    stage.clock.advance(Duration::from_secs(2));
    let (three, four) = (hold(&limiter).await.unwrap(), hold(&other).await.unwrap());
    assert!(one.is_lost() && two.is_lost() && !three.is_lost() && !four.is_lost());
    // What was revoked is not released: others hold those permits now.
    one.commit().await.unwrap();
    two.rollback().await.unwrap();
    assert!(matches!(hold(&limiter).await, Err(Error::Refused(_))));
    assert_eq!(number(&stage, "c_parallel_n").await, Some(2_000));
    three.commit().await.unwrap();
    four.commit().await.unwrap();
    assert_eq!(number(&stage, "c_parallel_n").await, Some(0));
}

async fn a_change_under_one_key_is_made_once(stage: Stage) {
    let limiter = with_limits(&stage, [spend(100)]).await;
    take(&limiter, "spend", 90).await.unwrap();
    let top_up = || {
        limiter
            .repository()
            .top_up("team-1", "gpt-4", "spend", 30)
            .idempotency_key("one")
    };
    let first = top_up().await.unwrap();
    let again = top_up().await.unwrap();
    assert_eq!((first.repeated, again.repeated), (false, true));
    assert_eq!(
        (again.event_id, again.left, again.period_end),
        (first.event_id, 40, first.period_end)
    );
    let others = stage.repository().await;
    let third = others
        .top_up("team-1", "gpt-4", "spend", 30)
        .idempotency_key("one")
        .await
        .unwrap();
    assert!(third.repeated, "another client sends it again");
    assert_eq!(left(&limiter, "spend").await, 40);

    let reset = || {
        limiter
            .repository()
            .reset("team-1", "gpt-4")
            .limit("spend")
            .idempotency_key("two")
    };
    assert!(!reset().await.unwrap().repeated);
    stage.clock.advance(Duration::from_secs(2));
    take(&limiter, "spend", 60).await.unwrap();
    let again = reset().await.unwrap();
    assert!(again.repeated && again.limits == ["spend".parse().unwrap()]);
    assert_eq!(left(&limiter, "spend").await, 40);
    let events = events_about(limiter.repository(), "team-1").await;
    assert_eq!(events.len(), 3, "one event a change");
}

async fn a_key_stands_for_one_change(stage: Stage) {
    let limiter = with_limits(&stage, [spend(100)]).await;
    let top_up = |amount| {
        limiter
            .repository()
            .top_up("team-1", "gpt-4", "spend", amount)
            .idempotency_key("one")
    };
    top_up(30).await.unwrap();
    let other = top_up(31).await.unwrap_err();
    assert!(
        matches!(&other, Error::Conflict(Conflict::KeyReused { request, .. }) if request.contains("30")),
        "{other}"
    );
    let other = limiter
        .repository()
        .reset("team-1", "gpt-4")
        .idempotency_key("one")
        .await
        .unwrap_err();
    assert!(
        matches!(other, Error::Conflict(Conflict::KeyReused { .. })),
        "{other}"
    );
    assert_eq!(left(&limiter, "spend").await, 130);
}

async fn changes_that_break_a_rule_are_refused_before_anything_is_written(stage: Stage) {
    let limiter = with_limits(&stage, [rpm(60), parallel(2)]).await;
    let repository = limiter.repository();
    let invalid = |error: Error, wanted: &str| {
        let field = match &error {
            Error::Invalid(Invalid::Argument { field, .. }) => *field,
            _ => "",
        };
        assert_eq!(field, wanted, "{error}");
    };
    let top_up = |limit: &str, amount| repository.top_up("team-1", "gpt-4", limit, amount);
    invalid(top_up("rpm", 0).await.unwrap_err(), "amount");
    invalid(top_up("rpm", u64::MAX).await.unwrap_err(), "amount");
    invalid(top_up("spend", 1).await.unwrap_err(), "limit");
    invalid(top_up("parallel", 1).await.unwrap_err(), "limit");
    invalid(top_up("rpm", 1).reason(" ").await.unwrap_err(), "reason");
    invalid(
        top_up("rpm", 1).idempotency_key("").await.unwrap_err(),
        "idempotency key",
    );
    invalid(
        repository
            .reset("team-1", "gpt-4")
            .limit("spend")
            .await
            .unwrap_err(),
        "limit",
    );
    let name = repository.top_up("team 1", "gpt-4", "rpm", 1).await.unwrap_err();
    assert!(matches!(name, Error::Invalid(Invalid::Name(_))), "{name}");
    let none = repository.top_up("team-2", "gpt-4", "rpm", 1).await.unwrap_err();
    assert!(matches!(none, Error::NotFound(NotFound::Limits { .. })), "{none}");
    assert_eq!(
        events_about(repository, "team-1").await.len(),
        1,
        "only the limits were set"
    );
    assert!(stage.item("ENTITY#team-1", "#BUCKET#gpt-4").await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_lost_response_does_not_make_a_change_happen_twice() {
    let stage = stage();
    let limiter = with_limits(&stage, [spend(100)]).await;
    take(&limiter, "spend", 100).await.unwrap();
    let lose = |times| {
        let faults = std::iter::repeat_n(Fault::LostResponse, times);
        stage.faults().plan("TransactWriteItems", faults);
    };
    lose(2);
    limiter
        .repository()
        .top_up("team-1", "gpt-4", "spend", 30)
        .await
        .unwrap();
    assert_eq!(left(&limiter, "spend").await, 30);

    // All attempts of a call get no response: somebody makes the same call again.
    lose(200);
    let impatient = stage.builder().admin_time_budget(Duration::from_millis(300));
    let impatient = impatient.build_repository().await.unwrap();
    let top_up = || {
        impatient
            .top_up("team-1", "gpt-4", "spend", 5)
            .idempotency_key("later")
    };
    assert!(top_up().await.unwrap_err().is_unavailable());
    stage.faults().heal();
    assert!(top_up().await.unwrap().repeated, "it had happened");
    assert_eq!(left(&limiter, "spend").await, 35);

    lose(200);
    let reset = || impatient.reset("team-1", "gpt-4").idempotency_key("reset");
    assert!(reset().await.unwrap_err().is_unavailable());
    stage.faults().heal();
    stage.clock.advance(Duration::from_secs(2));
    take(&limiter, "spend", 60).await.unwrap();
    assert!(reset().await.unwrap().repeated);
    assert_eq!(left(&limiter, "spend").await, 40);
    assert_eq!(events_about(&impatient, "team-1").await.len(), 4);
}

/// Calls go on while the bucket is changed by hand. Neither side makes the other fail.
#[tokio::test]
async fn top_ups_and_calls_of_many_processes_do_not_disturb_each_other() {
    let stage = Stage::memory();
    let limiter = with_limits(&stage, [spend(10)]).await;
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let process = stage.limiter().await;
        tasks.spawn(async move {
            let mut admitted = 0;
            for _ in 0..30 {
                admitted += u64::from(take(&process, "spend", 1).await.is_ok());
            }
            admitted
        });
    }
    for _ in 0..10 {
        limiter
            .repository()
            .top_up("team-1", "gpt-4", "spend", 3)
            .await
            .unwrap();
        tokio::task::yield_now().await;
    }
    let admitted: u64 = tasks.join_all().await.into_iter().sum();
    let left = left(&limiter, "spend").await;
    assert_eq!(i64::try_from(admitted).unwrap() + left, 40);
}

//! Limits that are only observed, bypassed, or disabled altogether.

use zae_limiter::error::NotFound;
use zae_limiter::{
    Admission, ConfigLevel, Error, Mode, NewEntity, OnUnavailable, PageRequest, RateLimiter, RetryAfter,
};

use crate::acquire::support::*;

fn resource() -> ConfigLevel {
    ConfigLevel::Resource(GPT.parse().unwrap())
}

fn entity(id: &str) -> ConfigLevel {
    ConfigLevel::Entity(id.parse().unwrap(), GPT.parse().unwrap())
}

async fn set_mode(limiter: &RateLimiter, level: &ConfigLevel, mode: Mode) {
    limiter.repository().set_mode(level, mode).await.unwrap();
}

async fn refresh(limiter: &RateLimiter, level: &ConfigLevel) -> u64 {
    let mut page = PageRequest::new(1);
    let mut buckets = 0;
    loop {
        let refreshed = limiter.repository().refresh_buckets(level, &page).await.unwrap();
        buckets += refreshed.buckets;
        match refreshed.next {
            Some(next) => page = page.after(next),
            None => return buckets,
        }
    }
}

/// A limiter with a mode for the resource, and nothing requested of its connection yet.
async fn limiter_in(stage: &Stage, mode: Mode) -> RateLimiter {
    let limiter = stage.limiter(&["rpd:10/day"]).await;
    set_mode(&limiter, &resource(), mode).await;
    stage.wire.calls();
    limiter
}

fn assert_disabled(result: Result<(), Error>, by: &str) {
    match result {
        Err(Error::Disabled { entity, .. }) => assert_eq!(entity.as_str(), by),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn an_observed_refusal_passes_takes_nothing_and_is_reported() {
    let stage = Stage::new();
    let limiter = limiter_in(&stage, Mode::Observe).await;
    let counted = lease(&limiter, "user-1", "rpd", 8).await.unwrap();
    assert_eq!(counted.admission(), Admission::Counted);
    assert!(counted.observed_limits().is_empty());
    counted.commit().await.unwrap();

    let mut observed = lease(&limiter, "user-1", "rpd", 3).await.unwrap();
    assert_eq!(observed.admission(), Admission::Observed);
    let limits = observed.observed_limits();
    assert_eq!(limits.len(), 1);
    assert_eq!((limits[0].available, limits[0].requested), (2, 3));
    assert!(limits[0].observed && !limits[0].refused);
    // What the call used more is no debt either.
    observed.adjust("rpd", 50);
    assert_eq!(observed.consumed().values().sum::<i64>(), 53);
    observed.commit().await.unwrap();
    drop(lease(&limiter, "user-1", "rpd", 3).await.unwrap());
    lease(&limiter, "user-1", "rpd", 9)
        .await
        .unwrap()
        .rollback()
        .await
        .unwrap();
    limiter.settled().await;
    assert_eq!(available(&limiter, "user-1", "rpd").await, 2);
    take(&limiter, "user-1", "rpd", 2).await.unwrap();

    let stats = limiter.stats();
    assert_eq!((stats.granted, stats.observed, stats.refused), (2, 3, 0));
    tokio::time::sleep(secs(66)).await;
    let bucket = stage.bucket("user-1").await.unwrap();
    assert_eq!((bucket.number("ro"), bucket.number("rj")), (Some(3), None));
}

#[tokio::test(start_paused = true)]
async fn what_an_observed_lease_consumes_later_follows_the_mode_too() {
    let stage = Stage::new();
    let limiter = limiter_in(&stage, Mode::Observe).await;
    let mut stream = lease(&limiter, "user-1", "rpd", 8).await.unwrap();
    stream.consume("rpd", 5).await.unwrap();
    assert_eq!(stream.admission(), Admission::Observed);
    stream.consume("rpd", 1).await.unwrap();
    assert_eq!(stream.consumed().values().sum::<i64>(), 14);
    // Some of it was taken: that can be corrected.
    stream.adjust("rpd", -2);
    stream.commit().await.unwrap();
    assert_eq!(available(&limiter, "user-1", "rpd").await, 10 - 8 - 1 + 2);
}

#[tokio::test(start_paused = true)]
async fn repeated_observed_refusals_cost_no_request() {
    let stage = Stage::new();
    let limiter = limiter_in(&stage, Mode::Observe).await;
    take(&limiter, "user-1", "rpd", 10).await.unwrap();
    stage.wire.calls();
    for _ in 0..100 {
        take(&limiter, "user-1", "rpd", 1).await.unwrap();
    }
    assert!(stage.wire.operations().is_empty());
    assert_eq!(limiter.stats().observed, 100);
}

#[tokio::test(start_paused = true)]
async fn bypassed_calls_pass_without_a_request_and_nothing_is_counted() {
    let stage = Stage::new();
    let limiter = limiter_in(&stage, Mode::Bypass).await;
    take(&limiter, "user-1", "rpd", 1).await.unwrap();
    stage.wire.calls();
    for _ in 0..20 {
        let mut lease = lease(&limiter, "user-1", "rpd", 1_000).await.unwrap();
        assert_eq!(lease.admission(), Admission::Bypassed);
        assert!(lease.statuses().is_empty());
        lease.consume("rpd", 500).await.unwrap();
        lease.adjust("rpd", 100);
        assert_eq!(lease.consumed().values().sum::<i64>(), 1_600);
        lease.commit().await.unwrap();
    }
    // Nothing is checked that would need limits.
    take(&limiter, "user-1", "other", 1).await.unwrap();
    limiter.adjust("user-1", GPT, [("rpd", 5)]).await.unwrap();
    limiter.settled().await;
    assert!(
        stage.wire.operations().is_empty(),
        "{:?}",
        stage.wire.operations()
    );
    assert_eq!(stage.bucket("user-1").await, None);
    let stats = limiter.stats();
    assert_eq!((stats.granted, stats.observed, stats.refused), (0, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_resource_can_be_bypassed_or_disabled_without_limits() {
    let stage = Stage::new();
    let limiter = stage.limiter(&[]).await;
    let error = take(&limiter, "user-1", "rpd", 1).await.unwrap_err();
    assert!(
        matches!(error, Error::NotFound(NotFound::Limits { .. })),
        "{error}"
    );
    set_mode(&limiter, &resource(), Mode::Bypass).await;
    take(&limiter, "user-1", "rpd", 1).await.unwrap();
    set_mode(&limiter, &resource(), Mode::Disabled).await;
    assert_disabled(take(&limiter, "user-1", "rpd", 1).await, "user-1");
}

#[tokio::test(start_paused = true)]
async fn a_disabled_resource_refuses_at_once_with_an_error_of_its_own() {
    let stage = Stage::new();
    let limiter = limiter_in(&stage, Mode::Disabled).await;
    assert_disabled(take(&limiter, "user-1", "rpd", 1).await, "user-1");
    stage.wire.calls();
    let error = take(&limiter, "user-1", "rpd", 1).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "entity user-1 may not use gpt-4: the mode of the resource is disabled"
    );
    assert!(!error.is_unavailable());
    let waiting = limiter
        .acquire("user-1", GPT)
        .consume("rpd", 1)
        .wait_up_to(secs(60));
    assert_disabled(waiting.commit().await, "user-1");
    assert!(stage.wire.operations().is_empty());
    let stats = limiter.stats();
    assert_eq!((stats.disabled, stats.refused, stats.unavailable), (3, 0, 0));

    let peek = limiter
        .acquire("user-1", GPT)
        .consume("rpd", 1)
        .peek()
        .await
        .unwrap();
    assert!(peek.is_disabled() && !peek.would_pass());
    assert_eq!(
        (peek.retry_after(), peek.tokens("rpd")),
        (RetryAfter::Never, Some(10))
    );
}

#[tokio::test(start_paused = true)]
async fn the_most_specific_level_with_a_mode_decides() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["rpd:10/day"]).await;
    let every_resource = ConfigLevel::EntityDefault("tester".parse().unwrap());
    let admitted = async || take(&limiter, "tester", "rpd", 1).await;
    for (level, mode, passes) in [
        (&ConfigLevel::System, Mode::Disabled, false),
        (&resource(), Mode::Observe, true),
        (&every_resource, Mode::Disabled, false),
        (&entity("tester"), Mode::Enforce, true),
    ] {
        set_mode(&limiter, level, mode).await;
        assert_eq!(admitted().await.is_ok(), passes, "{level}");
    }
    let resolved = limiter.repository().resolve_limits("tester", GPT).await.unwrap();
    assert_eq!(
        (resolved.mode, resolved.mode_from.as_str()),
        (Mode::Enforce, "entity")
    );
    assert_eq!(drain(&limiter, "tester", "rpd").await, 8, "it is enforced");
    for level in [&entity("tester"), &every_resource, &resource()] {
        assert!(limiter.repository().delete_mode(level).await.unwrap());
        assert!(!limiter.repository().delete_mode(level).await.unwrap());
        assert_eq!(
            limiter.repository().get_config(level).await.unwrap(),
            None,
            "{level}"
        );
    }
    assert_disabled(admitted().await, "tester");
    assert!(
        limiter
            .repository()
            .delete_mode(&ConfigLevel::System)
            .await
            .unwrap()
    );
    exceeded(admitted().await.unwrap_err());
}

/// A user whose organization is charged too.
async fn family(stage: &Stage, user: Mode, org: Mode) -> RateLimiter {
    let limiter = stage.limiter(&["rpd:10/day"]).await;
    create(&limiter, NewEntity::new("org")).await;
    create(&limiter, child("user-1", "org")).await;
    set_limits(&limiter, "org", &["rpd:20/day"]).await;
    set_mode(&limiter, &entity("user-1"), user).await;
    set_mode(&limiter, &entity("org"), org).await;
    limiter
}

async fn left(limiter: &RateLimiter) -> [i64; 2] {
    limiter.settled().await;
    [
        available(limiter, "user-1", "rpd").await,
        available(limiter, "org", "rpd").await,
    ]
}

#[tokio::test(start_paused = true)]
async fn every_level_of_a_tree_follows_its_own_mode() {
    for (user, org, tokens, admission, after) in [
        (Mode::Observe, Mode::Enforce, 5, Some(Admission::Counted), [5, 15]),
        // The organization's limit is enforced, so that it must count what passes.
        (
            Mode::Observe,
            Mode::Enforce,
            15,
            Some(Admission::Observed),
            [10, 5],
        ),
        (Mode::Observe, Mode::Enforce, 25, None, [10, 20]),
        (Mode::Enforce, Mode::Observe, 15, None, [10, 20]),
        (
            Mode::Observe,
            Mode::Observe,
            25,
            Some(Admission::Observed),
            [10, 20],
        ),
        (Mode::Bypass, Mode::Enforce, 15, Some(Admission::Counted), [10, 5]),
        (Mode::Bypass, Mode::Enforce, 25, None, [10, 20]),
        (
            Mode::Bypass,
            Mode::Observe,
            25,
            Some(Admission::Observed),
            [10, 20],
        ),
        (Mode::Enforce, Mode::Bypass, 5, Some(Admission::Counted), [5, 20]),
        (
            Mode::Bypass,
            Mode::Bypass,
            99,
            Some(Admission::Bypassed),
            [10, 20],
        ),
    ] {
        let stage = Stage::new();
        let limiter = family(&stage, user, org).await;
        let case = format!("{user} under {org}, {tokens}");
        match (lease(&limiter, "user-1", "rpd", tokens).await, admission) {
            (Ok(lease), Some(admission)) => {
                assert_eq!(lease.admission(), admission, "{case}");
                lease.commit().await.unwrap();
            }
            (Err(Error::Refused(refusal)), None) => {
                let refused: Vec<_> = refusal
                    .refused_limits()
                    .map(|status| status.entity.as_str())
                    .collect();
                let enforced = if org == Mode::Enforce { "org" } else { "user-1" };
                assert_eq!(refused, [enforced], "{case}");
            }
            (other, _) => panic!("{case}: {other:?}"),
        }
        assert_eq!(left(&limiter).await, after, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn adjustments_and_refunds_reach_only_what_was_taken() {
    let stage = Stage::new();
    let limiter = family(&stage, Mode::Observe, Mode::Enforce).await;
    let mut observed = lease(&limiter, "user-1", "rpd", 12).await.unwrap();
    observed.adjust("rpd", 3);
    observed.commit().await.unwrap();
    assert_eq!(left(&limiter).await, [10, 5]);
    let back = lease(&limiter, "user-1", "rpd", 11).await;
    exceeded(back.unwrap_err());
    lease(&limiter, "user-1", "rpd", 5)
        .await
        .unwrap()
        .rollback()
        .await
        .unwrap();
    assert_eq!(left(&limiter).await, [10, 5]);
}

#[tokio::test(start_paused = true)]
async fn a_disabled_parent_refuses_for_all_its_children() {
    let stage = Stage::new();
    let limiter = family(&stage, Mode::Bypass, Mode::Disabled).await;
    assert_disabled(take(&limiter, "user-1", "rpd", 1).await, "org");
}

#[tokio::test(start_paused = true)]
async fn calls_do_not_wait_for_limits_that_are_only_observed() {
    let stage = Stage::new();
    let limiter = limiter_in(&stage, Mode::Observe).await;
    take(&limiter, "user-1", "rpd", 10).await.unwrap();
    let before = tokio::time::Instant::now();
    let call = limiter
        .acquire("user-1", GPT)
        .consume("rpd", 5)
        .wait_up_to(secs(3_600));
    assert_eq!(call.await.unwrap().admission(), Admission::Observed);
    assert!(before.elapsed() < secs(1));
}

#[tokio::test(start_paused = true)]
async fn a_call_waits_for_the_parent_whose_limit_is_enforced() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["rps:10/sec"]).await;
    create(&limiter, NewEntity::new("org")).await;
    create(&limiter, child("user-1", "org")).await;
    set_mode(&limiter, &entity("user-1"), Mode::Observe).await;
    take(&limiter, "user-1", "rps", 10).await.unwrap();
    let call = limiter
        .acquire("user-1", GPT)
        .consume("rps", 10)
        .wait_up_to(secs(5));
    call.await.unwrap().commit().await.unwrap();
    assert_eq!(limiter.stats().refused, 0);
}

#[tokio::test(start_paused = true)]
async fn limits_of_a_call_are_observed_like_stored_ones() {
    let stage = Stage::new();
    let limiter = limiter_in(&stage, Mode::Observe).await;
    let call = || {
        limiter
            .acquire("user-1", GPT)
            .limits(limits(&["jobs:3/day"]))
            .consume("jobs", 2)
    };
    assert_eq!(call().await.unwrap().admission(), Admission::Counted);
    let (first, second) = (call().await.unwrap(), call().await.unwrap());
    assert_eq!(
        (first.admission(), second.admission()),
        (Admission::Counted, Admission::Observed)
    );
}

#[tokio::test(start_paused = true)]
async fn chunks_are_spent_as_long_as_they_last_and_the_rest_is_observed() {
    let stage = Stage::new();
    let builder = stage
        .builder()
        .default_limits(limits(&["rpd:1000/day"]))
        .token_chunks();
    let limiter = builder.await.unwrap();
    set_mode(&limiter, &resource(), Mode::Observe).await;
    let mut observed = 0;
    for _ in 0..1_200 {
        let lease = lease(&limiter, "user-1", "rpd", 1).await.unwrap();
        observed += u64::from(lease.admission() == Admission::Observed);
        lease.commit().await.unwrap();
    }
    let stats = limiter.stats();
    assert_eq!(observed, 200);
    assert_eq!((stats.granted, stats.observed, stats.refused), (1_000, 200, 0));
}

#[tokio::test(start_paused = true)]
async fn an_outage_opens_nothing_that_is_disabled_and_closes_nothing_that_is_not_enforced() {
    for (mode, policy) in [
        (Mode::Observe, OnUnavailable::Block),
        (Mode::Bypass, OnUnavailable::Block),
        (Mode::Disabled, OnUnavailable::Allow),
    ] {
        for fraction in [false, true] {
            let stage = Stage::new();
            let mut builder = stage
                .builder()
                .default_limits(limits(&["rpd:10/day"]))
                .on_unavailable(policy);
            if fraction {
                builder = builder.outage_fraction(4.try_into().unwrap());
            }
            let limiter = builder.await.unwrap();
            set_mode(&limiter, &resource(), mode).await;
            drop(take(&limiter, "user-1", "rpd", 1).await);
            stage.wire.always(Fault::Silence);
            // Long enough for the cache to expire, and for the breaker to open.
            for _ in 0..20 {
                advance(secs(10)).await;
                // Both the entity that is known and one that was never seen.
                for user in ["user-1", "user-2"] {
                    let admission = lease(&limiter, user, "rpd", 50).await.map(|lease| {
                        let admission = lease.admission();
                        lease.commit_in_background();
                        admission
                    });
                    match (mode, admission) {
                        (Mode::Observe, Ok(Admission::AllowedWhileUnavailable | Admission::Observed))
                        | (Mode::Bypass, Ok(Admission::Bypassed))
                        | (Mode::Disabled, Err(Error::Disabled { .. })) => {}
                        (_, other) => panic!("{mode}, {user}: {other:?}"),
                    }
                }
            }
        }
    }
}

/// One limiter sets modes, another acquires with a configuration that it has read before.
struct Two {
    stage: Stage,
    admin: RateLimiter,
    user: RateLimiter,
}

impl Two {
    async fn new() -> Self {
        let stage = Stage::new();
        let admin = stage.limiter(&[]).await;
        set_resource_limits(&admin, &["rpd:10/day"]).await;
        let user = stage.limiter(&[]).await;
        take(&user, "user-1", "rpd", 1).await.unwrap();
        Self { stage, admin, user }
    }

    async fn call(&self, entity: &str, tokens: u64) -> String {
        // So long a refusal may be remembered.
        advance(millis(1_100)).await;
        match lease(&self.user, entity, "rpd", tokens).await {
            Ok(lease) => {
                let admission = lease.admission();
                lease.commit().await.unwrap();
                format!("{admission:?}")
            }
            Err(Error::Disabled { .. }) => "Disabled".to_owned(),
            Err(Error::Refused(_)) => "Refused".to_owned(),
            Err(error) => panic!("{error}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_mode_reaches_other_processes_within_the_ttl_of_their_cache() {
    let two = Two::new().await;
    for (mode, outcome) in [
        (Mode::Disabled, "Disabled"),
        (Mode::Observe, "Observed"),
        (Mode::Bypass, "Bypassed"),
        (Mode::Enforce, "Refused"),
    ] {
        set_mode(&two.admin, &resource(), mode).await;
        advance(secs(61)).await;
        assert_eq!(two.call("user-1", 50).await, outcome);
    }
}

#[tokio::test(start_paused = true)]
async fn refreshed_buckets_follow_a_new_mode_with_the_next_write() {
    let two = Two::new().await;
    assert_eq!(two.call("user-1", 50).await, "Refused");
    set_mode(&two.admin, &resource(), Mode::Observe).await;
    assert_eq!(
        two.call("user-1", 50).await,
        "Refused",
        "the cache has not expired"
    );
    assert_eq!(refresh(&two.admin, &resource()).await, 1);
    assert_eq!(two.call("user-1", 50).await, "Observed");

    set_mode(&two.admin, &resource(), Mode::Enforce).await;
    assert_eq!(refresh(&two.admin, &resource()).await, 1);
    assert_eq!(two.call("user-1", 50).await, "Refused");
    assert_eq!(two.call("user-1", 1).await, "Counted");

    set_mode(&two.admin, &resource(), Mode::Disabled).await;
    assert_eq!(refresh(&two.admin, &resource()).await, 1);
    assert_eq!(two.call("user-1", 1).await, "Disabled");
    assert_eq!(two.call("user-1", 1).await, "Disabled");
    two.user.settled().await;
    assert_eq!(
        available(&two.admin, "user-1", "rpd").await,
        8,
        "nothing of it stays taken"
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_that_meets_a_refreshed_bucket_for_the_first_time_reads_the_configuration_again() {
    let two = Two::new().await;
    // Known to the administrator's process only; the other has the limits of the resource in its cache.
    take(&two.admin, "user-2", "rpd", 1).await.unwrap();
    set_mode(&two.admin, &resource(), Mode::Disabled).await;
    assert_eq!(refresh(&two.admin, &resource()).await, 2);
    assert_eq!(two.call("user-2", 1).await, "Disabled");
}

#[tokio::test(start_paused = true)]
async fn a_refreshed_bucket_is_reloaded_once_and_costs_nothing_afterwards() {
    let two = Two::new().await;
    set_mode(&two.admin, &entity("user-2"), Mode::Observe).await;
    assert_eq!(refresh(&two.admin, &resource()).await, 1);
    two.stage.wire.calls();
    assert_eq!(two.call("user-1", 1).await, "Counted");
    assert_eq!(
        two.stage.wire.operations(),
        ["UpdateItem", "BatchGetItem", "UpdateItem"]
    );
    assert_eq!(two.call("user-1", 1).await, "Counted");
    assert_eq!(two.stage.wire.operations(), ["UpdateItem"]);
    // Much later a process that knows nothing has read a configuration that is newer than the bump.
    advance(secs(3_600)).await;
    let late = two.stage.limiter(&[]).await;
    take(&late, "user-1", "rpd", 1).await.unwrap();
    assert_eq!(two.stage.wire.operations(), ["BatchGetItem", "UpdateItem"]);
}

#[tokio::test(start_paused = true)]
async fn every_level_finds_the_buckets_that_it_concerns() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["rpd:10/day"]).await;
    for user in ["user-1", "user-2", "user-3"] {
        for resource in [GPT, "gpt-5"] {
            let call = limiter.acquire(user, resource).consume("rpd", 1);
            call.commit().await.unwrap();
        }
    }
    let every_resource = ConfigLevel::EntityDefault("user-1".parse().unwrap());
    for (level, buckets) in [
        (&entity("user-1"), 1),
        (&entity("nobody"), 0),
        (&every_resource, 2),
        (&resource(), 3),
        (&ConfigLevel::System, 6),
    ] {
        advance(secs(1)).await;
        assert_eq!(refresh(&limiter, level).await, buckets, "{level}");
    }
    let nothing = limiter
        .repository()
        .refresh_buckets(&resource(), &PageRequest::new(0))
        .await;
    assert!(nothing.unwrap_err().to_string().contains("page size"));
}

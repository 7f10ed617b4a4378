//! What happens while the table cannot be reached.

use tokio::time::Instant;
use zae_limiter::error::{Internal, NotFound};
use zae_limiter::{Admission, ConfigChange, ConfigLevel, Error, OnUnavailable, RateLimiter};

use crate::acquire::support::*;

use OnUnavailable::{Allow, Block};

/// Everything that counts as unavailability.
pub(crate) const OUTAGES: [Fault; 6] = [
    Fault::LostRequest,
    Fault::LostResponse,
    Fault::Silence,
    Fault::ServerError,
    Fault::Throttled,
    Fault::Conflict,
];

async fn admission(limiter: &RateLimiter, entity: &str, resource: &str) -> Result<Admission, Error> {
    let lease = limiter.acquire(entity, resource).consume("rpm", 1).await?;
    let admission = lease.admission();
    lease.commit().await?;
    Ok(admission)
}

fn allowed(result: Result<Admission, Error>) -> bool {
    match result {
        Ok(Admission::AllowedWhileUnavailable) => true,
        Err(error) if error.is_unavailable() => false,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn every_kind_of_outage_follows_the_policy_within_the_budget() {
    for warm in [false, true] {
        for outage in OUTAGES {
            for policy in [Allow, Block] {
                let stage = Stage::new();
                let builder = stage.builder().default_limits(limits(&["rpm:10"]));
                let limiter = builder.on_unavailable(policy).await.unwrap();
                if warm {
                    take(&limiter, "user-1", "rpm", 1).await.unwrap();
                }
                stage.wire.always(outage);
                let before = Instant::now();
                let result = admission(&limiter, "user-1", GPT).await;
                let took = before.elapsed();
                assert_eq!(allowed(result), policy == Allow, "{outage:?}, warm {warm}");
                assert!(took <= millis(1001), "{outage:?}, warm {warm}: {took:?}");
                assert_eq!(limiter.stats().unavailable, 1);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_short_outage_is_waited_out_and_counted() {
    for outage in OUTAGES {
        let stage = Stage::new();
        let limiter = stage.limiter(&["rpm:10"]).await;
        take(&limiter, "user-1", "rpm", 1).await.unwrap();
        stage.wire.plan("UpdateItem", [outage]);
        assert_eq!(
            admission(&limiter, "user-1", GPT).await.unwrap(),
            Admission::Counted,
            "{outage:?}"
        );
        assert_eq!(
            stage.bucket("user-1").await.unwrap().consumed("rpm"),
            2_000,
            "{outage:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_most_specific_policy_decides_without_the_network() {
    let stage = Stage::new();
    let admin = stage.limiter(&[]).await;
    let system = ConfigChange::new()
        .limits(limits(&["rpm:10"]))
        .on_unavailable(Block);
    admin
        .repository()
        .set_config(&ConfigLevel::System, system)
        .await
        .unwrap();
    let resource = ConfigLevel::Resource("open".parse().unwrap());
    admin
        .repository()
        .set_config(&resource, ConfigChange::new().on_unavailable(Allow))
        .await
        .unwrap();
    let blocked = ConfigLevel::Entity("user-1".parse().unwrap(), "open".parse().unwrap());
    let limited = ConfigChange::new().limits(limits(&["rpm:10"]));
    admin
        .repository()
        .set_config(&blocked, limited.on_unavailable(Block))
        .await
        .unwrap();
    let friend = ConfigLevel::EntityDefault("friend".parse().unwrap());
    let limited = ConfigChange::new().limits(limits(&["rpm:10"]));
    admin
        .repository()
        .set_config(&friend, limited.on_unavailable(Allow))
        .await
        .unwrap();

    let limiter = stage.builder().on_unavailable(Allow).await.unwrap();
    let cases = [
        ("user-1", "open", false, "entity and resource"),
        ("friend", "closed", true, "entity"),
        ("user-2", "open", true, "resource"),
        ("user-2", "closed", false, "system"),
    ];
    for (entity, resource, _, _) in cases {
        admission(&limiter, entity, resource).await.unwrap();
    }
    stage.wire.always(Fault::LostRequest);
    for (entity, resource, expected, level) in cases {
        let result = admission(&limiter, entity, resource).await;
        assert_eq!(allowed(result), expected, "{level}");
    }
    // However old it is.
    advance(secs(3600)).await;
    for (entity, resource, expected, level) in cases {
        let result = admission(&limiter, entity, resource).await;
        assert_eq!(allowed(result), expected, "{level}, an hour later");
    }
    // Entities that were never seen: by what is known of the resource and the system.
    assert!(allowed(admission(&limiter, "stranger", "open").await));
    assert!(!allowed(admission(&limiter, "stranger", "closed").await));
    // The call stands above all.
    let call = |policy| {
        limiter
            .acquire("user-1", "open")
            .consume("rpm", 1)
            .on_unavailable(policy)
    };
    assert!(call(Allow).await.is_ok());
    assert!(call(Block).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_limiter_that_has_seen_nothing_follows_its_builder() {
    for policy in [Allow, Block] {
        let stage = Stage::new();
        let builder = stage.builder().default_limits(limits(&["rpm:10"]));
        let limiter = builder.on_unavailable(policy).await.unwrap();
        stage.wire.always(Fault::Silence);
        assert_eq!(allowed(admission(&limiter, "user-1", GPT).await), policy == Allow);
    }
}

#[tokio::test(start_paused = true)]
async fn denials_missing_tables_and_malformed_requests_never_fail_open() {
    for warm in [false, true] {
        for fault in [Fault::Denied, Fault::NoTable, Fault::Invalid] {
            let stage = Stage::new();
            let builder = stage.builder().default_limits(limits(&["rpm:10"]));
            let limiter = builder.on_unavailable(Allow).await.unwrap();
            if warm {
                take(&limiter, "user-1", "rpm", 1).await.unwrap();
            }
            stage.wire.always(fault);
            let call = limiter.acquire("user-1", GPT).consume("rpm", 1);
            let error = call.on_unavailable(Allow).await.unwrap_err();
            assert!(!error.is_unavailable(), "{fault:?}, warm {warm}: {error}");
            let fits = match fault {
                Fault::Denied => matches!(error, Error::PermissionDenied { .. }),
                Fault::NoTable => matches!(error, Error::NotFound(NotFound::Table { .. })),
                _ => matches!(error, Error::Internal(Internal::BadRequest { .. })),
            };
            assert!(fits, "{fault:?}, warm {warm}: {error:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn throttling_and_conflicts_are_never_reported_as_an_exceeded_limit() {
    for fault in [Fault::Throttled, Fault::Conflict, Fault::ServerError] {
        let stage = Stage::new();
        let limiter = stage.limiter(&["rpm:10"]).await;
        take(&limiter, "user-1", "rpm", 1).await.unwrap();
        stage.wire.always_for("UpdateItem", fault);
        let error = take(&limiter, "user-1", "rpm", 1).await.unwrap_err();
        assert!(error.is_unavailable(), "{fault:?}: {error}");
        assert_eq!(limiter.stats().refused, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_allowed_while_unavailable_is_not_counted_later() {
    let stage = Stage::new();
    let builder = stage.builder().default_limits(limits(&["rpm:10"]));
    let limiter = builder.on_unavailable(Allow).await.unwrap();
    take(&limiter, "user-1", "rpm", 1).await.unwrap();
    stage.wire.always(Fault::LostRequest);
    let mut lease = lease(&limiter, "user-1", "rpm", 3).await.unwrap();
    assert_eq!(lease.admission(), Admission::AllowedWhileUnavailable);
    assert!(lease.statuses().is_empty());
    lease.adjust("rpm", 2);
    lease.consume("rpm", 1).await.unwrap();
    assert_eq!(lease.consumed().values().copied().collect::<Vec<_>>(), [6]);
    stage.wire.heal();
    lease.commit().await.unwrap();
    limiter.settled().await;
    assert_eq!(stage.bucket("user-1").await.unwrap().consumed("rpm"), 1_000);
}

#[tokio::test(start_paused = true)]
async fn more_of_a_lease_follows_the_policy_too() {
    for (policy, allowed) in [(Allow, true), (Block, false)] {
        let stage = Stage::new();
        let limiter = stage.limiter(&["rpm:10"]).await;
        let call = limiter.acquire("user-1", GPT).consume("rpm", 2);
        let mut lease = call.on_unavailable(policy).await.unwrap();
        stage.wire.always(Fault::LostRequest);
        assert_eq!(lease.consume("rpm", 1).await.is_ok(), allowed);
        let admission = if allowed {
            Admission::PartlyCounted
        } else {
            Admission::Counted
        };
        assert_eq!(lease.admission(), admission);
        stage.wire.heal();
        lease.consume("rpm", 2).await.unwrap();
        assert_eq!(
            lease.admission(),
            admission,
            "what came later does not make up for it"
        );
        lease.commit().await.unwrap();
        limiter.settled().await;
        assert_eq!(stage.bucket("user-1").await.unwrap().consumed("rpm"), 4_000);
    }
}

#[tokio::test(start_paused = true)]
async fn more_calls_at_a_time_than_a_bucket_can_serve_never_fail_open() {
    let stage = Stage::new();
    let builder = stage.builder().default_limits(limits(&["rpm:100000"]));
    let limiter = builder.on_unavailable(Allow).await.unwrap();
    take(&limiter, "user-1", "rpm", 1).await.unwrap();
    stage.wire.latency(millis(10));
    let calls: Vec<_> = (0..10_002)
        .map(|_| {
            let limiter = limiter.clone();
            tokio::spawn(async move { admission(&limiter, "user-1", GPT).await })
        })
        .collect();
    let (mut counted, mut overloaded) = (0, 0);
    for call in calls {
        match call.await.unwrap() {
            Ok(Admission::Counted) => counted += 1,
            Err(Error::Overloaded { limit, .. }) => overloaded += u64::from(limit == 10_000),
            other => panic!("{other:?}"),
        }
    }
    assert!(overloaded > 0, "{counted} counted");
    assert_eq!(counted + overloaded, 10_002);
    assert_eq!(limiter.stats().unavailable, 0);
}

#[tokio::test(start_paused = true)]
async fn is_available_tells_and_never_fails() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["rpm:10"]).await;
    assert!(limiter.is_available().await);
    for outage in OUTAGES {
        stage.wire.always(outage);
        let before = Instant::now();
        assert!(!limiter.is_available().await, "{outage:?}");
        assert!(before.elapsed() <= millis(1001));
    }
    stage.wire.heal();
    assert!(limiter.is_available().await);
}

#[tokio::test(start_paused = true)]
async fn many_callers_of_a_dead_bucket_are_all_answered_in_time() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["rpm:1000"]).await;
    take(&limiter, "user-1", "rpm", 1).await.unwrap();
    stage.wire.always(Fault::Silence);
    let before = Instant::now();
    let calls: Vec<_> = (0..200)
        .map(|number| {
            let limiter = limiter.clone();
            tokio::spawn(async move {
                tokio::time::sleep(millis(number * 20)).await;
                let started = Instant::now();
                let error = take(&limiter, "user-1", "rpm", 1).await.unwrap_err();
                (error, started.elapsed())
            })
        })
        .collect();
    for call in calls {
        let (error, took) = call.await.unwrap();
        assert!(
            error.is_unavailable() && took <= millis(1001),
            "{took:?}: {error}"
        );
    }
    assert!(before.elapsed() <= secs(6));
    stage.wire.heal();
    // What is unconfirmed is searched for at intervals of up to a second, as long as the whole budget of a call.
    limiter.settled().await;
    take(&limiter, "user-1", "rpm", 1).await.unwrap();
}

//! The limiter for code without async.

use std::time::Duration;

use zae_limiter::blocking::{Lease, RateLimiter};
use zae_limiter::money::{Estimate, MicroDollars, Prices, Usage};
use zae_limiter::{EmbeddedStore, Error, Limit, ManualClock, OnUnavailable, Timestamp};

fn limiter_in(store: &EmbeddedStore) -> RateLimiter {
    // A clock that stands still: nothing comes back while a test runs.
    let clock = ManualClock::at(Timestamp::parse("2026-01-31T12:00:00Z").unwrap());
    zae_limiter::RateLimiter::embedded_in(store)
        .clock(clock)
        .default_limits([
            Limit::per_day("rpd", 10).unwrap(),
            Limit::per_day("tpd", 1000).unwrap(),
        ])
        .build_blocking()
        .unwrap()
}

fn limiter() -> RateLimiter {
    limiter_in(&EmbeddedStore::memory().unwrap())
}

fn available(limiter: &RateLimiter, limit: &str) -> i64 {
    let peek = limiter.acquire("user-1", "gpt-4").peek().unwrap();
    let status = peek
        .statuses()
        .iter()
        .find(|status| status.limit.name().as_str() == limit);
    status.unwrap().available
}

#[test]
fn all_kinds_of_limits_are_taken_together_and_permits_are_released() {
    let limiter = limiter();
    let limits = ["rpd:10/day", "spend:100 per month", "parallel:1 at once for 60s"];
    let limits: Vec<Limit> = limits.iter().map(|text| text.parse().unwrap()).collect();
    let set = limiter.repository().set_limits("user-1", "gpt-4", limits);
    limiter.wait(set).unwrap();
    let call = || limiter.acquire("user-1", "gpt-4").consume("rpd", 1);
    let all = || call().consume("spend", 60).consume("parallel", 1);
    let mut lease = all().lease().unwrap();
    assert!(!lease.is_lost());
    assert!(
        matches!(all().lease(), Err(Error::Refused(_))),
        "the permit is held"
    );
    lease.adjust("spend", -30);
    lease.commit().unwrap();
    assert_eq!(
        (available(&limiter, "spend"), available(&limiter, "parallel")),
        (70, 1)
    );
    all().lease().unwrap().commit().unwrap();
    assert!(
        matches!(all().lease(), Err(Error::Refused(_))),
        "the quota is used up"
    );
    assert_eq!(
        (available(&limiter, "rpd"), available(&limiter, "parallel")),
        (8, 1)
    );
}

#[test]
fn several_resources_are_taken_and_corrected_together() {
    let limiter = limiter();
    let call = limiter.acquire("user-1", "gpt-4").consume("rpd", 4);
    let mut lease = call
        .and("budget")
        .cascade(false)
        .consume("tpd", 100)
        .lease()
        .unwrap();
    lease.on("budget").adjust("tpd", 50).release("tpd", 10);
    lease.on("budget").consume("rpd", 1).unwrap();
    assert_eq!(lease.resource_of("tpd").unwrap().as_str(), "budget");
    assert_eq!(lease.resources().count(), 2);
    assert_eq!(lease.consumed().into_values().collect::<Vec<_>>(), [4]);
    let budget = lease.consumed_on("budget").unwrap();
    assert_eq!(budget.into_values().collect::<Vec<_>>(), [1, 140]);
    lease.commit().unwrap();
    let peek = limiter.acquire("user-1", "gpt-4").and("budget").peek().unwrap();
    assert_eq!(
        (peek.tokens_on("gpt-4", "rpd"), peek.tokens_on("budget", "tpd")),
        (Some(6), Some(860))
    );
}

#[test]
fn tokens_are_taken_adjusted_and_refused() {
    let limiter = limiter();
    let call = || {
        limiter
            .acquire("user-1", "gpt-4")
            .consume("rpd", 4)
            .consume("tpd", 100)
    };
    let mut lease = call().lease().unwrap();
    assert_eq!(
        (lease.entity().as_str(), lease.resource().as_str()),
        ("user-1", "gpt-4")
    );
    assert_eq!(lease.statuses()[0].available, 6);
    lease.adjust("tpd", 50).release("tpd", 10);
    lease.consume("rpd", 1).unwrap();
    assert_eq!(lease.consumed().values().copied().collect::<Vec<_>>(), [5, 140]);
    lease.commit().unwrap();
    assert_eq!((available(&limiter, "rpd"), available(&limiter, "tpd")), (5, 860));
    call().lease().unwrap().rollback().unwrap();
    call().lease().unwrap().commit().unwrap();
    let Err(Error::Refused(exceeded)) = call().lease() else {
        panic!("not refused")
    };
    assert_eq!(exceeded.primary_limit().unwrap().limit.name().as_str(), "rpd");
    let stats = limiter.stats();
    assert_eq!((stats.granted, stats.refused), (3, 1));
}

#[test]
fn a_body_that_succeeds_commits_and_one_that_fails_rolls_back() {
    let limiter = limiter();
    let run = |succeeds: bool| {
        let call = limiter.acquire("user-1", "gpt-4").consume("tpd", 500);
        call.run(|lease: &mut Lease| {
            lease.adjust("tpd", -100);
            if succeeds {
                Ok("response")
            } else {
                Err(Error::from("".parse::<zae_limiter::EntityId>().unwrap_err()))
            }
        })
    };
    run(false).unwrap_err();
    assert_eq!(available(&limiter, "tpd"), 1000);
    assert_eq!(run(true).unwrap(), "response");
    assert_eq!(available(&limiter, "tpd"), 600);
}

#[test]
fn a_lease_that_is_dropped_goes_back_also_after_the_limiter_is_gone() {
    let store = EmbeddedStore::memory().unwrap();
    let limiter = limiter_in(&store);
    let other = limiter_in(&store);
    let lease = limiter
        .acquire("user-1", "gpt-4")
        .consume("rpd", 4)
        .lease()
        .unwrap();
    assert_eq!(available(&other, "rpd"), 6);
    drop(limiter);
    drop(lease);
    // It is done by a thread; nothing but looking tells when.
    while available(&other, "rpd") != 10 {
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_panic_gives_the_tokens_back() {
    let limiter = limiter();
    let inside = limiter.clone();
    let call = std::thread::spawn(move || {
        let _lease = inside
            .acquire("user-1", "gpt-4")
            .consume("rpd", 4)
            .lease()
            .unwrap();
        panic!("the call went wrong");
    });
    call.join().unwrap_err();
    assert_eq!(limiter.shutdown().unwritten_total, 0);
    assert_eq!(available(&limiter, "rpd"), 10);
}

#[test]
fn many_threads_get_exactly_what_is_there() {
    let limiter = limiter();
    let callers: Vec<_> = (0..16)
        .map(|_| {
            let limiter = limiter.clone();
            std::thread::spawn(move || {
                let lease = limiter.acquire("user-1", "gpt-4").consume("rpd", 1).lease();
                lease.and_then(Lease::commit).is_ok()
            })
        })
        .collect();
    let admitted = callers.into_iter().map(|caller| caller.join().unwrap());
    assert_eq!(admitted.filter(|admitted| *admitted).count(), 10);
}

#[test]
fn shutdown_refuses_what_comes_later_and_availability_is_told() {
    let limiter = limiter();
    assert!(limiter.is_available());
    assert_eq!(limiter.shutdown().unwritten_total, 0);
    let call = limiter
        .acquire("user-1", "gpt-4")
        .consume("rpd", 1)
        .on_unavailable(OnUnavailable::Allow);
    assert!(
        call.wait_up_to(Duration::from_secs(1))
            .lease()
            .unwrap_err()
            .to_string()
            .contains("shut down")
    );
}

#[test]
fn the_stored_side_is_reached_by_waiting() {
    let limiter = limiter();
    let limits = [Limit::per_day("rpd", 2).unwrap()];
    limiter
        .wait(
            limiter
                .as_async()
                .repository()
                .set_limits("user-1", "gpt-4", limits),
        )
        .unwrap();
    let call = limiter.acquire("user-1", "gpt-4").consume("rpd", 3);
    assert!(matches!(call.lease(), Err(Error::Refused(_))));
    let call = limiter.acquire("user-1", "gpt-4").consume("special", 1);
    call.limits([Limit::per_day("special", 1).unwrap()])
        .lease()
        .unwrap()
        .commit()
        .unwrap();
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

/// Everything that a lease can do, each once: six of ten are taken in the end.
fn use_it(limiter: &RateLimiter) {
    let call = |tokens| limiter.acquire("user-1", "gpt-4").consume("rpd", tokens);
    let mut lease = call(3).lease().unwrap();
    lease.consume("rpd", 2).unwrap();
    lease.adjust("rpd", 1);
    lease.commit().unwrap();
    call(4).lease().unwrap().rollback().unwrap();
    assert_eq!(available(limiter, "rpd"), 4);
    let limits = [Limit::per_day("rpd", 20).unwrap()];
    limiter
        .wait(
            limiter
                .as_async()
                .repository()
                .set_limits("user-2", "gpt-4", limits),
        )
        .unwrap();
}

#[test]
fn it_works_on_a_thread_of_a_runtime_too() {
    let limiter = limiter();
    runtime().block_on(async {
        use_it(&limiter);
        assert!(limiter.is_available());
        assert_eq!(limiter.shutdown().unwritten_total, 0);
    });
}

#[test]
fn it_works_on_a_runtime_s_threads_for_blocking_work() {
    let limiter = limiter();
    let blocking = runtime().block_on(async { tokio::task::spawn_blocking(move || use_it(&limiter)).await });
    blocking.unwrap();
}

#[test]
fn work_that_is_done_is_not_rolled_back_because_it_is_committed_inside_a_runtime() {
    let limiter = limiter();
    let call = || limiter.acquire("user-1", "gpt-4").consume("rpd", 4);
    let lease = call().lease().unwrap();
    runtime().block_on(async { lease.commit() }).unwrap();
    let lease = call().lease().unwrap();
    runtime().block_on(async { lease.rollback() }).unwrap();
    assert_eq!(limiter.shutdown().unwritten_total, 0);
    assert_eq!(available(&limiter, "rpd"), 6);
}

#[test]
fn a_lease_that_is_dropped_inside_a_runtime_goes_back_whatever_that_runtime_can_do() {
    let limiter = limiter();
    let lease = limiter
        .acquire("user-1", "gpt-4")
        .consume("rpd", 4)
        .lease()
        .unwrap();
    // It has no timers, and it ends before anything could be done on it.
    let bare = tokio::runtime::Builder::new_current_thread().build().unwrap();
    bare.block_on(async { drop(lease) });
    drop(bare);
    assert_eq!(limiter.shutdown().unwritten_total, 0);
    assert_eq!(available(&limiter, "rpd"), 10);
}

#[test]
fn settings_that_are_wrong_are_refused_as_ever() {
    let built = zae_limiter::RateLimiter::embedded()
        .time_budget(Duration::ZERO)
        .build_blocking();
    assert!(built.unwrap_err().to_string().contains("time_budget"));
}

#[test]
fn money_is_estimated_and_corrected_to_the_usage() {
    let limiter = limiter();
    let prices = Prices {
        money_limit: "rpd".parse().unwrap(),
        token_limits: ["tpd".parse().unwrap()].into(),
        ..Prices::new(MicroDollars::new(10_000).unwrap(), MicroDollars::ZERO)
    };
    limiter
        .wait(limiter.as_async().repository().set_prices("gpt-4", prices))
        .unwrap();
    let call = || {
        limiter
            .acquire("user-1", "gpt-4")
            .consume_estimate(&Estimate::new(500))
    };
    let mut lease = call().lease().unwrap();
    assert_eq!(lease.consumed()["rpd"], 5);
    lease.adjust_to_usage(&Usage::new(300, 0)).unwrap();
    assert_eq!(lease.consumed()["rpd"], 3);
    lease.rollback().unwrap();
    call()
        .lease()
        .unwrap()
        .commit_usage(&Usage::new(200, 50))
        .unwrap();
    assert_eq!((available(&limiter, "rpd"), available(&limiter, "tpd")), (8, 750));
}

#[test]
fn what_is_stored_and_the_stack_are_reached_without_async() {
    let limiter = limiter();
    let repository = limiter.repository();
    let limits = [Limit::per_minute("rpm", 5).unwrap()];
    limiter
        .wait(repository.set_resource_defaults("gpt-4", limits))
        .unwrap();
    let stored = limiter.wait(repository.get_resource_defaults("gpt-4")).unwrap();
    assert_eq!(stored.len(), 1);
    assert!(
        limiter.ensure_infrastructure().unwrap().is_none(),
        "no stack is declared"
    );
    let none = limiter.list_stacks().unwrap_err();
    assert!(
        none.to_string().contains("an embedded table has no stack"),
        "{none}"
    );
}

#[test]
fn leases_and_errors_follow_the_mode() {
    let store = EmbeddedStore::memory().unwrap();
    let limiter = limiter_in(&store);
    let level = zae_limiter::ConfigLevel::System;
    let set = |mode| {
        limiter.wait(limiter.repository().set_mode(&level, mode)).unwrap();
    };
    let call = || limiter.acquire("user-1", "gpt-4").consume("rpd", 11).lease();
    set(zae_limiter::Mode::Observe);
    let observed = call().unwrap();
    assert_eq!(observed.admission(), zae_limiter::Admission::Observed);
    assert_eq!(observed.observed_limits()[0].limit.name().as_str(), "rpd");
    observed.commit().unwrap();
    set(zae_limiter::Mode::Disabled);
    assert!(matches!(call(), Err(Error::Disabled { .. })));
}

//! One process while the table is unavailable: what it still sends, and how long it takes to decide and to shut down.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use zae_limiter_schema::{EntityId, Limit, LimitSet, OnUnavailable};

use crate::acquire::{Acquire, Admission};
use crate::bucket::{BreakerState, Buckets};
use crate::builder::Settings;
use crate::simulation::clock::{SimClock, block_on};
use crate::simulation::faults::{Scenario, Weather};
use crate::simulation::port::Port;
use crate::simulation::run::connect;
use crate::simulation::traffic::RESOURCE;
use crate::simulation::world::{Shared, World, lock};

/// Buckets with a call under way when the table becomes unavailable.
const BUCKETS: u64 = 500;
/// The most requests in any second of an outage.
const MAX_REQUESTS: u64 = 10;

/// A process with one limit, `rpm`, and the table that it uses.
pub(super) struct Process {
    pub(super) world: Shared,
    pub(super) buckets: Arc<Buckets>,
}

impl Process {
    /// With a burst, a refill amount, and a refill period in seconds.
    pub(super) fn new(limit: (u64, u64, u64)) -> Self {
        Self::seeded(1, limit)
    }

    fn seeded(seed: u64, (burst, amount, seconds): (u64, u64, u64)) -> Self {
        let clock = SimClock {
            start: Instant::now(),
            skew: 0,
        };
        let limit = Limit::custom("rpm", burst, burst, amount, seconds).unwrap();
        let world = World::new(Scenario::calm(seed), clock, LimitSet::new([limit]).unwrap());
        let world = Arc::new(Mutex::new(world));
        let port = Port::new(&world);
        let settings = Settings::default();
        let buckets = connect(&port, clock, settings, seed);
        Self { world, buckets }
    }

    /// Another process that uses the same table.
    pub(super) fn beside(&self, seed: u64) -> Self {
        let port = Port::new(&self.world);
        let settings = Settings::default();
        let clock = lock(&self.world).clock;
        Self {
            world: self.world.clone(),
            buckets: connect(&port, clock, settings, 1_000 + seed),
        }
    }

    pub(super) fn acquire(&self, entity: &str, tokens: u64) -> Acquire {
        Acquire::new(self.buckets.clone(), entity, RESOURCE).consume("rpm", tokens)
    }

    pub(super) async fn take(&self, entity: &str, tokens: u64) -> crate::Result<()> {
        self.acquire(entity, tokens).await?.commit().await
    }

    pub(super) fn writes(&self) -> u64 {
        lock(&self.world).attempts
    }

    fn requests(&self) -> u64 {
        lock(&self.world).requests
    }

    fn set_weather(&self, weather: Weather) {
        lock(&self.world).set_weather(weather);
    }

    /// One call on each of many buckets, at the same time.
    async fn ask_everywhere(&self, buckets: u64) -> Vec<crate::Result<()>> {
        let mut calls = JoinSet::new();
        for number in 0..buckets {
            let call = self.acquire(&format!("user-{number}"), 1);
            calls.spawn(async move { call.await?.commit().await });
        }
        calls.join_all().await
    }

    /// The most requests in one second, and all of them, while nobody asks for anything.
    async fn requests_in(&self, seconds: u64) -> (u64, u64) {
        let before = self.requests();
        let mut most = 0;
        for _ in 0..seconds {
            let last = self.requests();
            sleep(Duration::from_secs(1)).await;
            most = most.max(self.requests() - last);
        }
        (most, self.requests() - before)
    }
}

/// A process whose table becomes unavailable while every bucket has a call under way.
async fn lose_the_table(seed: u64, weather: Weather) -> Process {
    let process = Process::seeded(seed, (1_000, 1_000, 60));
    let warm = process.ask_everywhere(BUCKETS).await;
    assert!(warm.iter().all(Result::is_ok));
    process.set_weather(weather);
    let calls = process.ask_everywhere(BUCKETS).await;
    let failed = calls.into_iter().filter_map(Result::err);
    let failed = failed.inspect(|error| assert!(error.is_unavailable(), "{error}"));
    // A few get through a brown-out.
    assert!(failed.count() as u64 > BUCKETS / 4);
    process
}

/// The most requests in one second, those of a minute, and how long the shutdown takes.
fn outage(weather: Weather) -> (u64, u64, Duration) {
    block_on(async move {
        let process = lose_the_table(1, weather).await;
        let (most, total) = process.requests_in(60).await;
        let start = Instant::now();
        process.buckets.shut_down().await;
        (most, total, start.elapsed())
    })
}

#[test]
fn an_outage_is_quiet_and_a_shutdown_prompt() {
    for weather in [Weather::Silent, Weather::Refusing, Weather::BrownOut] {
        let (most, total, shutdown) = outage(weather);
        eprintln!(
            "{BUCKETS} unconfirmed buckets, {weather:?}: at most {most} requests in a second, {total} in a minute; \
             shutdown {shutdown:?}"
        );
        // In a brown-out responses close the breaker: every bucket looks once for its write, and refunds are written.
        let most_in_a_minute = match weather {
            Weather::BrownOut => BUCKETS,
            _ => 30,
        };
        assert!(most <= MAX_REQUESTS && total <= most_in_a_minute, "{weather:?}");
        assert!(
            shutdown <= Settings::default().time_budget,
            "{weather:?}: {shutdown:?}"
        );
    }
}

#[test]
fn a_shutdown_after_a_brown_out_does_not_wait_for_the_pace_of_retries() {
    block_on(async {
        let process = Process::new((1_000, 1_000, 60));
        let mut leases = Vec::new();
        for number in 0..BUCKETS {
            leases.push(process.acquire(&format!("user-{number}"), 1).await.unwrap());
        }
        process.set_weather(Weather::BrownOut);
        drop(leases);
        sleep(Duration::from_secs(5)).await;
        process.set_weather(Weather::Clear);
        let start = Instant::now();
        let report = process.buckets.shut_down().await;
        assert_eq!(report.unwritten_total, 0);
        assert!(
            start.elapsed() <= Settings::default().time_budget,
            "{:?}",
            start.elapsed()
        );
    });
}

/// Requests of a minute without the table in which 100 calls a second are made, each on another bucket than the last.
fn calls_in_an_outage(seed: u64, weather: Weather) -> u64 {
    block_on(async move {
        let process = lose_the_table(seed, weather).await;
        let before = process.requests();
        let mut calls = JoinSet::new();
        for number in 0..6_000 {
            let call = process.acquire(&format!("user-{}", number % BUCKETS), 1);
            calls.spawn(async move { call.await?.commit().await });
            sleep(Duration::from_millis(10)).await;
        }
        calls.join_all().await;
        process.requests() - before
    })
}

#[test]
fn calls_in_an_outage_send_little_also_where_some_requests_get_through() {
    for weather in [Weather::Silent, Weather::BrownOut] {
        // How often a brown-out lets a probe through is chance: the mean of several is what counts.
        let quiet: Vec<u64> = (1..=5).map(|seed| calls_in_an_outage(seed, weather)).collect();
        eprintln!("6,000 calls in a minute, {weather:?}: {quiet:?} requests");
        let mean = quiet.iter().sum::<u64>() / quiet.len() as u64;
        assert!(mean <= 60 * MAX_REQUESTS, "{weather:?}: {quiet:?}");
    }
}

#[test]
fn while_the_table_is_known_to_be_away_a_decision_needs_no_request_and_no_time() {
    block_on(async {
        let process = lose_the_table(1, Weather::Silent).await;
        assert_eq!(process.buckets.stats().breaker, BreakerState::Open);
        let (requests, start) = (process.requests(), Instant::now());
        // Measured by the clock of the machine and printed only: what holds everywhere is that nothing is waited for.
        let mut took = Vec::new();
        for number in 0..2 * BUCKETS {
            // Half of them were never seen.
            let call = || process.acquire(&format!("user-{number}"), 1);
            let calls = [
                call(),
                call().wait_up_to(Duration::from_secs(60)),
                call().on_unavailable(OnUnavailable::Allow),
            ];
            for (policy, call) in calls.into_iter().enumerate() {
                let asked = std::time::Instant::now();
                let decision = call.await;
                took.push(asked.elapsed());
                match decision {
                    Ok(lease) => {
                        assert_eq!(lease.admission(), Admission::AllowedWhileUnavailable);
                        assert_eq!(policy, 2);
                    }
                    Err(error) => assert!(error.is_unavailable() && policy < 2, "{error}"),
                }
            }
        }
        let requests = process.requests() - requests;
        took.sort_unstable();
        eprintln!(
            "{} decisions during a known outage: {requests} requests, {:?} waited, p50 {:?}, p99 {:?}",
            took.len(),
            start.elapsed(),
            took[took.len() / 2],
            took[took.len() * 99 / 100]
        );
        assert_eq!((requests, start.elapsed()), (0, Duration::ZERO));
    });
}

/// Requests of a minute in which nobody asks for the one bucket that gets no response; the others do.
fn one_silent_bucket() -> u64 {
    block_on(async move {
        let process = Process::new((1_000, 1_000, 60));
        process.take("silent", 1).await.unwrap();
        process.take("other", 1).await.unwrap();
        lock(&process.world).silent_entity = EntityId::parse("silent").ok();
        let failing = process.acquire("silent", 1);
        let failing = tokio::spawn(async move { failing.await.map(drop) });
        let mut needed = 0;
        for _ in 0..600 {
            sleep(Duration::from_millis(100)).await;
            process.take("other", 1).await.unwrap();
            needed += 1;
        }
        assert!(failing.await.unwrap().is_err_and(|error| error.is_unavailable()));
        assert_eq!(process.buckets.stats().breaker_opened, 0);
        process.requests() - needed
    })
}

#[test]
fn an_unconfirmed_write_is_searched_for_once() {
    // Four to know the buckets, six to know the configuration again, the call and its copy, and one look.
    let once = one_silent_bucket();
    eprintln!("one unconfirmed write beside buckets that respond: {once} requests");
    assert!(once <= 13, "{once}");
}

/// Requests in the minute after a refused connection, in which nobody asks.
fn after_refused_connections() -> u64 {
    block_on(async move {
        let process = Process::new((1_000, 1_000, 60));
        process.take("a", 1).await.unwrap();
        process.set_weather(Weather::Refusing);
        assert!(
            process
                .take("a", 1)
                .await
                .is_err_and(|error| error.is_unavailable())
        );
        process.set_weather(Weather::Clear);
        process.requests_in(60).await.1
    })
}

#[test]
fn a_refused_connection_leaves_nothing_to_search_for() {
    assert_eq!(after_refused_connections(), 0);
}

/// How often the breaker opens while every write is throttled.
fn opened_by_throttling() -> u64 {
    block_on(async move {
        let process = Process::new((1_000, 1_000, 60));
        process.ask_everywhere(20).await;
        lock(&process.world).scenario.throttled = 1_000;
        for call in process.ask_everywhere(20).await {
            assert!(call.is_err_and(|error| error.is_unavailable()));
        }
        process.buckets.stats().breaker_opened
    })
}

#[test]
fn throttling_does_not_open_the_breaker() {
    assert_eq!(opened_by_throttling(), 0);
}

/// Calls of a minute in which only writes fail: how many took longer than 50 ms, of how many; and how often the breaker opened.
fn only_writes_fail(weather: Weather) -> (u64, u64, u64) {
    block_on(async move {
        let process = Arc::new(Process::new((1_000, 1_000, 60)));
        assert!(process.ask_everywhere(20).await.iter().all(Result::is_ok));
        process.set_weather(weather);
        let end = Instant::now() + Duration::from_mins(1);
        let mut callers = JoinSet::new();
        for number in 0..20 {
            let process = process.clone();
            callers.spawn(async move {
                let (mut slow, mut calls) = (0, 0);
                while Instant::now() < end {
                    let asked = Instant::now();
                    let refused = process.take(&format!("user-{number}"), 1).await;
                    assert!(refused.is_err_and(|error| error.is_unavailable()));
                    calls += 1;
                    slow += u64::from(asked.elapsed() > Duration::from_millis(50));
                    sleep(Duration::from_millis(100)).await;
                }
                (slow, calls)
            });
        }
        let all = callers.join_all().await;
        let opened = process.buckets.stats().breaker_opened;
        process.set_weather(Weather::Clear);
        sleep(Duration::from_secs(6)).await;
        process.take("user-1", 1).await.unwrap();
        let (slow, calls) = all.into_iter().fold((0, 0), |(a, b), (c, d)| (a + c, b + d));
        (slow, calls, opened)
    })
}

#[test]
fn while_only_writes_fail_calls_are_decided_at_once() {
    for weather in [Weather::WritesSilent, Weather::WritesRefused] {
        let (slow, calls, opened) = only_writes_fail(weather);
        eprintln!(
            "a minute of {weather:?}: {slow} of {calls} calls took over 50 ms, breaker opened {opened} times"
        );
        assert_eq!(opened, 1, "{weather:?}");
        // One for each caller before it opened, and one for each probe.
        assert!(slow <= 60, "{weather:?}: {slow} of {calls}");
    }
}

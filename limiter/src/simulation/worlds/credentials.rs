//! Credentials that take nearly as long as a call has time, and expire again and again.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_credential_types::Credentials;
use aws_credential_types::provider::{ProvideCredentials, SharedCredentialsProvider, future};
use tokio::time::{Instant, sleep};
use zae_limiter_dynamo::SharedCredentials;
use zae_limiter_schema::{Limit, LimitSet};

use crate::Clock as _;
use crate::acquire::Acquire;
use crate::builder::Settings;
use crate::simulation::clock::{SimClock, block_on};
use crate::simulation::faults::Scenario;
use crate::simulation::is_long;
use crate::simulation::port::Port;
use crate::simulation::run::connect;
use crate::simulation::traffic::RESOURCE;
use crate::simulation::world::{World, lock};

/// How long credentials live.
const LIFETIME: Duration = Duration::from_mins(2);

/// A provider such as SSO on a bad day.
#[derive(Debug)]
struct SlowProvider {
    clock: SimClock,
    /// In milliseconds.
    takes: u64,
    loads: Arc<AtomicU64>,
}

fn calendar(clock: SimClock) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(clock.now().millis().unsigned_abs())
}

impl ProvideCredentials for SlowProvider {
    fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
    where
        Self: 'a,
    {
        future::ProvideCredentials::new(async {
            self.loads.fetch_add(1, Ordering::Relaxed);
            sleep(Duration::from_millis(self.takes)).await;
            let expiry = calendar(self.clock) + LIFETIME;
            Ok(Credentials::new("AKIA", "secret", None, Some(expiry), "slow"))
        })
    }
}

/// What a process with slow credentials came to.
#[derive(Debug, Default)]
struct Outcome {
    calls: u64,
    failed: u64,
    /// The longest that a call took after the first.
    slowest: Duration,
    loads: u64,
    violations: usize,
}

fn run(takes: u64, time: Duration) -> Outcome {
    block_on(async move {
        let clock = SimClock {
            start: Instant::now(),
            skew: 0,
        };
        let limit = Limit::custom("rpm", 100, 100, 100, 1).unwrap();
        let world = World::new(Scenario::calm(takes), clock, LimitSet::new([limit]).unwrap());
        let world = Arc::new(Mutex::new(world));
        let loads = Arc::new(AtomicU64::new(0));
        let provider = SlowProvider {
            clock,
            takes,
            loads: loads.clone(),
        };
        let credentials = SharedCredentials::new(SharedCredentialsProvider::new(provider), None);
        let port = Port {
            credentials: Some(credentials.with_calendar(move || calendar(clock))),
            ..Port::to(&world)
        };
        let buckets = connect(&Arc::new(port), clock, Settings::default(), takes);
        let end = Instant::now() + time;
        let mut outcome = Outcome::default();
        while Instant::now() < end {
            let asked = Instant::now();
            let call = Acquire::new(buckets.clone(), "user-1", RESOURCE).consume("rpm", 1);
            outcome.calls += 1;
            match call.await {
                Ok(lease) => lease.commit().await.unwrap(),
                Err(_) => outcome.failed += 1,
            }
            if outcome.calls > 1 {
                outcome.slowest = outcome.slowest.max(asked.elapsed());
            }
            sleep(Duration::from_millis(500)).await;
        }
        let mut world = lock(&world);
        world.oracle.finish();
        outcome.violations = world.oracle.violations.len();
        outcome.loads = loads.load(Ordering::Relaxed);
        outcome
    })
}

#[test]
fn credentials_that_load_slowly_fail_no_call_and_delay_only_the_first() {
    let time = Duration::from_mins(if is_long() { 600 } else { 20 });
    for takes in [450, 600, 900] {
        let outcome = run(takes, time);
        eprintln!("credentials that take {takes} ms: {outcome:?}");
        assert_eq!(
            (outcome.failed, outcome.violations),
            (0, 0),
            "{takes} ms: {outcome:?}"
        );
        // A read and a write at most, none of which waits for credentials.
        assert!(
            outcome.slowest <= Duration::from_millis(50),
            "{takes} ms: {outcome:?}"
        );
        // Each is replaced after half of its life.
        let most = time.as_secs() / (LIFETIME.as_secs() / 2) + 1;
        assert!(outcome.loads <= most, "{takes} ms: {outcome:?}");
    }
}

#[test]
fn a_first_load_that_takes_longer_than_a_call_fails_the_calls_that_wait_for_it_and_no_other() {
    let outcome = run(2_500, Duration::from_mins(20));
    // One second each, and half a second in between.
    assert_eq!(outcome.failed, 2, "{outcome:?}");
    assert_eq!(outcome.violations, 0);
}

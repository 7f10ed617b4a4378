//! Processes that admit their fraction of the limits while the table is unavailable, and a table that comes and goes.

use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use zae_limiter_schema::{Limit, LimitSet, OnUnavailable};

use crate::Error;
use crate::acquire::{Acquire, Admission};
use crate::bucket::Buckets;
use crate::builder::Settings;
use crate::simulation::clock::{SimClock, block_on};
use crate::simulation::faults::{Scenario, Weather};
use crate::simulation::is_long;
use crate::simulation::port::Port;
use crate::simulation::run::connect;
use crate::simulation::traffic::RESOURCE;
use crate::simulation::world::{World, lock};

const BURST: u64 = 600;
const PER_SECOND: u64 = 10;

/// What all processes together were admitted.
#[derive(Debug, Default)]
struct Admitted {
    counted: u64,
    local: u64,
    refused: u64,
    unavailable: u64,
}

/// Twice as many calls as the limit allows, spread evenly over the processes.
async fn call(buckets: Arc<Buckets>, every: Duration, end: Instant) -> Admitted {
    let mut admitted = Admitted::default();
    while Instant::now() < end {
        let call = Acquire::new(buckets.clone(), "user-1", RESOURCE).consume("rpm", 1);
        match call.on_unavailable(OnUnavailable::Allow).await {
            Ok(lease) => {
                match lease.admission() {
                    Admission::Counted => admitted.counted += 1,
                    _ => admitted.local += 1,
                }
                lease.commit().await.unwrap();
            }
            Err(Error::Refused(_)) => admitted.refused += 1,
            Err(_) => admitted.unavailable += 1,
        }
        sleep(every).await;
    }
    admitted
}

fn run(processes: u32, weather: Weather, turn: Duration, time: Duration) -> (Admitted, Vec<String>) {
    block_on(async move {
        let clock = SimClock {
            start: Instant::now(),
            skew: 0,
        };
        let limit = Limit::custom("rpm", BURST, BURST, PER_SECOND, 1).unwrap();
        let world = World::new(Scenario::calm(1), clock, LimitSet::new([limit]).unwrap());
        let world = Arc::new(Mutex::new(world));
        let end = Instant::now() + time;
        let mut callers = JoinSet::new();
        let every = Duration::from_millis(u64::from(processes) * 1_000 / PER_SECOND / 2);
        for number in 0..processes {
            let settings = Settings {
                processes: NonZeroU32::new(processes),
                ..Settings::default()
            };
            let buckets = connect(&Port::new(&world), clock, settings, u64::from(number));
            callers.spawn(call(buckets, every, end));
        }
        let weathers = tokio::spawn({
            let world = world.clone();
            async move {
                for weather in [weather, Weather::Clear].into_iter().cycle() {
                    sleep(turn).await;
                    lock(&world).set_weather(weather);
                }
            }
        });
        let mut all = Admitted::default();
        for one in callers.join_all().await {
            all.counted += one.counted;
            all.local += one.local;
            all.refused += one.refused;
            all.unavailable += one.unavailable;
        }
        weathers.abort();
        let mut world = lock(&world);
        world.oracle.finish();
        let violations = world.oracle.violations.iter();
        (
            all,
            violations.map(|violation| format!("{violation:?}")).collect(),
        )
    })
}

#[test]
fn while_the_table_comes_and_goes_processes_admit_no_more_than_the_limit_allows() {
    let weathers = [Weather::Refusing, Weather::Silent, Weather::WritesRefused];
    let turns = [500, 2_000, 5_000, 10_000, 20_000, 60_000];
    let all = weathers
        .into_iter()
        .flat_map(|weather| turns.map(|turn| (weather, turn)));
    let (cases, time): (Vec<_>, _) = if is_long() {
        (all.collect(), Duration::from_mins(10))
    } else {
        let few = [(Weather::Refusing, 10_000), (Weather::WritesRefused, 2_000)];
        (few.to_vec(), Duration::from_mins(4))
    };
    eprintln!("| processes | table comes and goes every | admitted | of them local | allowed |");
    eprintln!("|---|---|---|---|---|");
    let cases = [1, 4]
        .into_iter()
        .flat_map(|n| cases.iter().map(move |case| (n, *case)));
    for (processes, (weather, turn)) in cases {
        let (all, violations) = run(processes, weather, Duration::from_millis(turn), time);
        let allowed = BURST + PER_SECOND * time.as_secs();
        let admitted = all.counted + all.local;
        eprintln!(
            "| {processes} | {turn} ms, {weather:?} | {admitted} | {} | {allowed} |",
            all.local
        );
        let what = format!("{processes} processes, {turn} ms, {weather:?}: {all:?}");
        assert_eq!(violations, [""; 0], "{what}");
        // What the table has regained by the end of the last outage comes on top.
        let regained = BURST.min(PER_SECOND * turn / 1_000);
        assert!(admitted <= allowed + regained, "{what}");
        // A call waits for a table that comes back within its time budget, and takes nothing locally.
        let outlasts_calls = Duration::from_millis(turn) > Settings::default().time_budget;
        if outlasts_calls {
            assert!(all.local > 0 && admitted * 100 >= allowed * 90, "{what}");
        } else {
            assert_eq!(all.refused, 0, "{what}");
        }
        assert_eq!(all.unavailable, 0, "{what}");
    }
}

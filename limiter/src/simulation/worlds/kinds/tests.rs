//! The runs, and what they must come to.

use std::time::Duration;

use super::fleet::{self, Load};
use super::midnight::{self, Night};
use crate::simulation::{Mutation, count_acquires, is_long};

/// Midnights in Berlin, in UTC, and the next one: of a common day, those around the day of 23 hours and the one of 25 hours,
/// and those around a leap day.
const MIDNIGHTS: [(&str, &str); 7] = [
    ("2023-11-14T23:00:00Z", "2023-11-15T23:00:00Z"),
    ("2024-03-30T23:00:00Z", "2024-03-31T22:00:00Z"),
    ("2024-03-31T22:00:00Z", "2024-04-01T22:00:00Z"),
    ("2024-10-26T22:00:00Z", "2024-10-27T23:00:00Z"),
    ("2024-10-27T23:00:00Z", "2024-10-28T23:00:00Z"),
    ("2024-02-28T23:00:00Z", "2024-02-29T23:00:00Z"),
    ("2023-12-31T23:00:00Z", "2024-01-01T23:00:00Z"),
];

/// Enough buckets that at most sixteen processes, including dead ones, use each. `crowded_night` has more.
fn night(seed: u64, midnight: &'static str) -> Night {
    Night {
        seed,
        midnight,
        processes: 100,
        buckets: 14,
        repeated: 100,
        pause: 2_000,
        each_side: Duration::from_secs(if is_long() { 60 } else { 25 }),
        mutation: None,
    }
}

/// 100 processes on one bucket. Beyond sixteen, a request that gives back must not be delivered twice.
fn crowded_night(seed: u64, midnight: &'static str) -> Night {
    Night {
        buckets: 1,
        repeated: 0,
        ..night(seed, midnight)
    }
}

fn hold_at_midnight(name: &str, night: impl Fn(u64, &'static str) -> Night, seeds: u64, midnights: usize) {
    let mut lost = 0;
    for round in 0..seeds {
        for (seed, (midnight, next)) in (round * 100..).zip(&MIDNIGHTS[..midnights]) {
            let outcome = midnight::simulate(&night(seed, midnight));
            let days: Vec<String> = outcome
                .days
                .iter()
                .map(|(end, admitted)| format!("{admitted} until {end}"))
                .collect();
            eprintln!(
                "{name}, {midnight}, seed {seed}: {} calls, {} admitted, {} refused, {} unavailable, {} writes; {} processes \
                 died, {} leases lost, {} permits taken back, at most {} held; {} top-ups; {} periods rolled over, \
                 admitted {}; {} violations",
                outcome.calls,
                outcome.admitted,
                outcome.refused,
                outcome.unavailable,
                outcome.writes,
                outcome.died,
                outcome.lost,
                outcome.reclaimed / 1_000,
                outcome.most_held,
                outcome.top_ups,
                outcome.roll_overs,
                days.join(" and "),
                outcome.violations.len()
            );
            assert_eq!(
                outcome.violations,
                Vec::<String>::new(),
                "{midnight}, seed {seed}"
            );
            let days: Vec<String> = outcome.days.keys().map(ToString::to_string).collect();
            assert_eq!(days, [*midnight, *next], "the days end at midnight in Berlin");
            assert!(outcome.refused > 0 && outcome.died > 0 && outcome.reclaimed > 0);
            lost += outcome.lost;
            count_acquires(outcome.calls);
            assert!(outcome.roll_overs > 1 && outcome.top_ups > 1, "{outcome:?}");
        }
    }
    assert!(lost > 0);
}

#[test]
fn quotas_and_permits_hold_with_wrong_clocks_lost_and_repeated_requests_and_deaths() {
    let (seeds, midnights) = if is_long() { (10, MIDNIGHTS.len()) } else { (1, 2) };
    hold_at_midnight("100 processes on 14 buckets", night, seeds, midnights);
}

#[test]
fn quotas_and_permits_hold_on_one_bucket_of_a_hundred_processes() {
    let (seeds, midnights) = if is_long() { (10, MIDNIGHTS.len()) } else { (1, 1) };
    hold_at_midnight("100 processes on 1 bucket", crowded_night, seeds, midnights);
}

#[test]
fn every_broken_rule_of_quotas_is_noticed() {
    for mutation in Mutation::OF_KINDS {
        let noticed = (0..10).find(|seed| {
            let broken = Night {
                processes: 24,
                buckets: 2,
                pause: 1_000,
                each_side: Duration::from_secs(15),
                mutation: Some(mutation),
                ..night(*seed, MIDNIGHTS[0].0)
            };
            let unbroken = Night {
                mutation: None,
                ..broken.clone()
            };
            let noticed = !midnight::simulate(&broken).violations.is_empty();
            // What the same run without the broken rule violates proves nothing.
            noticed && midnight::simulate(&unbroken).violations.is_empty()
        });
        assert!(noticed.is_some(), "{mutation:?} went unnoticed");
        eprintln!("{mutation:?} is noticed by seed {noticed:?}");
    }
}

const RATE: &str = "rpm:60000/min";
const QUOTA: &str = "spend:100000 per day in Europe/Berlin";
const PARALLEL: &str = "parallel:5000 at once for 10min";

/// Two writes: one that takes, one that corrects.
const CORRECTED: Load = Load {
    name: "rate and quota, corrected",
    limits: &[RATE, QUOTA],
    mean_hold: 500,
    corrected: true,
};
const CORRECTED_IN_FLIGHT: Load = Load {
    name: "rate, quota and concurrency, corrected",
    limits: &[RATE, QUOTA, PARALLEL],
    ..CORRECTED
};
/// One write.
const KEPT: Load = Load {
    name: "rate and quota, kept",
    corrected: false,
    ..CORRECTED
};
/// 600 of 1,000 calls on each day.
const USED_UP: Load = Load {
    name: "a quota that is used up on both days",
    limits: &[RATE, "spend:600 per day in Europe/Berlin"],
    mean_hold: 500,
    corrected: false,
};
/// 800 calls would be in flight.
const CROWDED: Load = Load {
    name: "600 permits for 800 calls",
    limits: &[RATE, QUOTA, "parallel:600 at once for 10min"],
    mean_hold: 4_000,
    corrected: false,
};

#[test]
fn all_kinds_cost_one_write_and_admit_what_an_exact_limiter_would() {
    eprintln!(
        "| load, 100 processes, 200 calls/s | writes per admission | unavailable | of an exact limiter |"
    );
    eprintln!("|---|---|---|---|");
    let loads = [KEPT, CORRECTED, CORRECTED_IN_FLIGHT, USED_UP, CROWDED];
    let outcomes = loads.map(|load| {
        let outcome = fleet::simulate(load);
        let (writes, share) = (outcome.writes_per_100(), outcome.per_mille());
        eprintln!(
            "| {} | {}.{:02} | {} | {}.{} % |",
            load.name,
            writes / 100,
            writes % 100,
            outcome.unavailable,
            share / 10,
            share % 10
        );
        assert_eq!(outcome.violations, Vec::<String>::new(), "{}", load.name);
        assert_eq!(outcome.unavailable, 0, "{}: {outcome:?}", load.name);
        assert!(share >= 990, "{}: {outcome:?}", load.name);
        outcome
    });
    let [kept, corrected, in_flight, used_up, crowded] = outcomes;
    assert!(kept.writes_per_100() <= 110, "one write for each acquire");
    // The release goes with the correction.
    assert!(in_flight.writes_per_100() <= corrected.writes_per_100() + 2);
    assert!(in_flight.writes_per_100() <= 220);
    assert!(used_up.refused > 0 && crowded.refused > 0);
}

//! The runs. `ZAE_SIMULATION=long` makes them long, `ZAE_SIMULATION_SEED=n` repeats one seed, `n..m` runs others.

use super::Mutation;
use super::faults::Scenario;
use super::run::{Report, run};

fn seeds(short: u64, long: u64) -> std::ops::Range<u64> {
    match std::env::var("ZAE_SIMULATION_SEED") {
        Ok(seeds) => {
            asked(&seeds).unwrap_or_else(|| panic!("ZAE_SIMULATION_SEED: {seeds:?} is neither n nor n..m"))
        }
        Err(_) if std::env::var("ZAE_SIMULATION").is_ok_and(|length| length == "long") => 0..long,
        Err(_) => 0..short,
    }
}

fn asked(seeds: &str) -> Option<std::ops::Range<u64>> {
    let (from, to) = match seeds.split_once("..") {
        Some((from, to)) => (from.parse().ok()?, to.parse().ok()?),
        None => (seeds.parse().ok()?, seeds.parse::<u64>().ok()? + 1),
    };
    Some(from..to)
}

/// What all runs of a check came to.
#[derive(Debug, Default)]
struct Sum {
    acquires: u64,
    granted: u64,
    expired: u64,
    legacy_removed: u64,
    parameters: u64,
}

fn check(name: &str, scenario: impl Fn(u64) -> Scenario, seeds: std::ops::Range<u64>) -> Sum {
    let mut sum = Sum::default();
    let (mut refused, mut unavailable, mut writes) = (0, 0, 0);
    for seed in seeds {
        let report = run(scenario(seed));
        if !report.violations.is_empty() {
            for violation in &report.violations {
                eprintln!("  at {} ms: {}", violation.at, violation.what);
            }
            panic!(
                "{name} is broken by seed {seed}; repeat it with ZAE_SIMULATION_SEED={seed} cargo test -p zae-limiter --lib {name}"
            );
        }
        sum.acquires += report.acquires;
        sum.granted += report.granted;
        sum.expired += report.expired;
        sum.legacy_removed += report.legacy_removed;
        sum.parameters += report.parameters;
        refused += report.refused;
        unavailable += report.unavailable;
        writes += report.writes;
    }
    eprintln!("{name}: {sum:?}, {refused} refused, {unavailable} unavailable, {writes} writes");
    assert!(sum.granted > 0, "nothing happened");
    sum
}

#[test]
fn calm_traffic_is_exact() {
    check("calm_traffic_is_exact", Scenario::calm, seeds(6, 200));
}

#[test]
fn hostile_traffic_is_exact() {
    let seeds = seeds(20, 1_100);
    let enough = if seeds.end - seeds.start >= 1_100 {
        1_000_000
    } else {
        1
    };
    let sum = check("hostile_traffic_is_exact", Scenario::hostile, seeds);
    assert!(sum.acquires >= enough, "{sum:?}");
}

/// Where nothing is given back, an interval has no excuse.
fn keeping(seed: u64) -> Scenario {
    Scenario {
        keeping: true,
        cascade: false,
        cancelled: 0,
        ..Scenario::hostile(seed)
    }
}

#[test]
fn no_interval_admits_more_than_burst_and_refill() {
    check(
        "no_interval_admits_more_than_burst_and_refill",
        keeping,
        seeds(6, 200),
    );
}

#[test]
fn intervals_alone_notice_rules_that_admit_too_much() {
    for mutation in [
        Mutation::TouchWithoutCeiling,
        Mutation::RefillAgainstStaleLevel,
        Mutation::CreditsWithoutClamp,
    ] {
        let noticed = (0..40).find(|seed| {
            let crowded = Scenario {
                limiters: 8,
                cancelled: 0,
                ..Scenario::hostile(*seed)
            };
            let scenarios = [keeping(*seed), Scenario::hostile(*seed), crowded];
            scenarios.into_iter().any(|scenario| {
                let broken = run(scenario.clone().breaking(mutation)).excesses > 0;
                // What the same run without the broken rule exceeds proves nothing.
                broken && run(scenario).excesses == 0
            })
        });
        assert!(noticed.is_some(), "{mutation:?} went unnoticed");
        eprintln!("{mutation:?} shows in an interval of seed {noticed:?}");
    }
}

#[test]
fn buckets_that_expire_and_slots_that_are_removed_stay_exact() {
    let sum = check(
        "buckets_that_expire_and_slots_that_are_removed_stay_exact",
        Scenario::sparse,
        seeds(12, 400),
    );
    assert!(sum.expired > 0 && sum.legacy_removed > 0, "{sum:?}");
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let report = |_| -> Report { run(Scenario::hostile(6)) };
    assert_eq!(report(0).trace, report(1).trace);
}

#[test]
fn wrong_clocks_cost_no_more_than_their_spread() {
    check(
        "wrong_clocks",
        |seed| Scenario {
            skew: 30,
            ..Scenario::hostile(seed * 4 + 3)
        },
        seeds(6, 100),
    );
}

#[test]
fn beside_the_peer_none_of_our_admissions_exceeds_burst_and_refill() {
    let scenario = |seed| Scenario {
        peers: 2,
        expiry: false,
        config_changes: false,
        ..Scenario::hostile(seed)
    };
    check("beside_the_peer", scenario, seeds(6, 100));
}

#[test]
fn every_broken_rule_is_noticed() {
    for mutation in Mutation::INEXACT {
        let noticed = (0..40_u64).filter(|seed| !seed.is_multiple_of(5)).find(|seed| {
            let hostile = Scenario {
                config_changes: true,
                crashes: 0,
                ..Scenario::hostile(*seed)
            };
            let scenario = if seed.is_multiple_of(2) {
                hostile
            } else {
                Scenario {
                    config_changes: true,
                    ..Scenario::calm(*seed)
                }
            };
            let noticed = !run(scenario.clone().breaking(mutation)).violations.is_empty();
            // What the same run without the broken rule violates proves nothing.
            noticed && run(scenario).violations.is_empty()
        });
        assert!(noticed.is_some(), "{mutation:?} went unnoticed");
        eprintln!("{mutation:?} is noticed by seed {noticed:?}");
    }
}

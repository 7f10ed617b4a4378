//! The runs. `ZAE_SIMULATION=long` makes them long, `ZAE_SIMULATION_SEED=n` repeats one seed, `n..m` runs others.

use super::faults::Scenario;
use super::run::{Report, run};
use super::{Mutation, count_acquires, is_long};

fn seeds(short: u64, long: u64) -> std::ops::Range<u64> {
    match std::env::var("ZAE_SIMULATION_SEED") {
        Ok(seeds) => {
            asked(&seeds).unwrap_or_else(|| panic!("ZAE_SIMULATION_SEED: {seeds:?} is neither n nor n..m"))
        }
        Err(_) if is_long() => 0..long,
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
    local: u64,
    observed: u64,
    disabled: u64,
    several: u64,
    on_slots_of_others: u64,
    unwritten: u64,
}

/// The quotient with two decimals.
fn hundredths(part: u64, of: u64) -> String {
    let hundredths = part * 100 / of.max(1);
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

fn check(name: &str, scenario: impl Fn(u64) -> Scenario, seeds: std::ops::Range<u64>) -> Sum {
    let mut sum = Sum::default();
    let (mut refused, mut unavailable, mut writes) = (0, 0, 0);
    let started = seeds.clone();
    for seed in seeds {
        let report = run(scenario(seed));
        if !report.violations.is_empty() {
            for violation in report.violations.iter().take(20) {
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
        sum.local += report.local;
        sum.observed += report.observed;
        sum.disabled += report.disabled;
        sum.several += report.several;
        sum.on_slots_of_others += report.on_slots_of_others;
        sum.unwritten += report.unwritten;
        refused += report.refused;
        unavailable += report.unavailable;
        writes += report.writes;
    }
    eprintln!("{name}, seeds {started:?}: 0 violations; {sum:?}");
    eprintln!(
        "{name}: {} % granted, {} % refused, {} % unavailable, {} writes per 100 grants, {} % of them on slots of others, {} \
         changes unwritten",
        hundredths(sum.granted * 100, sum.acquires),
        hundredths(refused * 100, sum.acquires),
        hundredths(unavailable * 100, sum.acquires),
        hundredths(writes * 100, sum.granted),
        hundredths(sum.on_slots_of_others * 100, writes),
        sum.unwritten
    );
    assert!(sum.granted > 0, "nothing happened");
    count_acquires(sum.acquires);
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
    // The search begins at the first seed that noticed each of them, since the others take long.
    for (mutation, first) in [
        (Mutation::TouchWithoutCeiling, 0),
        (Mutation::CreditsWithoutClamp, 17),
    ] {
        let noticed = (first..first + 40).find(|seed| {
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

/// The table forgets nothing, and has no slots of an earlier release: only our writes change it.
fn through_the_sdk(seed: u64) -> Scenario {
    Scenario {
        sdk: true,
        expiry: false,
        duration: std::time::Duration::from_secs(4),
        ..Scenario::hostile(seed)
    }
}

#[test]
fn the_sdk_and_the_embedded_store_do_what_the_interpreter_does() {
    let name = "the_sdk_and_the_embedded_store";
    check(name, through_the_sdk, seeds(2, 40));
    let broken = run(through_the_sdk(1).breaking(Mutation::TouchWithoutCeiling));
    let differs = |what: &str| what.contains("through the SDK");
    assert!(broken.violations.iter().any(|violation| differs(&violation.what)));
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

#[test]
fn outages_longer_than_every_budget_stay_exact_and_calls_succeed_after_them() {
    check("outages_longer_than", Scenario::stormy, seeds(6, 200));
}

/// In this run a process owes six tokens when the table becomes unavailable, and refuses a call because of them.
#[test]
fn what_is_owed_and_not_written_yet_refuses_calls() {
    check("what_is_owed", Scenario::stormy, 46..47);
}

#[test]
fn limits_of_calls_and_of_entities_and_changing_parents_stay_exact() {
    let sum = check("limits_of_calls", Scenario::changing, seeds(8, 300));
    assert!(sum.parameters > 0, "{sum:?}");
}

#[test]
fn modes_that_change_under_load_are_followed_and_stay_exact() {
    let sum = check("modes_that_change", Scenario::switching, seeds(8, 300));
    assert!(sum.observed > 0 && sum.disabled > 0, "{sum:?}");
}

#[test]
fn calls_that_charge_several_resources_are_kept_whole_or_not_at_all() {
    let sum = check("calls_that_charge_several", Scenario::several, seeds(12, 400));
    assert!(sum.several > 0, "{sum:?}");
    let stormy = |seed| Scenario {
        several: 600,
        ..Scenario::stormy(seed)
    };
    check("calls_that_charge_several", stormy, seeds(4, 100));
}

#[test]
fn a_process_admits_no_more_than_its_share_in_an_outage() {
    let scenario = |seed| Scenario {
        share: true,
        more: 0,
        patient: 0,
        config_changes: false,
        own_limits: false,
        cascade: false,
        ..Scenario::stormy(seed)
    };
    let sum = check("a_process_admits", scenario, seeds(3, 100));
    assert!(sum.local > 0, "{sum:?}");
}

#[test]
fn limits_with_long_periods_stay_exact() {
    let scenario = |seed| Scenario {
        long_periods: true,
        duration: std::time::Duration::from_hours(12),
        rest: 1_200_000,
        limiters: 3,
        callers_per_limiter: 1,
        config_changes: false,
        crashes: 0,
        ..Scenario::hostile(seed)
    };
    check("limits_with_long_periods", scenario, seeds(3, 60));
}

#[test]
fn wrong_clocks_with_changing_limits_and_parents_cost_no_more_than_their_spread() {
    let scenario = |seed| Scenario {
        skew: 30,
        config_changes: true,
        cascade: true,
        crashes: 0,
        ..Scenario::hostile(seed)
    };
    check("wrong_clocks_with", scenario, seeds(6, 100));
}

fn unreadable(seed: u64) -> Scenario {
    Scenario {
        unreadable: 50,
        crashes: 0,
        config_changes: false,
        ..Scenario::hostile(seed)
    }
}

#[test]
fn responses_that_cannot_be_read_lose_nothing() {
    check("responses_that_cannot", unreadable, seeds(6, 100));
}

/// More processes than slots.
fn crowded(seed: u64) -> Scenario {
    Scenario {
        limiters: 24,
        callers_per_limiter: 1,
        crashes: 0,
        cascade: false,
        config_changes: false,
        expiry: false,
        ..Scenario::hostile(seed)
    }
}

#[test]
fn more_processes_than_slots_take_too_much_at_most() {
    check("more_processes_than_slots", crowded, seeds(3, 60));
}

#[test]
fn a_reload_that_is_not_consistent_is_noticed() {
    let noticed = (0..40).find(|seed| {
        let broken = run(Scenario::changing(*seed).breaking(Mutation::InconsistentReload));
        !broken.violations.is_empty() && run(Scenario::changing(*seed)).violations.is_empty()
    });
    assert!(noticed.is_some());
}

/// A network that delivers many requests twice.
fn repeating(seed: u64) -> Scenario {
    Scenario {
        repeated: 150,
        ..Scenario::hostile(seed)
    }
}

#[test]
fn requests_that_are_delivered_twice_count_once() {
    check("requests_that_are_delivered_twice", repeating, seeds(10, 200));
    let calm = |seed| Scenario {
        repeated: 300,
        ..Scenario::calm(seed)
    };
    check("requests_that_are_delivered_twice", calm, seeds(4, 100));
}

#[test]
fn buckets_that_are_forgotten_in_memory_stay_exact() {
    let scenario = |seed| Scenario {
        kept_buckets: 1,
        crashes: 0,
        ..Scenario::hostile(seed)
    };
    check("buckets_that_are_forgotten", scenario, seeds(6, 100));
}

#[test]
fn writes_that_fail_while_reads_succeed_stay_exact() {
    let scenario = |seed| Scenario {
        write_outages: true,
        ..Scenario::stormy(seed)
    };
    check("writes_that_fail_while", scenario, seeds(4, 100));
}

/// Buckets that disappear under the processes that use them, which create them again.
fn recreated(seed: u64) -> Scenario {
    Scenario {
        deletions: true,
        expiry: false,
        crashes: 0,
        ..Scenario::hostile(seed)
    }
}

#[test]
fn buckets_that_are_deleted_and_created_again_stay_exact_and_are_not_taken_for_crowded() {
    let calm = |seed| Scenario {
        deletions: true,
        ..Scenario::calm(seed)
    };
    let faults = check("buckets_that_are_deleted", recreated, seeds(10, 300));
    let no_faults = check("buckets_that_are_deleted", calm, seeds(4, 100));
    for sum in [faults, no_faults] {
        // Four processes have a slot each, however often the bucket is created.
        assert_eq!(sum.on_slots_of_others, 0, "{sum:?}");
    }
}

/// Copies of a running process, which do the same at the same time with the same tag.
fn copied(seed: u64) -> Scenario {
    Scenario {
        copies: 2,
        limiters: 1 + usize::from(seed.is_multiple_of(2)),
        crashes: 0,
        expiry: false,
        ..Scenario::hostile(seed)
    }
}

#[test]
fn copies_of_a_running_process_admit_nothing_too_much() {
    check("copies_of_a_running_process", copied, seeds(10, 500));
    let lost = |seed| Scenario {
        lost_responses: 200,
        lost_requests: 100,
        repeated: 50,
        copies: 1,
        limiters: 1,
        ..Scenario::calm(seed)
    };
    check("copies_of_a_running_process", lost, seeds(10, 500));
    let calm = |seed| Scenario {
        copies: 2,
        limiters: 1,
        ..Scenario::calm(seed)
    };
    check("copies_of_a_running_process", calm, seeds(4, 100));
}

/// Somebody tops buckets up while calls take from them.
fn topped_up(seed: u64) -> Scenario {
    Scenario {
        top_ups: true,
        lost_responses: 200,
        lost_requests: 100,
        repeated: 150,
        expiry: false,
        crashes: 0,
        ..Scenario::hostile(seed)
    }
}

#[test]
fn top_ups_under_traffic_count_once() {
    check("top_ups_under_traffic", topped_up, seeds(10, 300));
    let calm = |seed| Scenario {
        top_ups: true,
        ..Scenario::calm(seed)
    };
    check("top_ups_under_traffic", calm, seeds(4, 100));
}

#[test]
fn a_top_up_that_counts_twice_is_noticed() {
    let noticed = (0..10).find(|seed| {
        let broken = run(topped_up(*seed).breaking(Mutation::TopUpWithoutRecord));
        !broken.violations.is_empty() && run(topped_up(*seed)).violations.is_empty()
    });
    assert!(noticed.is_some());
}

//! The reproduction of CVE-2026-27695 (GHSA-76rv-2r9v-c5m6): more than 1,000 calls a second for one entity, whose item
//! takes 1,000 write units a second. In the Python package before 0.10.1 every call is a write, DynamoDB throttles the
//! partition, and the entity is denied service, with all that share the partition.
//!
//! Here no call may fail, what the limit allows must be admitted, and hardly any write may be throttled. Without chunks this
//! is done by combining and by refusals that cost nothing.

use super::chunks::{Flood, Outcome, simulate};
use crate::simulation::throttling::UNITS_PER_SECOND;

/// A flood, and what it is called.
const FLOODS: [(&str, Flood); 3] = [
    (
        "1 process, 1,500/s within the limit",
        flood(1, &[(1_500, 4_000)], 10_000),
    ),
    (
        "20 processes, 2,000/s within the limit",
        flood(20, &[(100, 4_000)], 10_000),
    ),
    (
        "20 processes, 2,000/s, 20 times the limit",
        flood(20, &[(100, 4_000)], 100),
    ),
];

const fn flood(processes: u64, phases: &'static [(u64, u64)], per_second: u64) -> Flood {
    Flood {
        processes,
        phases,
        limit: (per_second, per_second),
        chunks: false,
        crash: false,
    }
}

#[test]
fn a_flood_on_one_entity_denies_nobody_service() {
    eprintln!(
        "| flood | chunks | admitted | refused | unavailable | writes/s | throttled/s | slowest call |"
    );
    eprintln!("|---|---|---|---|---|---|---|---|");
    for (name, flood) in FLOODS {
        for chunks in [false, true] {
            let outcome = simulate(Flood { chunks, ..flood });
            let seconds = flood.phases[0].1 / 1000;
            eprintln!(
                "| {name} | {} | {} | {} | {} | {} | {} | {} ms |",
                if chunks { "on" } else { "off" },
                outcome.admitted,
                outcome.refused,
                outcome.unavailable,
                outcome.writes / seconds,
                outcome.throttled / seconds,
                outcome.slowest.as_millis()
            );
            check(name, &flood, &outcome, seconds);
        }
    }
}

fn check(name: &str, flood: &Flood, outcome: &Outcome, seconds: u64) {
    assert_eq!(outcome.broken(), Vec::<String>::new(), "{name}: {outcome:?}");
    assert_eq!(outcome.unavailable, 0, "{name}: {outcome:?}");
    let (burst, per_second) = flood.limit;
    // At least 95 % of what the limit allows, or of what was asked.
    let due = outcome.asked.min(burst + per_second * seconds);
    assert!(outcome.admitted * 100 >= due * 95, "{name}: {outcome:?}");
    assert_eq!(outcome.admitted + outcome.refused, outcome.asked, "{name}");
    let attempts = outcome.writes + outcome.throttled;
    assert!(attempts < outcome.asked, "{name}: {outcome:?}");
    // What is refused stays small beside what the item takes.
    let capacity = UNITS_PER_SECOND.cast_unsigned() * seconds;
    assert!(outcome.throttled <= capacity / 10, "{name}: {outcome:?}");
}

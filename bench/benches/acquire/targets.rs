//! The goals, and whether this run meets them.

use serde_json::{Value, json};

use crate::cases::{BARE, CANNED, CASCADE, DYNAMODB, IN_RESPONSE, OURS, PACKAGE, PEER};
use crate::commands::{ACQUIRE, HELP};
use crate::entities::{BYTES, MEGABYTES, SECOND_CALLS, SECOND_RCU};
use crate::functions::{ARCHIVES, RECORDS};
use crate::http_load::{EMBEDDED, HOT, IN_PROCESS, OVER_HTTP, OWN};
use crate::measure::Figures;
use crate::results::Results;

const RATE: fn(&Figures) -> Option<f64> = |figures| Some(figures.rate);

/// One goal.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) name: &'static str,
    pub(crate) goal: &'static str,
    pub(crate) measured: String,
    /// None if it has no goal, or could not be measured.
    pub(crate) met: Option<bool>,
    /// The same on dynoxide, if the goal is judged on recorded responses.
    pub(crate) beside: Option<Box<Target>>,
}

impl Target {
    pub(crate) fn to_json(&self) -> Value {
        let mut target =
            json!({"target": self.name, "goal": self.goal, "measured": self.measured, "met": self.met});
        if let Some(beside) = &self.beside {
            target["dynoxide"] = json!({"measured": beside.measured, "met": beside.met});
        }
        target
    }

    pub(crate) fn verdict(&self) -> &'static str {
        match self.met {
            Some(true) => "met",
            Some(false) => "NOT MET",
            None => "-",
        }
    }
}

/// Every goal with what was measured.
pub(crate) fn all(results: &Results) -> Vec<Target> {
    let mut targets = compared(results);
    targets.extend(package_against_peer(results));
    targets.extend(alone(results));
    targets.extend(programs(results));
    targets
}

/// Goals that compare with the bare call or the peer. They are judged on recorded responses, where the client alone differs; what
/// dynoxide shows stands beside.
fn compared(results: &Results) -> Vec<Target> {
    type Field = fn(&Figures) -> Option<f64>;
    let against = |endpoint: &str, case: &str, who: &str, field: Field| {
        let own = results.find(endpoint, case, OURS)?;
        let other = results.find(endpoint, case, who)?;
        Some(field(own)? / field(other)?)
    };
    let judged = |target: fn(&'static str, &'static str, Option<f64>, f64) -> Target,
                  name,
                  goal,
                  bound,
                  (case, who, field): (&str, &str, Field)| Target {
        beside: Some(Box::new(target(
            name,
            goal,
            against(DYNAMODB, case, who, field),
            bound,
        ))),
        ..target(name, goal, against(CANNED, case, who, field), bound)
    };
    vec![
        judged(
            figure,
            "rate, 1 task, against the bare call",
            "figure",
            0.0,
            ("1 task", BARE, RATE),
        ),
        judged(
            figure,
            "CPU, 1 task, against the bare call",
            "figure",
            0.0,
            ("1 task", BARE, |figures| figures.cpu),
        ),
        judged(
            figure,
            "instructions, 1 task, against the bare call",
            "figure",
            0.0,
            ("1 task", BARE, |figures| figures.instructions),
        ),
        judged(
            figure,
            "allocations, 1 task, against the bare call",
            "figure",
            0.0,
            ("1 task", BARE, |figures| figures.allocations),
        ),
        judged(
            figure,
            "rate, 16 tasks on own buckets, against the bare call",
            "figure",
            0.0,
            ("16 tasks, own buckets", BARE, RATE),
        ),
        judged(
            at_least,
            "rate, 1 task, against the peer",
            "≥ 5",
            5.0,
            ("1 task", PEER, RATE),
        ),
        judged(
            at_least,
            "rate, 16 tasks on own buckets, against the peer",
            "≥ 10",
            10.0,
            ("16 tasks, own buckets", PEER, RATE),
        ),
        judged(
            at_least,
            "rate, 16 tasks on one bucket, against the peer",
            "≥ 60",
            60.0,
            ("16 tasks, one bucket", PEER, RATE),
        ),
        judged(
            at_least,
            "rate, cascade of two, against the peer",
            "≥ 10",
            10.0,
            (CASCADE, PEER, RATE),
        ),
    ]
}

/// Goals of the Python package of this project, which are compared where both really write.
fn package_against_peer(results: &Results) -> Vec<Target> {
    let against = |case: &str| {
        let own = results.find(DYNAMODB, case, PACKAGE)?;
        let peer = results.find(DYNAMODB, case, PEER)?;
        Some(RATE(own)? / RATE(peer)?)
    };
    vec![
        at_least(
            "rate of the Python package, 1 task, against the peer",
            "≥ 3",
            against("1 task"),
            3.0,
        ),
        at_least(
            "rate of the Python package, 16 tasks on own buckets, against the peer",
            "≥ 5",
            against("16 tasks, own buckets"),
            5.0,
        ),
        at_least(
            "rate of the Python package, 16 tasks on one bucket, against the peer",
            "≥ 30",
            against("16 tasks, one bucket"),
            30.0,
        ),
        at_least(
            "refusals of the Python package, against the peer",
            "≥ 500",
            against("refusal"),
            500.0,
        ),
    ]
}

/// Goals for the limiter by itself.
fn alone(results: &Results) -> Vec<Target> {
    let of = |case, field: fn(&Figures) -> Option<f64>| results.find(DYNAMODB, case, OURS).and_then(field);
    vec![
        at_least(
            "refusals per second, 1 task",
            "≥ 2,000,000",
            of("refusal", RATE),
            2_000_000.0,
        ),
        at_most(
            "allocations of a refusal beyond those in its result",
            "0",
            of("refusal", |figures| figures.allocations)
                .zip(results.single(IN_RESPONSE))
                // Counted over a round, whose own few allocations are spread over all calls.
                .map(|(all, in_answer)| (all - in_answer).max(0.0).round()),
            0.0,
        ),
        at_most(
            "chunk hit, p50 in µs",
            "≤ 0.5",
            of("chunk hit", |figures| Some(figures.p50)),
            0.5,
        ),
        at_most(
            "writes of acquire and adjust",
            "≤ 2",
            of("adjust", |figures| figures.wcu),
            2.0,
        ),
        at_most(
            "bytes per known entity, 20,000 entities",
            "≤ 400",
            results.single(BYTES),
            400.0,
        ),
        at_most(
            "MB kept after 1,000,000 entities",
            "≤ 80",
            results.single(MEGABYTES),
            80.0,
        ),
        at_most(
            "calls per acquire, second pass over 20,000 entities",
            "≤ 1.0",
            results.single(SECOND_CALLS),
            1.0,
        ),
        at_most(
            "RCU per acquire, second pass over 20,000 entities",
            "0",
            results.single(SECOND_RCU),
            0.0,
        ),
        at_most(
            "RCU of the first acquire of an entity",
            "≤ 2",
            of("cold bucket", |figures| figures.rcu),
            2.0,
        ),
        at_most(
            "WCU of the first acquire of an entity",
            "≤ 2",
            of("cold bucket", |figures| figures.wcu),
            2.0,
        ),
    ]
}

/// Goals for the programs around the limiter.
fn programs(results: &Results) -> Vec<Target> {
    let load = |case, who| results.find(EMBEDDED, case, who).map(|figures| figures.rate);
    let to_client = load(OWN, OVER_HTTP)
        .zip(load(OWN, IN_PROCESS))
        .map(|(server, client)| server / client);
    let mut targets = vec![
        at_most(HELP, "≤ 5", results.single(HELP), 5.0),
        at_most(ACQUIRE, "≤ 15", results.single(ACQUIRE), 15.0),
        at_least(
            "server, acquires per second on one bucket",
            "≥ 20,000",
            load(HOT, OVER_HTTP),
            20_000.0,
        ),
        at_least(
            "server, rate on own buckets against its client",
            "≥ 0.9",
            to_client,
            0.9,
        ),
        at_least(RECORDS, "≥ 40,000", results.single(RECORDS), 40_000.0),
    ];
    targets.extend(ARCHIVES.map(|(_, name)| at_most(name, "≤ 2.5", results.single(name), 2.5)));
    targets
}

fn at_least(name: &'static str, goal: &'static str, measured: Option<f64>, bound: f64) -> Target {
    target(name, goal, measured, measured.map(|value| value >= bound))
}

fn at_most(name: &'static str, goal: &'static str, measured: Option<f64>, bound: f64) -> Target {
    target(name, goal, measured, measured.map(|value| value <= bound))
}

/// Something that is printed and has no goal.
fn figure(name: &'static str, kind: &'static str, measured: Option<f64>, _: f64) -> Target {
    target(name, kind, measured, None)
}

fn target(name: &'static str, goal: &'static str, measured: Option<f64>, met: Option<bool>) -> Target {
    let measured = match measured {
        None => "not measured".to_owned(),
        Some(value) if value >= 1_000.0 => format!("{value:.0}"),
        Some(value) => format!("{value:.2}"),
    };
    Target {
        name,
        goal,
        measured,
        met,
        beside: None,
    }
}

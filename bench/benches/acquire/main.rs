//! `acquire` beside the bare SDK call and the Python package, in one run: `make bench`.
//!
//! All contestants take turns on the same endpoint. The report is printed and written to `docs/performance`.

#![allow(
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    missing_docs
)]

mod callgrind;
mod cases;
mod chart;
mod clients;
mod commands;
mod endpoint;
mod entities;
mod functions;
mod http;
mod http_load;
mod measure;
mod peer;
mod recorded;
mod report;
mod results;
mod targets;

use std::time::Duration;

use tokio::runtime::Runtime;

use crate::cases::{CANNED, CANNED_LATE, CASCADE, DYNAMODB};
use crate::endpoint::Canned;
use crate::results::Results;

/// The name of the figures about many entities, beside the names of the cases.
const ENTITIES: &str = "entities";
/// Rounds that lost CPU time to other virtual machines.
const REPEATED: &str = "disturbed rounds that were repeated";
const KEPT: &str = "disturbed rounds that count";

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Some(place) = arguments.iter().position(|argument| argument == "--child") {
        return callgrind::child(&arguments[place + 1..]);
    }
    let dynamodb = endpoint::dynamodb();
    let (canned, canned_address) = Canned::start(dynamodb);
    let runtime = runtime();
    runtime.block_on(cases::prepare(dynamodb));

    if let Some(place) = arguments.iter().position(|argument| argument == "--profile") {
        record(&runtime, &canned, canned_address, Duration::ZERO);
        let argument = arguments.get(place + 1).map_or("ours", String::as_str);
        return callgrind::profile(argument, dynamodb, canned_address);
    }
    let mut results = Results::default();
    if let Some(place) = arguments.iter().position(|argument| argument == "--case") {
        let name = arguments.get(place + 1).map_or("", String::as_str);
        if name == ENTITIES {
            entities::many(&runtime, &mut results);
        } else {
            let is_wanted = |case: &str| case == name;
            cases::warm(&runtime, &mut results, (DYNAMODB, dynamodb), is_wanted);
            cases::named(&runtime, &mut results, (DYNAMODB, dynamodb), is_wanted);
            record(&runtime, &canned, canned_address, Duration::ZERO);
            cases::warm(&runtime, &mut results, (CANNED, canned_address), is_wanted);
            if name == CASCADE {
                cases::named(&runtime, &mut results, (CANNED, canned_address), is_wanted);
            }
        }
        let targets = targets::all(&results);
        println!("{}", report::text(&results, &targets, &report::last()));
        return;
    }
    cases::warm(&runtime, &mut results, (DYNAMODB, dynamodb), |_| true);
    cases::others(&runtime, &mut results, dynamodb);
    entities::at_random(&runtime, &mut results, dynamodb);
    entities::configuration(&runtime, &mut results, dynamodb);
    for (name, delay) in [(CANNED, Duration::ZERO), (CANNED_LATE, Duration::from_millis(5))] {
        record(&runtime, &canned, canned_address, delay);
        cases::warm(&runtime, &mut results, (name, canned_address), |_| true);
        if delay.is_zero() {
            cases::named(&runtime, &mut results, (name, canned_address), |case| {
                case == CASCADE
            });
            callgrind::count_all(&mut results, dynamodb, canned_address);
        }
    }
    entities::many(&runtime, &mut results);
    commands::starts(&mut results);
    http_load::measure(&mut results);
    functions::measure(&mut results);
    let (repeated, kept) = (results.disturbance.repeated, results.disturbance.kept);
    results.single.push((REPEATED, f64::from(repeated)));
    results.single.push((KEPT, f64::from(kept)));

    let targets = targets::all(&results);
    let text = report::text(&results, &targets, &report::last());
    println!("{text}");
    report::write(&results, &targets, &text).unwrap();
}

/// On the thread that calls, where allocations and processor time are counted.
fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

/// The buckets as they are now are what every write returns from here on: those of the cascade, and one for everybody else.
fn record(runtime: &Runtime, canned: &Canned, address: std::net::SocketAddr, delay: Duration) {
    canned.record();
    runtime.block_on(async {
        let limiter = clients::limiter(address).await.unwrap();
        clients::admitted(&limiter, "level-1").await;
        clients::admitted(&limiter, "user-0").await;
    });
    canned.replay_after(delay);
}

//! The long run: client processes on one table while the table's process is stopped, killed and restarted, clients are
//! killed in the middle of writes and processes of the function that counts usage in the middle of batches. At rest every count must agree.
//!
//! `make soak` runs it for 20 minutes with 2,000 entities; `make test` for two minutes with fewer.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod client;
mod function;
mod ledger;
mod processes;
mod run;
mod usage;
mod wire;

use std::path::Path;
use std::time::Duration;

/// How much is done.
#[derive(Debug, Clone, Copy)]
struct Size {
    time: Duration,
    clients: usize,
    entities: usize,
    /// Rounds of faults, spread over the time.
    rounds: u32,
    /// Of what is killed, and when.
    seed: u64,
}

impl Size {
    fn from_environment() -> Self {
        let seed = std::env::var("ZAE_SOAK_SEED")
            .ok()
            .and_then(|seed| seed.parse().ok());
        let seed = seed.unwrap_or_else(|| fastrand::u64(..));
        let long = std::env::var("ZAE_SOAK").is_ok_and(|length| length == "long");
        if long {
            Self {
                time: Duration::from_mins(20),
                clients: 8,
                entities: 2_000,
                rounds: 10,
                seed,
            }
        } else {
            Self {
                time: Duration::from_mins(2),
                clients: 8,
                entities: 120,
                rounds: 2,
                seed,
            }
        }
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["process-table", file, port] => processes::table(Path::new(file), port.parse().unwrap()),
        ["process-function", endpoint, halt_after] => function::main(endpoint, halt_after.parse().unwrap()),
        ["process-client", endpoint, folder, number, life, entities] => client::main(&client::Place {
            endpoint: endpoint.to_owned(),
            folder: Path::new(folder).to_owned(),
            number: number.parse().unwrap(),
            life: life.parse().unwrap(),
            entities: entities.parse().unwrap(),
        }),
        // The test harness passes filters on; those of other tests concern others.
        _ if arguments
            .iter()
            .any(|one| !one.starts_with('-') && !"soak".contains(one)) => {}
        _ if arguments.contains(&"--list") => {}
        _ => run::soak(Size::from_environment()),
    }
}

//! Instructions per operation, where valgrind is installed. The client runs alone in a process under callgrind; the endpoint stays
//! here.

use std::net::SocketAddr;
use std::process::Command;

use crate::cases::{BARE, CANNED, DYNAMODB, OURS, chunked, refused};
use crate::clients::{self, admitted, bare};
use crate::results::Results;

/// What is counted: its name as an argument, its row, and how many operations show what one takes.
struct Counted {
    argument: &'static str,
    row: (&'static str, &'static str, &'static str),
    operations: u32,
}

const COUNTED: [Counted; 4] = [
    Counted {
        argument: "ours",
        row: (CANNED, "1 task", OURS),
        operations: 50,
    },
    Counted {
        argument: "bare",
        row: (CANNED, "1 task", BARE),
        operations: 50,
    },
    Counted {
        argument: "refusal",
        row: (DYNAMODB, "refusal", OURS),
        operations: 2_000,
    },
    Counted {
        argument: "chunk",
        row: (DYNAMODB, "chunk hit", OURS),
        // Enough that a few more or fewer writes before the first chunk make no difference.
        operations: 20_000,
    },
];

/// Operations that warm up and are not counted.
const WARM: u32 = 10;

/// A process that has no chunk in hand after this number of calls gives up.
const MAX_UNTIL_CHUNK: u32 = 2_000;

/// Operations that follow the first chunk and are not counted.
const WARM_CHUNK: u32 = 500;

/// Adds instructions per operation to the rows that have any.
pub(crate) fn count(results: &mut Results, dynamodb: SocketAddr, canned: SocketAddr) {
    if Command::new("valgrind").arg("--version").output().is_err() {
        eprintln!("  instructions are not counted: valgrind is not installed");
        return;
    }
    for counted in &COUNTED {
        let (endpoint, case, who) = counted.row;
        let address = if endpoint == CANNED { canned } else { dynamodb };
        let Some(instructions) = per_operation(address, counted) else {
            eprintln!("  instructions of {case}, {who} could not be counted");
            continue;
        };
        if let Some(figures) = results.find_mut(endpoint, case, who) {
            figures.instructions = Some(instructions);
        }
    }
}

/// Counts one of them alone, and leaves the profile for `callgrind_annotate` in the folder for temporary files.
pub(crate) fn profile(argument: &str, dynamodb: SocketAddr, canned: SocketAddr) {
    let Some(counted) = COUNTED.iter().find(|counted| counted.argument == argument) else {
        eprintln!("there is no {argument} to profile");
        return;
    };
    let address = if counted.row.0 == CANNED { canned } else { dynamodb };
    let file = std::env::temp_dir().join(format!("callgrind.{argument}.out"));
    let file = file.to_string_lossy();
    instructions(address, argument, WARM + counted.operations, &file);
    match per_operation(address, counted) {
        Some(instructions) => println!("{argument}: {instructions:.0} instructions; profile in {file}"),
        None => eprintln!("{argument} could not be counted"),
    }
}

fn per_operation(address: SocketAddr, counted: &Counted) -> Option<f64> {
    let total = |operations| instructions(address, counted.argument, operations, "/dev/null");
    let (few, more) = (total(WARM)?, total(WARM + counted.operations)?);
    Some((more - few) / f64::from(counted.operations))
}

fn instructions(address: SocketAddr, argument: &str, operations: u32, file: &str) -> Option<f64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", &format!("--callgrind-out-file={file}")])
        .arg(std::env::current_exe().ok()?)
        .args(["--child", &address.to_string(), argument, &operations.to_string()])
        .output()
        .ok()?;
    if !output.status.success() {
        return None;
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let line = text.lines().find_map(|line| line.split_once("Collected :"))?.1;
    line.trim().parse().ok()
}

/// The process under callgrind.
pub(crate) fn child(arguments: &[String]) {
    let [endpoint, who, operations] = arguments else {
        return;
    };
    let (endpoint, operations): (SocketAddr, u32) = (endpoint.parse().unwrap(), operations.parse().unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    // Under valgrind everything takes fifty times as long.
    let patient = || clients::limiter(endpoint).time_budget(std::time::Duration::from_secs(60));
    runtime.block_on(async {
        match who.as_str() {
            "bare" => {
                let client = clients::sdk(endpoint);
                for _ in 0..operations {
                    bare(&client, "user-0").await;
                }
            }
            "refusal" => {
                let limiter = patient().await.unwrap();
                for _ in 0..operations {
                    refused(&limiter).await;
                }
            }
            "chunk" => {
                let limiter = patient().token_chunks().await.unwrap();
                // A steady rate first, so that there is a chunk in hand.
                let mut calls = 0;
                while limiter.stats().chunk_grants == 0 {
                    if calls == MAX_UNTIL_CHUNK {
                        std::process::exit(1);
                    }
                    calls += 1;
                    chunked(&limiter).await;
                }
                for _ in 0..WARM_CHUNK {
                    chunked(&limiter).await;
                }
                for _ in 0..operations {
                    chunked(&limiter).await;
                }
            }
            _ => {
                let limiter = patient().await.unwrap();
                for _ in 0..operations {
                    admitted(&limiter, "user-0").await;
                }
            }
        }
    });
}

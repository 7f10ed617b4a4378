//! Instructions per operation, where valgrind is installed. The client runs alone in a process under callgrind; the endpoint stays
//! here.

use std::net::SocketAddr;
use std::process::Command;

use tokio::runtime::Runtime;

use crate::cases::{BARE, CANNED, DYNAMODB, OURS, chunked, refused, warm_up_chunks};
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
        // Enough that a few more or fewer writes make no difference.
        operations: 20_000,
    },
];

/// Operations that warm up and are not counted.
const WARM: u32 = 10;

/// Adds instructions per operation to the rows that have any.
pub(crate) fn count_all(results: &mut Results, dynamodb: SocketAddr, canned: SocketAddr) {
    if Command::new("valgrind").arg("--version").output().is_err() {
        eprintln!("  instructions are not counted: valgrind is not installed");
        return;
    }
    for counted in &COUNTED {
        let (endpoint, case, who) = counted.row;
        let address = if endpoint == CANNED { canned } else { dynamodb };
        let Some(instructions) = per_operation(address, counted, "/dev/null") else {
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
    match per_operation(address, counted, &file) {
        Some(instructions) => println!("{argument}: {instructions:.0} instructions; profile in {file}"),
        None => eprintln!("{argument} could not be counted"),
    }
}

fn per_operation(address: SocketAddr, counted: &Counted, file: &str) -> Option<f64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", &format!("--callgrind-out-file={file}")])
        .arg("--toggle-collect=*under_callgrind*")
        .arg(std::env::current_exe().ok()?)
        .args(["--child", &address.to_string(), counted.argument])
        .arg(counted.operations.to_string())
        .output()
        .ok()?;
    if !output.status.success() {
        return None;
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let line = text.lines().find_map(|line| line.split_once("Collected :"))?.1;
    let instructions: f64 = line.trim().parse().ok()?;
    Some(instructions / f64::from(counted.operations))
}

/// Runs what is counted, and nothing else: callgrind counts from the begin of this function to its end.
#[inline(never)]
fn under_callgrind(runtime: &Runtime, operations: impl Future<Output = ()>) {
    runtime.block_on(operations);
    std::hint::black_box(runtime);
}

/// The process under callgrind.
pub(crate) fn child(arguments: &[String]) {
    let [endpoint, who, operations] = arguments else {
        return;
    };
    let (endpoint, operations): (SocketAddr, u32) = (endpoint.parse().unwrap(), operations.parse().unwrap());
    let runtime = crate::runtime();
    if who == "bare" {
        let client = clients::sdk(endpoint);
        return count(&runtime, operations, async || bare(&client, "user-0").await);
    }
    // Under valgrind everything takes fifty times as long.
    let patient = clients::limiter(endpoint).time_budget(std::time::Duration::from_secs(60));
    let limiter = runtime.block_on(async {
        match who.as_str() {
            "chunk" => patient.token_chunks().await.unwrap(),
            _ => patient.await.unwrap(),
        }
    });
    match who.as_str() {
        "refusal" => count(&runtime, operations, async || refused(&limiter).await),
        "chunk" => {
            runtime.block_on(warm_up_chunks(&limiter));
            count(&runtime, operations, async || chunked(&limiter).await);
        }
        _ => count(&runtime, operations, async || admitted(&limiter, "user-0").await),
    }
}

fn count(runtime: &Runtime, operations: u32, operation: impl AsyncFn()) {
    let times = async |times| {
        for _ in 0..times {
            operation().await;
        }
    };
    runtime.block_on(times(WARM));
    under_callgrind(runtime, times(operations));
}

//! Instructions of one warm acquire and of one bare call, where valgrind is installed. The client runs alone in a process under
//! callgrind; the endpoint stays here.

use std::net::SocketAddr;
use std::process::Command;

use crate::cases::{BARE, CANNED, OURS};
use crate::clients::{self, admitted, bare};
use crate::results::Results;

const FEW: u32 = 10;
const MORE: u32 = 60;

/// Adds instructions per operation to the rows of one task.
pub(crate) fn count(results: &mut Results, endpoint: SocketAddr) {
    if Command::new("valgrind").arg("--version").output().is_err() {
        eprintln!("  instructions are not counted: valgrind is not installed");
        return;
    }
    for (who, argument) in [(OURS, "ours"), (BARE, "bare")] {
        let total = |operations: u32| instructions(endpoint, argument, operations);
        let (Some(few), Some(more)) = (total(FEW), total(MORE)) else {
            eprintln!("  instructions of {who} could not be counted");
            continue;
        };
        if let Some(figures) = results.find_mut(CANNED, "1 task", who) {
            figures.instructions = Some((more - few) / f64::from(MORE - FEW));
        }
    }
}

fn instructions(endpoint: SocketAddr, who: &str, operations: u32) -> Option<f64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(std::env::current_exe().ok()?)
        .args(["--child", &endpoint.to_string(), who, &operations.to_string()])
        .output()
        .ok()?;
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
    runtime.block_on(async {
        if who == "bare" {
            let client = clients::sdk(endpoint);
            for _ in 0..operations {
                bare(&client, "user-0").await;
            }
        } else {
            // Under valgrind everything takes fifty times as long.
            let patient = std::time::Duration::from_secs(60);
            let limiter = clients::limiter(endpoint).time_budget(patient).await.unwrap();
            for _ in 0..operations {
                admitted(&limiter, "user-0").await;
            }
        }
    });
}

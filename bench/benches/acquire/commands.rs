//! How long the command line takes from start to end, beside a program that does nothing.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::measure::median;
use crate::results::Results;

/// Runs of each program, and how many of them are a round.
const RUNS: usize = 30;
const ROUND: usize = 10;

pub(crate) const HELP: &str = "zae-limiter --help, ms";
pub(crate) const ACQUIRE: &str = "zae-limiter acquire on a file, ms";
const NOTHING: &str = "a process that does nothing (true), ms";

/// A program of the same profile that `scripts/bench` has built.
pub(crate) fn built(path: &str) -> Option<PathBuf> {
    let own = std::env::current_exe().ok()?;
    let folder = own.parent().and_then(Path::parent)?;
    let program = folder.join(path);
    if program.is_file() {
        return Some(program);
    }
    eprintln!("  not measured: {} is not there", program.display());
    None
}

/// Adds the times of `--help` and of an acquire on an embedded file that exists.
pub(crate) fn starts(results: &mut Results) {
    let Some(program) = built("zae-limiter") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("limits.db").display().to_string();
    let embedded = |arguments: &[&str]| -> Vec<String> {
        let all = ["--embedded", &file].into_iter().chain(arguments.iter().copied());
        all.map(str::to_owned).collect()
    };
    let defaults = embedded(&["system", "set-defaults", "-l", "rpm:1000000"]);
    let acquire = embedded(&["acquire", "user-1", "gpt-4", "-c", "rpm:1"]);
    run(&program, &defaults);
    run(&program, &acquire);
    let help = vec!["--help".to_owned()];
    let nothing = PathBuf::from("true");
    let cases = [
        (HELP, &program, help),
        (ACQUIRE, &program, acquire),
        (NOTHING, &nothing, vec![]),
    ];
    // In turns, so that whatever else this machine does slows all of them.
    let turn = || {
        cases
            .each_ref()
            .map(|(_, program, arguments)| run(program, arguments))
    };
    let mut turns = Vec::new();
    while turns.len() < RUNS {
        let round = || (0..ROUND).map(|_| turn()).collect::<Vec<_>>();
        turns.extend(results.disturbance.undisturbed(round));
    }
    for (index, (name, ..)) in cases.iter().enumerate() {
        let times = turns.iter().map(|turn| turn[index]).collect();
        results.single.push((name, median(times)));
    }
}

/// Runs a program to its end, in milliseconds.
fn run(program: &Path, arguments: &[String]) -> f64 {
    let started = Instant::now();
    let status = Command::new(program)
        .args(arguments)
        .stdout(Stdio::null())
        .status()
        .unwrap();
    let took = started.elapsed();
    assert!(status.success(), "{} {arguments:?}: {status}", program.display());
    took.as_secs_f64() * 1e3
}

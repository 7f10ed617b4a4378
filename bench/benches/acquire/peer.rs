//! The Python package of the same name, in a process of its own.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::clients::TABLE;
use crate::measure::{Figures, ROUNDS};

/// How long each round runs, in seconds. Some of its calls take most of a second, so shorter rounds would cut them off.
const SECONDS: &str = "0.8";

/// The interpreter that has it installed, if there is one.
pub(crate) fn python() -> Option<PathBuf> {
    let installed = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../.venv/peer/bin/python");
    let python = std::env::var_os("ZAE_TEST_PEER_PYTHON").map_or_else(installed, PathBuf::from);
    python.exists().then_some(python)
}

/// Where this project's own Python package is, which has the same API; `scripts/bench` builds it.
pub(crate) fn own_package() -> Option<PathBuf> {
    std::env::var_os("ZAE_BENCH_PYTHON_PACKAGE").map(PathBuf::from)
}

/// Runs a case with asyncio or threads, on the package in that folder instead of the peer's if there is one.
pub(crate) fn run(
    (python, package): (&Path, Option<&Path>),
    endpoint: SocketAddr,
    how: &str,
    tasks: usize,
    entity: &str,
    own: bool,
) -> Result<Figures, String> {
    let mut command = Command::new(python);
    command
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/acquire/peer.py"))
        .args([
            TABLE,
            &format!("http://{endpoint}"),
            how,
            &tasks.to_string(),
            &ROUNDS.to_string(),
            SECONDS,
            entity,
        ])
        .arg(if own { "own" } else { "one" })
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("AWS_ACCESS_KEY_ID", "test")
        .env("AWS_SECRET_ACCESS_KEY", "test")
        .env("AWS_REGION", "us-east-1");
    if let Some(package) = package {
        command
            .env("PYTHONPATH", package)
            .env("ZAE_BENCH_PACKAGE", "zae_limiter_rs");
    }
    let output = command.output().map_err(|error| error.to_string())?;
    let rounds: Vec<Value> = serde_json::from_slice(&output.stdout).map_err(|_| {
        String::from_utf8_lossy(&output.stderr)
            .lines()
            .last()
            .unwrap_or_default()
            .to_owned()
    })?;
    Ok(Figures::of(&rounds.iter().map(figures).collect::<Vec<_>>()))
}

fn figures(round: &Value) -> Figures {
    let number = |field: &str| round[field].as_f64().unwrap_or(0.0);
    Figures {
        rate: number("rate"),
        p50: number("p50"),
        p99: number("p99"),
        cpu: Some(number("cpu")),
        ..Figures::default()
    }
}

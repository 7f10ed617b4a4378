//! The HTTP server under load beside the client in the same process: the example `http_load` of the server.

use std::process::Command;

use serde_json::Value;

use crate::commands::built;
use crate::measure::Figures;
use crate::results::Results;

/// The endpoint, in the table: the store is in the process of the server.
pub(crate) const EMBEDDED: &str = "embedded";
pub(crate) const HOT: &str = "64 connections, one bucket";
pub(crate) const OWN: &str = "64 connections, own buckets";
pub(crate) const OVER_HTTP: &str = "server, HTTP";
pub(crate) const IN_PROCESS: &str = "in its process";

const SECONDS: &str = "5";

/// Adds a row for the server and for its client, of each case.
pub(crate) fn measure(results: &mut Results) {
    let Some(program) = built("examples/http_load") else {
        return;
    };
    let report = match results.disturbance.undisturbed(|| load(&program)) {
        Ok(report) => report,
        Err(error) => return eprintln!("  the server under load was not measured: {error}"),
    };
    for (case, measured) in [(HOT, &report["hot"]), (OWN, &report["own"])] {
        for (who, side) in [(OVER_HTTP, &measured["http"]), (IN_PROCESS, &measured["client"])] {
            results.add(EMBEDDED, case, who, figures(side));
        }
    }
}

fn load(program: &std::path::Path) -> Result<Value, String> {
    let output = Command::new(program)
        .arg(SECONDS)
        .output()
        .map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())
}

fn figures(side: &Value) -> Figures {
    let number = |field: &str| side[field].as_f64().unwrap_or(0.0);
    Figures {
        rate: number("acquires_per_second"),
        p50: number("p50_ms") * 1e3,
        p99: number("p99_ms") * 1e3,
        calls: Some(number("table_calls") / number("acquires").max(1.0)),
        ..Figures::default()
    }
}

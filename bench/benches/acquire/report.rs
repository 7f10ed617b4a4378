//! The table, the comparison with the last committed run, and the files in docs/performance.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::cases::IN_RESPONSE;
use crate::chart;
use crate::entities::{BYTES, SECOND_CALLS, SECOND_RCU};
use crate::functions;
use crate::results::{Results, Row};
use crate::targets::Target;

/// Two runs on a quiet machine differ by this much though every round of one is the same.
const LEAST_NOISE: f64 = 0.10;

/// Figures that do not depend on what else the machine does.
const COUNTS: [&str; 4] = [BYTES, SECOND_CALLS, SECOND_RCU, IN_RESPONSE];

/// What the verdicts are about.
const ABOUT_TARGETS: &str = "\
Comparisons are judged on recorded responses, where only the client differs. On dynoxide, whose ratio stands at the end of the line,
client and server share the processors, and the server's own work is most of every call.
";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/performance")
}

/// The last committed run.
pub(crate) fn last() -> Value {
    let text = std::fs::read_to_string(folder().join("results.json")).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or(Value::Null)
}

/// The whole report as text.
pub(crate) fn text(results: &Results, targets: &[Target], last: &Value) -> String {
    let mut text = format!(
        "{:<13} {:<30} {:<16} {:>11} {:>10} {:>10} {:>8} {:>7} {:>8} {:>5} {:>5} {:>5} {:>6}\n",
        "endpoint",
        "case",
        "client",
        "rate/s",
        "p50 µs",
        "p99 µs",
        "CPU µs",
        "alloc",
        "instr",
        "calls",
        "RCU",
        "WCU",
        "noise"
    );
    let optional =
        |value: Option<f64>, digits: usize| value.map_or("-".to_owned(), |value| format!("{value:.digits$}"));
    for row in &results.rows {
        let figures = &row.figures;
        let _ = writeln!(
            text,
            "{:<13} {:<30} {:<16} {:>11.0} {:>10.2} {:>10.2} {:>8} {:>7} {:>8} {:>5} {:>5} {:>5} {:>5.0}%{}",
            row.endpoint,
            row.case,
            row.who,
            figures.rate,
            figures.p50,
            figures.p99,
            optional(figures.cpu, 1),
            optional(figures.allocations, 1),
            optional(figures.instructions, 0),
            optional(figures.calls, 2),
            optional(figures.rcu, 2),
            optional(figures.wcu, 2),
            figures.noise * 100.0,
            worse(row, last),
        );
    }
    text.push('\n');
    for (name, value) in &results.single {
        let _ = writeln!(text, "{name:<50} {value:>14.2}{}", more(name, *value, last));
    }
    text.push('\n');
    text.push_str(ABOUT_TARGETS);
    for target in targets {
        let beside = target.beside.as_ref().map_or(String::new(), |other| {
            format!("dynoxide: {} {}", other.measured, other.verdict())
        });
        let line = format!(
            "{:<55} {:>12} {:>14}  {:<8} {beside}",
            target.name,
            target.goal,
            target.measured,
            target.verdict()
        );
        let _ = writeln!(text, "{}", line.trim_end());
    }
    for (title, variable) in [
        ("The functions, as they are packed", "ZAE_BENCH_FUNCTIONS"),
        ("The decision, beside governor", "ZAE_BENCH_DECISION"),
    ] {
        let printed = functions::printed(variable);
        if !printed.is_empty() {
            let _ = write!(text, "\n{title}\n\n{printed}");
        }
    }
    text
}

/// Whether a count that must not grow has grown since the last committed run.
fn more(name: &str, now: f64, last: &Value) -> String {
    let before = last["single"][name].as_f64().filter(|_| COUNTS.contains(&name));
    match before {
        Some(before) if now > before * 1.05 + 0.5 => format!("  WORSE: was {before:.2}"),
        _ => String::new(),
    }
}

/// What got worse since the last committed run, beyond the noise of both.
fn worse(row: &Row, last: &Value) -> String {
    let rows = last["rows"].as_array().map_or(&[][..], Vec::as_slice);
    let same = |old: &&Value| {
        old["endpoint"] == row.endpoint && old["case"] == row.case.as_str() && old["who"] == row.who
    };
    let Some(old) = rows.iter().find(same) else {
        return String::new();
    };
    let mut marks = String::new();
    let noise = (row.figures.noise + old["noise"].as_f64().unwrap_or(0.0)).max(LEAST_NOISE);
    if let Some(rate) = old["rate"].as_f64()
        && row.figures.rate < rate * (1.0 - noise)
    {
        let _ = write!(marks, "  WORSE: rate was {rate:.0}");
    }
    // Counts do not depend on what else the machine does.
    for (name, now) in [
        ("allocations", row.figures.allocations),
        ("instructions", row.figures.instructions),
        ("calls", row.figures.calls),
    ] {
        if let (Some(now), Some(before)) = (now, old[name].as_f64())
            && now > before * 1.05 + 0.5
        {
            let _ = write!(marks, "  WORSE: {name} were {before:.1}");
        }
    }
    marks
}

/// Writes JSON, text and charts.
pub(crate) fn write(results: &Results, targets: &[Target], text: &str) -> std::io::Result<()> {
    let folder = folder();
    std::fs::create_dir_all(&folder)?;
    let mut all = results.to_json();
    all["targets"] = json!(targets.iter().map(Target::to_json).collect::<Vec<_>>());
    std::fs::write(folder.join("results.json"), format!("{all:#}\n"))?;
    std::fs::write(folder.join("results.txt"), text)?;
    for (file, endpoint, title) in [
        (
            "dynoxide.svg",
            crate::cases::DYNAMODB,
            "Acquires per second, dynoxide over HTTP",
        ),
        (
            "canned.svg",
            crate::cases::CANNED,
            "Acquires per second, recorded responses",
        ),
        (
            "latency.svg",
            crate::cases::CANNED_LATE,
            "Acquires per second, recorded responses after 5 ms",
        ),
    ] {
        let bars: Vec<_> = results
            .rows
            .iter()
            .filter(|row| row.endpoint == endpoint)
            .map(|row| (format!("{}, {}", row.case, row.who), row.figures.rate))
            .collect();
        std::fs::write(folder.join(file), chart::bars(title, &bars))?;
    }
    Ok(())
}

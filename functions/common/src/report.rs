//! What an invocation did: one log line that CloudWatch also reads as metrics, and a line for each problem.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use serde_json::{Map, Value, json};
use zae_limiter_schema::Timestamp;

/// The metrics that both functions have.
pub mod metric {
    /// Records delivered.
    pub const RECORDS: &str = "Records";
    /// Records that are delivered again.
    pub const FAILURES: &str = "Failures";
    /// Records kept in the dead-letter queue.
    pub const DEAD_LETTERS: &str = "DeadLetters";
    /// Acquires that were counted, by resource.
    pub const ACQUIRES: &str = "Acquires";
}

/// The level of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// For debugging.
    Debug,
    /// Normal operation.
    Info,
    /// Needs attention.
    Warn,
    /// Something failed.
    Error,
}

impl Level {
    /// Reads `debug`, `info`, `warn` or `error`.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text.to_ascii_lowercase().as_str() {
            "debug" => Ok(Self::Debug),
            "info" => Ok(Self::Info),
            "warn" => Ok(Self::Warn),
            "error" => Ok(Self::Error),
            _ => Err("it must be debug, info, warn or error".to_owned()),
        }
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "DEBUG",
            Self::Info => "INFO",
            Self::Warn => "WARN",
            Self::Error => "ERROR",
        }
    }
}

/// A log line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Its level.
    pub level: Level,
    /// What happened.
    pub message: String,
}

/// What an invocation did.
#[derive(Debug, Clone)]
pub struct Report {
    level: Level,
    counts: Vec<(&'static str, u64)>,
    notes: Vec<Note>,
    unsaid: u64,
    oldest: Option<Timestamp>,
    acquires: BTreeMap<String, u64>,
}

/// More lines than this add nothing.
const MAX_NOTES: usize = 20;
/// The namespace of the metrics in CloudWatch.
const NAMESPACE: &str = "ZaeLimiter";

impl Report {
    /// A report with these metrics, all zero. Lines below the level are dropped.
    pub fn new(level: Level, metrics: &[&'static str]) -> Self {
        Self {
            level,
            counts: metrics.iter().map(|name| (*name, 0)).collect(),
            notes: Vec::new(),
            unsaid: 0,
            oldest: None,
            acquires: BTreeMap::new(),
        }
    }

    /// Adds to a metric.
    pub fn count(&mut self, metric: &'static str, by: u64) {
        match self.counts.iter_mut().find(|(name, _)| *name == metric) {
            Some((_, count)) => *count += by,
            None => self.counts.push((metric, by)),
        }
    }

    /// Adds to the acquires of a resource. Each resource is a metric of its own, so their number must be bounded.
    pub fn acquired(&mut self, resource: &str, acquires: u64) {
        if acquires > 0 {
            *self.acquires.entry(resource.to_owned()).or_default() += acquires;
        }
    }

    /// The acquires by resource.
    pub fn acquires(&self) -> &BTreeMap<String, u64> {
        &self.acquires
    }

    /// The current value of a metric.
    pub fn counted(&self, metric: &str) -> u64 {
        let found = self.counts.iter().find(|(name, _)| *name == metric);
        found.map_or(0, |(_, count)| *count)
    }

    /// Adds a log line. After 20 lines, further ones are only counted.
    pub fn note(&mut self, level: Level, message: impl Into<String>) {
        if level < self.level {
        } else if self.notes.len() < MAX_NOTES {
            let message = message.into();
            self.notes.push(Note { level, message });
        } else {
            self.unsaid += 1;
        }
    }

    /// The lines so far.
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// Notes when a record of the batch was made. The oldest one is the function's lag.
    pub fn made_at(&mut self, time: Timestamp) {
        self.oldest = Some(self.oldest.map_or(time, |oldest| oldest.min(time)));
    }

    /// The log lines as JSON. The last one is also the metrics, in CloudWatch's embedded metric format, as are the lines of
    /// the resources.
    pub fn lines(&self, function: &str, request: &str, now: SystemTime, took: Duration) -> Vec<String> {
        let now = millis(now);
        let head = |level: Level, message: &str| {
            let mut line = Map::new();
            line.insert("timestamp".into(), json!(Timestamp::from_millis(now)));
            line.insert("level".into(), json!(level.as_str()));
            line.insert("message".into(), json!(message));
            line.insert("requestId".into(), json!(request));
            line
        };
        let mut lines: Vec<_> = self
            .notes
            .iter()
            .map(|note| head(note.level, &note.message))
            .collect();
        if self.unsaid > 0 {
            lines.push(head(
                Level::Warn,
                &format!("{} more lines like these are left out", self.unsaid),
            ));
        }
        lines.extend(self.acquires.iter().map(|(resource, acquires)| {
            let mut line = head(Level::Info, "usage of a resource");
            let names = [json!({"Name": metric::ACQUIRES, "Unit": "Count"})];
            line.extend(embedded(now, &["FunctionName", "Resource"], &names));
            line.insert("FunctionName".into(), json!(function));
            line.insert("Resource".into(), json!(resource));
            line.insert(metric::ACQUIRES.into(), json!(acquires));
            line
        }));
        let mut last = head(Level::Info, "batch processed");
        last.extend(self.metrics(function, now, took));
        lines.push(last);
        lines
            .into_iter()
            .map(|line| Value::Object(line).to_string())
            .collect()
    }

    fn metrics(&self, function: &str, now: i64, took: Duration) -> Map<String, Value> {
        let lag = self
            .oldest
            .map(|oldest| ("Lag", json!(Timestamp::from_millis(now).since(oldest))));
        let duration = (
            "Duration",
            json!(u64::try_from(took.as_millis()).unwrap_or(u64::MAX)),
        );
        let counts = self.counts.iter().map(|(name, count)| (*name, json!(count)));
        let times: Vec<_> = lag.into_iter().chain([duration]).collect();
        let definitions: Vec<_> = counts
            .clone()
            .map(|(name, _)| json!({"Name": name, "Unit": "Count"}))
            .chain(
                times
                    .iter()
                    .map(|(name, _)| json!({"Name": name, "Unit": "Milliseconds"})),
            )
            .collect();
        let mut line = embedded(now, &["FunctionName"], &definitions);
        line.insert("FunctionName".into(), json!(function));
        line.extend(counts.chain(times).map(|(name, value)| (name.to_owned(), value)));
        line
    }
}

/// What makes a log line metrics.
fn embedded(now: i64, dimensions: &[&str], metrics: &[Value]) -> Map<String, Value> {
    let directive = json!({"Namespace": NAMESPACE, "Dimensions": [dimensions], "Metrics": metrics});
    let mut line = Map::new();
    line.insert(
        "_aws".into(),
        json!({"Timestamp": now, "CloudWatchMetrics": [directive]}),
    );
    line
}

pub(crate) fn millis(time: SystemTime) -> i64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn the_last_line_is_metrics_in_the_embedded_format() {
        let mut report = Report::new(Level::Info, &["Records", "Failures"]);
        report.count("Records", 3);
        report.made_at(Timestamp::from_millis(1_000));
        report.made_at(Timestamp::from_millis(4_000));
        report.note(Level::Debug, "not kept");
        report.note(Level::Warn, "look");
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(5);
        let lines = report.lines("agg", "id-1", now, Duration::from_millis(12));
        assert_eq!(lines.len(), 2);
        let note: Value = serde_json::from_str(&lines[0]).unwrap();
        assert_eq!(
            (&note["level"], &note["requestId"]),
            (&json!("WARN"), &json!("id-1"))
        );
        let last: Value = serde_json::from_str(&lines[1]).unwrap();
        let directive = &last["_aws"]["CloudWatchMetrics"][0];
        let names: Vec<_> = directive["Metrics"]
            .as_array()
            .unwrap()
            .iter()
            .map(|m| &m["Name"])
            .collect();
        assert_eq!(names, ["Records", "Failures", "Lag", "Duration"]);
        assert_eq!(directive["Dimensions"], json!([["FunctionName"]]));
        assert_eq!((&last["Records"], &last["Failures"]), (&json!(3), &json!(0)));
        assert_eq!((&last["Lag"], &last["Duration"]), (&json!(4_000), &json!(12)));
        assert_eq!(last["FunctionName"], json!("agg"));
    }

    #[test]
    fn each_resource_has_a_line_with_a_dimension_of_its_own() {
        let mut report = Report::new(Level::Error, &["Records"]);
        report.acquired("gpt-4", 2);
        report.acquired("claude", 0);
        report.acquired("gpt-4", 5);
        let lines = report.lines("agg", "id-1", SystemTime::UNIX_EPOCH, Duration::ZERO);
        assert_eq!(lines.len(), 2, "one for the resource, one for the batch");
        let line: Value = serde_json::from_str(&lines[0]).unwrap();
        assert_eq!(
            line["_aws"]["CloudWatchMetrics"],
            json!([{"Namespace": "ZaeLimiter", "Dimensions": [["FunctionName", "Resource"]],
                "Metrics": [{"Name": "Acquires", "Unit": "Count"}]}])
        );
        assert_eq!(
            (&line["FunctionName"], &line["Resource"], &line["Acquires"]),
            (&json!("agg"), &json!("gpt-4"), &json!(7))
        );
    }

    #[test]
    fn a_flood_of_lines_is_cut_short_and_says_so() {
        let mut report = Report::new(Level::Info, &[]);
        (0..1000).for_each(|n| report.note(Level::Error, n.to_string()));
        let lines = report.lines("f", "r", SystemTime::UNIX_EPOCH, Duration::ZERO);
        assert_eq!(lines.len(), MAX_NOTES + 2);
        assert!(lines[MAX_NOTES].contains("980 more"));
    }
}

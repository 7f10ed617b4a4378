//! Progress of `audit archive`: a bar on a terminal, periodic lines in CI, JSON lines for programs.

use std::time::{Duration, Instant};

use serde_json::json;

use super::summary::Summary;
use crate::output::live::{self, Style};
use crate::output::{Terminal, grouped};

/// The interval between updates on a terminal, and between lines elsewhere.
const REDRAW_INTERVAL: Duration = Duration::from_millis(100);
const LINE_INTERVAL: Duration = Duration::from_secs(2);

pub(super) struct Progress {
    style: Style,
    /// The approximate number of items in the table.
    total: Option<u64>,
    started: Instant,
    shown: Option<Instant>,
}

impl Progress {
    pub(super) fn new(terminal: &Terminal, total: Option<u64>) -> Self {
        Self {
            style: Style::of(terminal),
            total,
            started: Instant::now(),
            shown: None,
        }
    }

    /// Shows the progress, at most once per interval.
    pub(super) fn show(&mut self, summary: &Summary) {
        let interval = match self.style {
            Style::Live => REDRAW_INTERVAL,
            Style::Lines | Style::Json => LINE_INTERVAL,
        };
        if self.shown.is_some_and(|shown| shown.elapsed() < interval) {
            return;
        }
        self.shown = Some(Instant::now());
        let elapsed = self.started.elapsed();
        match self.style {
            Style::Json => live::line(&json!({
                "event": "progress", "items_read": summary.items_read, "items_expected": self.total,
                "events": summary.events, "archived": summary.archived,
            })),
            Style::Lines => live::print(&format!("{} {}\n", live::clock(elapsed), counts(summary))),
            Style::Live => {
                let line = line(summary, self.total, elapsed);
                live::print(&format!("{}{}", live::CLEAR, live::cut(&line, live::width())));
            }
        }
    }

    /// Clears the status line.
    pub(super) fn finish(&self) {
        if self.style == Style::Live {
            live::print(live::CLEAR);
        }
    }

    /// Prints the result as a JSON line. Returns false if the output is not JSON and the summary is yet to be printed.
    pub(super) fn result(&self, summary: &Summary) -> bool {
        if self.style != Style::Json {
            return false;
        }
        let mut result = serde_json::to_value(summary).unwrap_or_default();
        result["event"] = "done".into();
        live::line(&result);
        true
    }
}

fn counts(summary: &Summary) -> String {
    format!(
        "{} items read, {} events found, {} archived",
        grouped(summary.items_read),
        grouped(summary.events),
        grouped(summary.archived)
    )
}

/// The status line, with a bar if the total is known.
fn line(summary: &Summary, total: Option<u64>, elapsed: Duration) -> String {
    let size = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
    let bar = total.map(|total| format!("{} ", live::bar(size(summary.items_read), size(total))));
    format!(
        "{}{} {}",
        bar.unwrap_or_default(),
        live::clock(elapsed),
        counts(summary)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_shows_the_share_of_items_read() {
        let mut summary = Summary::default();
        (summary.items_read, summary.events, summary.archived) = (1_500, 20, 10);
        assert_eq!(
            line(&summary, Some(2_000), Duration::from_secs(65)),
            "███████████████░░░░░ 01:05 1,500 items read, 20 events found, 10 archived"
        );
        assert!(line(&summary, None, Duration::ZERO).starts_with("00:00 "));
    }
}

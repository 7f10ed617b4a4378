//! How far it is: a bar on a terminal, a line now and then in CI, JSON lines for programs.

use std::time::{Duration, Instant};

use serde_json::json;

use super::summary::Summary;
use crate::output::live::{self, Style};
use crate::output::{Terminal, grouped};

/// How often a terminal is drawn anew, and how often there is a line elsewhere.
const DRAWN_EVERY: Duration = Duration::from_millis(100);
const LINE_EVERY: Duration = Duration::from_secs(2);

pub(super) struct Progress {
    style: Style,
    /// About how many items the table has.
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

    /// Shows it, unless it was shown a moment ago.
    pub(super) fn show(&mut self, summary: &Summary) {
        let pause = match self.style {
            Style::Live => DRAWN_EVERY,
            Style::Lines | Style::Json => LINE_EVERY,
        };
        if self.shown.is_some_and(|shown| shown.elapsed() < pause) {
            return;
        }
        self.shown = Some(Instant::now());
        let elapsed = self.started.elapsed();
        match self.style {
            Style::Json => live::line(&json!({
                "event": "progress", "items_read": summary.items_read, "items_expected": self.total,
                "events": summary.events, "archived": summary.archived,
            })),
            Style::Lines => live::print(&format!("{} {}\n", live::clock(elapsed), told(summary))),
            Style::Live => {
                let line = line(summary, self.total, elapsed);
                live::print(&format!("{}{}", live::CLEAR, live::cut(&line, live::width())));
            }
        }
    }

    /// Leaves the terminal as it should be.
    pub(super) fn finish(&self) {
        if self.style == Style::Live {
            live::print(live::CLEAR);
        }
    }

    /// Tells the end to programs; false if people are to be told by the answer.
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

fn told(summary: &Summary) -> String {
    format!(
        "{} items read, {} events found, {} archived",
        grouped(summary.items_read),
        grouped(summary.events),
        grouped(summary.archived)
    )
}

/// The bar, where it is known how much there is.
fn line(summary: &Summary, total: Option<u64>, elapsed: Duration) -> String {
    let size = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
    let bar = total.map(|total| format!("{} ", live::bar(size(summary.items_read), size(total))));
    format!(
        "{}{} {}",
        bar.unwrap_or_default(),
        live::clock(elapsed),
        told(summary)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_follows_what_was_read_of_the_table() {
        let mut summary = Summary::default();
        (summary.items_read, summary.events, summary.archived) = (1_500, 20, 10);
        assert_eq!(
            line(&summary, Some(2_000), Duration::from_secs(65)),
            "███████████████░░░░░ 01:05 1,500 items read, 20 events found, 10 archived"
        );
        assert!(line(&summary, None, Duration::ZERO).starts_with("00:00 "));
    }
}

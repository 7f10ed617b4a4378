//! The summary of `audit archive`.

use serde::Serialize;
use zae_limiter::Timestamp;
use zae_limiter_archiver::Object;

use crate::command_output::Text;
use crate::output::{Align, TextTable, View, grouped};

/// The maximum number of problems listed in the summary.
const MAX_PROBLEMS: usize = 20;

#[derive(Debug, Default, Serialize)]
pub(super) struct Summary {
    pub(super) bucket: String,
    since: Option<Timestamp>,
    until: Option<Timestamp>,
    dry_run: bool,
    /// Items scanned, of any kind.
    pub(super) items_read: u64,
    /// Events in the requested time range.
    pub(super) events: u64,
    pub(super) archived: u64,
    /// The total size of the archived objects.
    bytes: u64,
    first_event: Option<Timestamp>,
    last_event: Option<Timestamp>,
    pub(super) left_out: u64,
    /// The first items that were left out.
    problems: Vec<Problem>,
}

#[derive(Debug, Serialize)]
struct Problem {
    /// The key of the item.
    item: String,
    reason: String,
}

impl Summary {
    pub(super) fn new(bucket: String, since: Timestamp, until: Option<Timestamp>, dry_run: bool) -> Self {
        Self {
            bucket,
            since: Some(since),
            until,
            dry_run,
            ..Self::default()
        }
    }

    pub(super) fn found(&mut self, object: &Object) {
        self.events += 1;
        let at = object.at;
        self.first_event = Some(self.first_event.map_or(at, |first| first.min(at)));
        self.last_event = Some(self.last_event.map_or(at, |last| last.max(at)));
    }

    pub(super) fn put(&mut self, object: &Object) {
        self.archived += 1;
        self.bytes += u64::try_from(object.body.len()).unwrap_or_default();
    }

    pub(super) fn leave_out(&mut self, item: String, reason: String) {
        self.left_out += 1;
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(Problem { item, reason });
        }
    }
}

impl Text for Summary {
    fn text(&self, view: &View) -> String {
        let mut table = TextTable::new([
            ("Bucket", Align::Left),
            ("Items read", Align::Right),
            ("Events", Align::Right),
            ("Archived", Align::Right),
            ("Bytes", Align::Right),
            ("Left out", Align::Right),
            ("First", Align::Left),
            ("Last", Align::Left),
        ]);
        let time = |timestamp: Option<Timestamp>| {
            timestamp.map_or_else(|| "-".to_owned(), |timestamp| view.zone.show(timestamp))
        };
        table.row([
            self.bucket.clone(),
            grouped(self.items_read),
            grouped(self.events),
            grouped(self.archived),
            grouped(self.bytes),
            grouped(self.left_out),
            time(self.first_event),
            time(self.last_event),
        ]);
        let mut lines = vec![table.render(view)];
        for problem in &self.problems {
            let left_out = view.paint.bad("left out:");
            lines.push(format!("{left_out} {}: {}", problem.item, problem.reason));
        }
        if self.dry_run {
            lines.push("dry run: nothing was written".to_owned());
        }
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_problems_are_counted_and_the_first_are_listed() {
        let mut summary = Summary::default();
        for number in 0..100 {
            summary.leave_out(format!("AUDIT#{number}"), "it has no ID".to_owned());
        }
        assert_eq!((summary.left_out, summary.problems.len()), (100, MAX_PROBLEMS));
    }
}

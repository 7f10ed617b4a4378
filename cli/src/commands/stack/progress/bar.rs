//! The last line of the terminal: how far it is, since when, and what is being worked on. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use zae_limiter::stack::ResourceEvent;

use crate::output::live::{bar, clock, cut};

/// Whether a status is a failure.
pub(super) fn failed(status: &str) -> bool {
    status.ends_with("_FAILED") || status.contains("ROLLBACK")
}

/// The bar, cut to the terminal's width.
pub(super) fn line(
    latest: &BTreeMap<String, ResourceEvent>,
    total: usize,
    elapsed: Duration,
    width: usize,
) -> String {
    let resources = || latest.values().filter(|event| !event.is_of_stack());
    let done = resources()
        .filter(|event| event.status.ends_with("_COMPLETE"))
        .count();
    let total = total.max(done);
    let bar = bar(done, total);
    let working: Vec<&str> = resources()
        .filter(|event| event.status.ends_with("_IN_PROGRESS"))
        .map(|event| event.logical_id.as_str())
        .collect();
    let line = format!("{bar} {done}/{total} {} {}", clock(elapsed), working.join(", "));
    cut(&line, width)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn latest(events: &[(&str, &str, &str)]) -> BTreeMap<String, ResourceEvent> {
        let event = |(id, kind, status): &(&str, &str, &str)| {
            let event = ResourceEvent {
                id: String::new(),
                logical_id: (*id).to_owned(),
                physical_id: String::new(),
                resource_type: (*kind).to_owned(),
                status: (*status).to_owned(),
                reason: None,
                time: String::new(),
                token: None,
            };
            ((*id).to_owned(), event)
        };
        events.iter().map(event).collect()
    }

    #[test]
    fn the_bar_counts_what_is_complete_and_names_what_goes_on() {
        let latest = latest(&[
            ("Table", "AWS::DynamoDB::Table", "CREATE_IN_PROGRESS"),
            ("Queue", "AWS::SQS::Queue", "CREATE_COMPLETE"),
            ("demo", "AWS::CloudFormation::Stack", "CREATE_IN_PROGRESS"),
        ]);
        let line = line(&latest, 4, Duration::from_secs(125), 80);
        assert_eq!(line, "█████░░░░░░░░░░░░░░░ 1/4 02:05 Table");
    }

    #[test]
    fn the_bar_never_wraps_and_never_divides_by_nothing() {
        let long = "R".repeat(200);
        let latest = latest(&[(&long, "AWS::SQS::Queue", "CREATE_IN_PROGRESS")]);
        assert!(line(&latest, 0, Duration::ZERO, 60).chars().count() < 60);
    }

    #[test]
    fn rollbacks_are_failures() {
        assert!(failed("UPDATE_ROLLBACK_COMPLETE") && failed("CREATE_FAILED"));
        assert!(!failed("CREATE_COMPLETE"));
    }
}

//! The lines of `status` about the functions.

use std::fmt;

use zae_limiter::stack::FunctionStatus;

use crate::output::{View, grouped};

/// A function with its mapping, its lag and its dead letters, and a line for each problem.
pub(super) fn lines(function: &FunctionStatus, view: &View) -> Vec<String> {
    let mapping = match function.mapping.as_deref() {
        Some("Enabled") => format!("mapping {}", view.paint.good("Enabled")),
        Some(state) => format!("mapping {}", view.paint.bad(state)),
        None if function.problems.is_empty() => view.paint.bad("no mapping"),
        None => "mapping unknown".to_owned(),
    };
    let letters = match function.dead_letters {
        Some(0) => "no dead letters".to_owned(),
        Some(1) => view.paint.bad("1 dead letter"),
        Some(letters) => view.paint.bad(&format!("{} dead letters", grouped(letters))),
        None => "dead letters unknown".to_owned(),
    };
    let lag = Lag(function.lag_ms);
    let mut lines = vec![format!(
        "Function: {}: {mapping}, {lag}, {letters}",
        function.name
    )];
    let result = function.last_result.iter();
    let failed = result.filter(|result| result.starts_with("PROBLEM"));
    lines.extend(failed.map(|result| format!("          {}", view.paint.bad(result))));
    lines.extend(
        function
            .problems
            .iter()
            .map(|problem| format!("          {problem}")),
    );
    lines
}

/// A lag in the unit that people read it in.
struct Lag(Option<u64>);

impl fmt::Display for Lag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None => f.write_str("no lag reported in the last 15 minutes"),
            Some(lag) if lag < 10_000 => write!(f, "lag {} ms", grouped(lag)),
            Some(lag) => write!(f, "lag {} s", grouped(lag / 1_000)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::{Color, Paint, Zone};

    fn shown(function: &FunctionStatus) -> String {
        let view = View {
            width: None,
            paint: Paint::new(Color::Never, false),
            zone: Zone::Utc,
        };
        lines(function, &view).join("\n")
    }

    fn function() -> FunctionStatus {
        FunctionStatus {
            name: "limiter-aggregator".to_owned(),
            mapping: Some("Enabled".to_owned()),
            last_result: Some("OK".to_owned()),
            lag_ms: Some(1_500),
            dead_letters: Some(0),
            problems: vec![],
        }
    }

    #[test]
    fn a_function_that_works_is_one_line() {
        assert_eq!(
            shown(&function()),
            "Function: limiter-aggregator: mapping Enabled, lag 1,500 ms, no dead letters"
        );
    }

    #[test]
    fn a_stopped_function_shows_its_lag_in_seconds_its_last_result_and_its_dead_letters() {
        let stopped = FunctionStatus {
            mapping: Some("Disabled".to_owned()),
            last_result: Some("PROBLEM: Function call failed".to_owned()),
            lag_ms: Some(90_000),
            dead_letters: Some(1_200),
            ..function()
        };
        assert_eq!(
            shown(&stopped),
            "Function: limiter-aggregator: mapping Disabled, lag 90 s, 1,200 dead letters\n          PROBLEM: Function call failed"
        );
    }

    #[test]
    fn a_missing_mapping_is_told_from_one_that_may_not_be_read() {
        let mut missing = FunctionStatus {
            mapping: None,
            lag_ms: None,
            ..function()
        };
        assert!(shown(&missing).contains("no mapping, no lag reported in the last 15 minutes"));
        missing.problems = vec!["not allowed: lambda:ListEventSourceMappings".to_owned()];
        let text = shown(&missing);
        assert!(
            text.contains("mapping unknown") && text.ends_with("lambda:ListEventSourceMappings"),
            "{text}"
        );
    }
}

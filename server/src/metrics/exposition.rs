//! The text format of Prometheus.

use std::fmt::{Display, Write};

use super::histogram::Counted;

/// Metrics as text.
#[derive(Debug, Default)]
pub(super) struct Exposition {
    text: String,
}

impl Exposition {
    /// Begins a metric. `kind` is `counter`, `gauge` or `histogram`.
    pub(super) fn metric(&mut self, name: &str, kind: &str, help: &str) {
        self.line(format_args!("# HELP {name} {help}"));
        self.line(format_args!("# TYPE {name} {kind}"));
    }

    /// A metric with one value.
    pub(super) fn single(&mut self, name: &str, kind: &str, help: &str, value: impl Display) {
        self.metric(name, kind, help);
        self.line(format_args!("{name} {value}"));
    }

    /// One value of a metric that has labels.
    pub(super) fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        let labels: Vec<_> = labels
            .iter()
            .map(|(label, text)| format!("{label}=\"{}\"", escaped(text)))
            .collect();
        self.line(format_args!("{name}{{{}}} {value}", labels.join(",")));
    }

    pub(super) fn histogram(&mut self, name: &str, help: &str, counted: &Counted) {
        self.metric(name, "histogram", help);
        let bucket = format!("{name}_bucket");
        for (bound, count) in &counted.up_to {
            self.sample(&bucket, &[("le", &bound.to_string())], count);
        }
        self.sample(&bucket, &[("le", "+Inf")], counted.count);
        self.line(format_args!("{name}_sum {}", counted.sum_seconds));
        self.line(format_args!("{name}_count {}", counted.count));
    }

    pub(super) fn finish(self) -> String {
        self.text
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "{line}");
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_values_are_escaped() {
        let mut text = Exposition::default();
        text.sample("a_total", &[("resource", "a\"b\\c\nd"), ("limit", "rpm")], 1);
        assert_eq!(
            text.finish(),
            "a_total{resource=\"a\\\"b\\\\c\\nd\",limit=\"rpm\"} 1\n"
        );
    }
}

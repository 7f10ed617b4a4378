//! Progress output: a status line redrawn in place on a terminal, plain lines in CI, JSON lines for programs.

use std::io::Write;
use std::time::Duration;

use serde_json::Value;

use super::{Format, Terminal};

/// Moves to the start of the line and clears it.
pub(crate) const CLEAR: &str = "\r\u{1b}[2K";
const CELLS: usize = 20;

/// How progress is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// A status line that is redrawn in place, on a terminal.
    Live,
    /// One line per event.
    Lines,
    /// One JSON object per event, on standard output.
    Json,
}

impl Style {
    pub(crate) fn of(terminal: &Terminal) -> Self {
        match (terminal.format, terminal.live) {
            (Format::Json, _) => Self::Json,
            (Format::Table, true) => Self::Live,
            (Format::Table, false) => Self::Lines,
        }
    }
}

/// Elapsed minutes and seconds: `02:05`.
pub(crate) fn clock(elapsed: Duration) -> String {
    let seconds = elapsed.as_secs();
    format!("{:02}:{:02}", seconds / 60, seconds % 60)
}

/// A progress bar.
pub(crate) fn bar(done: usize, total: usize) -> String {
    let filled = done
        .min(total)
        .saturating_mul(CELLS)
        .checked_div(total)
        .unwrap_or(0);
    format!("{}{}", "█".repeat(filled), "░".repeat(CELLS - filled))
}

/// Truncates a line to the width of the terminal: a line that wraps could not be cleared.
pub(crate) fn cut(line: &str, width: usize) -> String {
    line.trim_end().chars().take(width.saturating_sub(1)).collect()
}

/// The width of the terminal on standard error.
pub(crate) fn width() -> usize {
    terminal_size::terminal_size_of(std::io::stderr()).map_or(80, |(width, _)| usize::from(width.0))
}

/// Prints to standard error and ignores errors: a closed terminal must not stop the work.
pub(crate) fn print(text: &str) {
    let mut stderr = std::io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}

/// Prints one JSON object to standard output.
pub(crate) fn line(object: &Value) {
    let mut stdout = std::io::stdout().lock();
    let _ = writeln!(stdout, "{object}").and_then(|()| stdout.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_full_at_its_total_and_never_overflows() {
        assert_eq!(bar(1, 4), format!("{}{}", "█".repeat(5), "░".repeat(15)));
        for (done, total) in [(4, 4), (9, 4)] {
            assert_eq!(bar(done, total), "█".repeat(20), "{done} of {total}");
        }
        assert_eq!(bar(usize::MAX, usize::MAX).chars().count(), CELLS);
        assert_eq!(bar(3, 0), "░".repeat(20));
    }
}

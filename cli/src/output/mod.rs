//! Rendering: times, colors, and progress. Tables and charts come from `zae-limiter-report`.

pub(crate) mod live;
mod paint;
mod time_zone;

pub(crate) use paint::Paint;
pub(crate) use time_zone::Zone;
pub(crate) use zae_limiter_report::{Align, TextTable, decimal, grouped};

use std::io::IsTerminal;

use clap::ValueEnum;
use zae_limiter_report::Layout;

/// The output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Format {
    /// Tables and messages, for people.
    #[default]
    Table,
    /// JSON, for programs.
    Json,
}

/// When to use colors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless `NO_COLOR` is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// The settings that text is rendered with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View {
    /// The width of the terminal, or `None` if the output is not a terminal.
    pub(crate) width: Option<usize>,
    pub(crate) paint: Paint,
    pub(crate) zone: Zone,
}

impl From<&View> for Layout {
    fn from(view: &View) -> Self {
        let layout = Self::default()
            .bold_headings(view.paint.is_on())
            .format_time(match view.zone {
                Zone::Utc => |time| Zone::Utc.show(time),
                Zone::Local => |time| Zone::Local.show(time),
            });
        match view.width {
            Some(columns) => layout.width(columns),
            None => layout,
        }
    }
}

/// The terminal of the process: standard output and standard error.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terminal {
    pub(crate) format: Format,
    pub(crate) view: View,
    /// Colors for standard error.
    pub(crate) errors: Paint,
    /// Whether standard error is a terminal, where a status line can be redrawn.
    pub(crate) live: bool,
    pub(crate) verbose: bool,
}

impl Terminal {
    /// The terminal of this process.
    pub(crate) fn of_process(format: Format, color: Color, verbose: bool, local_time: bool) -> Self {
        let (stdout, stderr) = (std::io::stdout().is_terminal(), std::io::stderr().is_terminal());
        let width = stdout
            .then(terminal_size::terminal_size)
            .flatten()
            .map(|(width, _)| usize::from(width.0));
        Self {
            format,
            view: View {
                width,
                paint: Paint::new(color, stdout),
                zone: if local_time { Zone::Local } else { Zone::Utc },
            },
            errors: Paint::new(color, stderr),
            live: stderr,
            verbose,
        }
    }
}

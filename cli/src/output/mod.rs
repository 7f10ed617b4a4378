//! How answers look: tables that fit the terminal, numbers and times for people, charts, colours.

mod chart;
pub(crate) mod live;
mod number;
mod paint;
mod table;
mod times;

pub(crate) use chart::{Chart, Point};
pub(crate) use number::{decimal, grouped};
pub(crate) use paint::Paint;
pub(crate) use table::{Align, Table};
pub(crate) use times::Zone;

use std::io::IsTerminal;

use clap::ValueEnum;

/// For whom the answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Format {
    /// Tables and sentences, for people.
    #[default]
    Table,
    /// JSON, for programs.
    Json,
}

/// When to colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless `NO_COLOR` is set.
    #[default]
    Auto,
    /// In any case.
    Always,
    /// In no case.
    Never,
}

/// What a text is fitted to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View {
    /// Columns of the terminal; nothing where there is none.
    pub(crate) width: Option<usize>,
    pub(crate) paint: Paint,
    pub(crate) zone: Zone,
}

/// Both ends of the conversation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terminal {
    pub(crate) format: Format,
    pub(crate) view: View,
    /// Colours of standard error.
    pub(crate) errors: Paint,
    /// Whether standard error is a terminal, on which lines can be drawn anew.
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

//! Tables: one value that is shown as HTML and exported as CSV and JSON.

mod csv;
mod html;
mod json;

use maud::Markup;
use zae_limiter::Timestamp;

use super::differences::Difference;
use super::level::Level;
use super::url::Url;

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    /// Text.
    Start,
    /// Numbers, whose digits stand below each other.
    End,
    /// A drawing of numbers that are in other columns. Exports leave it out.
    Drawing,
    /// Text that other columns show in another form. Only exports have it.
    ExportOnly,
}

/// A column.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    /// Its name in exports.
    key: String,
    title: String,
    align: Align,
}

/// The content of a row and column.
#[derive(Debug, Clone)]
pub(crate) enum Cell {
    /// Nothing is known.
    Empty,
    Text(String),
    /// A name, an id or a value that is read letter by letter.
    Code(String),
    Link(String, Url),
    Number(i64),
    /// At least this many: not everything was read.
    AtLeast(i64),
    /// Millionths of a dollar. Exports have the number.
    Money {
        amount: i64,
        /// False if at least this much: not everything was read.
        complete: bool,
    },
    Time(Timestamp),
    Level(Level),
    /// What an audit event changed.
    Changes(Vec<Difference>),
    /// The id of an audit event, whose end tells it from the others, and its details.
    Event {
        id: String,
        details: String,
    },
}

/// What to say in place of a table without rows.
#[derive(Debug, Clone)]
pub(crate) struct Empty {
    /// What there is none of, and why.
    pub(crate) message: String,
    /// What to do next.
    pub(crate) advice: Markup,
}

/// A table.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    /// Its name in the address of its exports, such as `limits`.
    pub(crate) id: &'static str,
    /// What it lists, for people who cannot see where it stands.
    pub(crate) caption: String,
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
    empty: Empty,
    next: Option<Url>,
}

impl Table {
    pub(crate) fn new(id: &'static str, caption: impl Into<String>, empty: Empty) -> Self {
        Self {
            id,
            caption: caption.into(),
            columns: vec![],
            rows: vec![],
            empty,
            next: None,
        }
    }

    pub(crate) fn column(mut self, key: impl Into<String>, title: impl Into<String>, align: Align) -> Self {
        self.columns.push(Column {
            key: key.into(),
            title: title.into(),
            align,
        });
        self
    }

    pub(crate) fn rows(mut self, rows: impl IntoIterator<Item = Vec<Cell>>) -> Self {
        self.rows.extend(rows);
        self
    }

    /// Where the list goes on.
    pub(crate) fn next(mut self, next: Option<Url>) -> Self {
        self.next = next;
        self
    }

    /// Columns and cells of a row that the page shows.
    fn shown<'a>(&'a self, row: &'a [Cell]) -> impl Iterator<Item = (&'a Column, &'a Cell)> {
        let cells = self.columns.iter().zip(row);
        cells.filter(|(column, _)| column.align != Align::ExportOnly)
    }

    /// Columns and cells of a row that exports have.
    fn exported<'a>(&'a self, row: &'a [Cell]) -> impl Iterator<Item = (&'a Column, &'a Cell)> {
        let cells = self.columns.iter().zip(row);
        cells.filter(|(column, _)| column.align != Align::Drawing)
    }
}

impl Empty {
    pub(crate) fn new(message: impl Into<String>, advice: Markup) -> Self {
        Self {
            message: message.into(),
            advice,
        }
    }
}

impl Cell {
    pub(crate) fn code(text: &(impl ToString + ?Sized)) -> Self {
        Self::Code(text.to_string())
    }

    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    pub(crate) fn number(number: impl TryInto<i64>) -> Self {
        Self::Number(number.try_into().unwrap_or(i64::MAX))
    }

    /// Changes as text; nothing for other cells.
    fn changes(&self) -> String {
        let Self::Changes(changes) = self else {
            return String::new();
        };
        let changes: Vec<_> = changes.iter().map(Difference::text).collect();
        changes.join("; ")
    }

    /// An amount of a limit.
    pub(crate) fn amount(number: impl TryInto<i64>, complete: bool, money: bool) -> Self {
        let amount = number.try_into().unwrap_or(i64::MAX);
        if money {
            Self::Money { amount, complete }
        } else {
            Self::count(amount, complete)
        }
    }

    pub(crate) fn count(number: i64, complete: bool) -> Self {
        if complete {
            Self::Number(number)
        } else {
            Self::AtLeast(number)
        }
    }
}

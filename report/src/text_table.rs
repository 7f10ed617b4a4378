//! Text tables that fit a given width.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::Layout;

const GAP: &str = "  ";
/// A column is not shrunk below this width.
const MIN_WIDTH: usize = 6;

/// The alignment of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// For text, which is truncated if the table is too wide.
    Left,
    /// For numbers, which are never truncated.
    Right,
}

/// A table with headings.
///
/// ```
/// use zae_limiter_report::{Align, Layout, TextTable};
///
/// let mut table = TextTable::new([("Entity", Align::Left), ("Tokens", Align::Right)]);
/// table.row(["user-1".to_owned(), "500".to_owned()]);
/// assert_eq!(table.render(Layout::default()), "Entity  Tokens\nuser-1     500");
/// ```
#[derive(Debug, Clone)]
pub struct TextTable {
    columns: Vec<(&'static str, Align)>,
    rows: Vec<Vec<String>>,
}

impl TextTable {
    /// A table with these headings and no rows.
    pub fn new(columns: impl IntoIterator<Item = (&'static str, Align)>) -> Self {
        Self {
            columns: columns.into_iter().collect(),
            rows: vec![],
        }
    }

    /// Adds a row, with one cell per column.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// The table as text, one line per row.
    pub fn render(&self, layout: impl Into<Layout>) -> String {
        let layout = layout.into();
        let widths = self.widths(layout.width);
        let heading = self
            .columns
            .iter()
            .map(|(name, _)| (*name).to_owned())
            .collect::<Vec<_>>();
        let mut lines = vec![layout.heading(&self.line(&heading, &widths))];
        lines.extend(self.rows.iter().map(|row| self.line(row, &widths)));
        lines.join("\n")
    }

    fn widths(&self, max: Option<usize>) -> Vec<usize> {
        let cell = |row: &Vec<String>, column: usize| row.get(column).map_or(0, |cell| cell.width());
        let mut widths: Vec<usize> = self
            .columns
            .iter()
            .enumerate()
            .map(|(column, (name, _))| {
                let widest = self.rows.iter().map(|row| cell(row, column)).max().unwrap_or(0);
                widest.max(name.width())
            })
            .collect();
        let Some(max) = max else { return widths };
        let gaps = GAP.len() * widths.len().saturating_sub(1);
        // Shrink the widest text column, one character at a time.
        while widths.iter().sum::<usize>() + gaps > max {
            let widest = widths
                .iter_mut()
                .zip(&self.columns)
                .filter(|(width, (_, align))| *align == Align::Left && **width > MIN_WIDTH)
                .map(|(width, _)| width)
                .max();
            match widest {
                Some(width) => *width -= 1,
                None => break,
            }
        }
        widths
    }

    fn line(&self, cells: &[String], widths: &[usize]) -> String {
        let mut line = String::new();
        for ((cell, width), (_, align)) in cells.iter().zip(widths).zip(&self.columns) {
            if !line.is_empty() {
                line.push_str(GAP);
            }
            let cell = truncate(cell, *width);
            let padding = " ".repeat(width.saturating_sub(cell.width()));
            match align {
                Align::Left => line.extend([cell, padding]),
                Align::Right => line.extend([padding, cell]),
            }
        }
        line.truncate(line.trim_end().len());
        line
    }
}

fn truncate(text: &str, width: usize) -> String {
    // A line break in a cell would break the layout.
    let text: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if text.width() <= width {
        return text;
    }
    let mut kept = String::new();
    let mut used = 0;
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used >= width {
            break;
        }
        kept.push(c);
    }
    kept.push('…');
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(width: usize) -> Layout {
        Layout::default().width(width)
    }

    fn table() -> TextTable {
        let mut table = TextTable::new([
            ("Entity", Align::Left),
            ("Note", Align::Left),
            ("Tokens", Align::Right),
        ]);
        table.row([
            "user-1".to_owned(),
            "a long note about the user".to_owned(),
            "1,000".to_owned(),
        ]);
        table.row(["ключ".to_owned(), "line\nbreak".to_owned(), "-5".to_owned()]);
        table
    }

    #[test]
    fn columns_line_up_and_numbers_are_right_aligned() {
        assert_eq!(
            table().render(Layout::default()),
            "Entity  Note                        Tokens\n\
             user-1  a long note about the user   1,000\n\
             ключ    line break                      -5"
        );
    }

    #[test]
    fn no_line_is_wider_than_the_terminal_and_numbers_are_not_truncated() {
        for width in 24..60 {
            let text = table().render(layout(width));
            assert!(text.lines().all(|line| line.width() <= width), "{width}:\n{text}");
            assert!(text.contains("1,000"), "{width}:\n{text}");
        }
    }

    #[test]
    fn truncated_cells_end_with_an_ellipsis() {
        assert!(table().render(layout(30)).contains('…'));
    }
}

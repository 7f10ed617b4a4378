//! A table as CSV (RFC 4180).

use super::{Cell, Table};

impl Table {
    /// A line of column names, then a line per row.
    pub(crate) fn to_csv(&self) -> String {
        let names = self.exported_keys().map(quoted).collect::<Vec<_>>();
        let mut lines = vec![names.join(",")];
        lines.extend(self.rows.iter().map(|row| {
            let fields = self.exported(row).map(|(_, cell)| field(cell));
            fields.collect::<Vec<_>>().join(",")
        }));
        lines.join("\r\n") + "\r\n"
    }

    fn exported_keys(&self) -> impl Iterator<Item = &str> {
        let columns = self.columns.iter();
        columns
            .filter(|column| column.align != super::Align::Drawing)
            .map(|column| column.key.as_str())
    }
}

fn field(cell: &Cell) -> String {
    match cell {
        Cell::Empty | Cell::Level(_) => String::new(),
        Cell::Text(text) | Cell::Code(text) | Cell::Link(text, _) => quoted(text),
        Cell::Number(number) | Cell::AtLeast(number) => number.to_string(),
        Cell::Money { amount, .. } => amount.to_string(),
        Cell::Time(time) => time.to_string(),
        Cell::Changes(_) => quoted(&cell.changes()),
        Cell::Event { id, .. } => quoted(id),
    }
}

/// Text that a spreadsheet would take for a formula is preceded by an apostrophe.
fn quoted(text: &str) -> String {
    let formula = text.starts_with(['\t', '\r', '\n']) || text.trim_start().starts_with(['=', '+', '-', '@']);
    let text = if formula {
        format!("'{text}")
    } else {
        text.to_owned()
    };
    if text.contains([',', '"', '\r', '\n']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use maud::html;

    use super::super::{Align, Cell, Empty, Table};

    #[test]
    fn fields_are_quoted_formulas_defused_and_drawings_left_out() {
        let table = Table::new("t", "things", Empty::new("none", html! {}))
            .column("name", "Name", Align::Start)
            .column("level", "Level", Align::Drawing)
            .column("count", "Count", Align::End)
            .rows([
                vec![Cell::text("a, \"b\""), Cell::Empty, Cell::Number(-5)],
                vec![Cell::text("=1+1"), Cell::Empty, Cell::Empty],
                vec![Cell::text(" =1+1"), Cell::Empty, Cell::Empty],
            ]);
        assert_eq!(
            table.to_csv(),
            "name,count\r\n\"a, \"\"b\"\"\",-5\r\n'=1+1,\r\n' =1+1,\r\n"
        );
    }
}

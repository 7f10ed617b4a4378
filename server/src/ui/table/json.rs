//! A table as JSON.

use serde_json::{Map, Value, json};

use super::{Cell, Table};

impl Table {
    /// `items`, an object per row, and `next`, the address of the page that follows, or null.
    pub(crate) fn to_json(&self) -> Value {
        let items = self.rows.iter().map(|row| {
            let members = self.exported(row);
            members
                .map(|(column, cell)| (column.key.clone(), value(cell)))
                .collect::<Map<_, _>>()
        });
        let next = self.next.clone().map(|next| {
            let name = format!("{}.json", self.id);
            next.with("export", name).to_string()
        });
        json!({ "items": items.collect::<Vec<_>>(), "next": next })
    }
}

fn value(cell: &Cell) -> Value {
    match cell {
        Cell::Empty | Cell::Level(_) => Value::Null,
        Cell::Text(text) | Cell::Code(text) | Cell::Link(text, _) => text.as_str().into(),
        Cell::Number(number) | Cell::AtLeast(number) => (*number).into(),
        Cell::Money { amount, .. } => (*amount).into(),
        Cell::Time(time) => time.to_string().into(),
        Cell::Changes(_) => cell.changes().into(),
        Cell::Event { id, .. } => id.as_str().into(),
    }
}

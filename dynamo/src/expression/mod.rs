//! Expressions: the only place where attribute names and values become placeholders.

mod bucket;
mod placeholders;
mod update;

pub use placeholders::{Names, Placeholders, Values};
pub use update::{Update, UpdateParts};

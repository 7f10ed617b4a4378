//! Limits files on an embedded table.

mod ownership;
mod prices;

//! What came of it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What [`ensure`](crate::Stack::ensure) or [`apply`](crate::Stack::apply) did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// Nothing: the stack was as it should be.
    None,
    /// Nothing, but somebody else was at work on the stack, and now it is as it should be.
    Awaited,
    /// The stack was made.
    Created,
    /// The stack was made around a table that was there.
    Imported,
    /// The stack was changed.
    Updated,
}

/// A stack that is as it should be, and how it came to be so.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Outcome {
    /// What was done.
    pub change: Change,
    /// The stack's ARN.
    pub stack_id: String,
    /// What the stack tells about itself: `TableName`, `TableArn`, `StreamArn`, …
    pub outputs: BTreeMap<String, String>,
    /// Days that audit events stay in the table. No resource has this setting, only an output: whoever deploys writes it
    /// into the table.
    pub audit_retention_days: u32,
    /// The release that the stack is of.
    pub version: String,
    /// What should be known.
    pub warnings: Vec<String>,
}

impl Outcome {
    /// Whether the stack was not as it should be when it was first looked at. If so, the table's version record and the
    /// stored retention may have to be written.
    pub fn changed(&self) -> bool {
        self.change != Change::None
    }
}

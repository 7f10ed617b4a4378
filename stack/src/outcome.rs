//! The result of a deployment.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What [`ensure`](crate::Stack::ensure) or [`apply`](crate::Stack::apply) did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// Nothing: the stack matched.
    None,
    /// Nothing: another process changed the stack meanwhile, and now it matches.
    Awaited,
    /// The stack was created.
    Created,
    /// The stack was created and the existing table imported.
    Imported,
    /// The stack was updated.
    Updated,
}

/// The result of [`ensure`](crate::Stack::ensure) or [`apply`](crate::Stack::apply).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Outcome {
    /// What was done.
    pub change: Change,
    /// The stack's ARN.
    pub stack_id: String,
    /// The stack's outputs: `TableName`, `TableArn`, `StreamArn`, …
    pub outputs: BTreeMap<String, String>,
    /// Days that audit events stay in the table. Only an output has this setting: the deployer writes it into the table.
    pub audit_retention_days: u32,
    /// The release that the stack was deployed by.
    pub version: String,
    /// Warnings.
    pub warnings: Vec<String>,
}

impl Outcome {
    /// Whether the stack did not match at first. The table's version record and stored retention may need an update then.
    pub fn changed(&self) -> bool {
        self.change != Change::None
    }
}

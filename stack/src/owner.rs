//! The owner of a stack.

use std::collections::BTreeMap;

use serde::Serialize;

/// Who created a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Owner {
    /// This project, deployed by any tool: the template's metadata says so.
    Ours,
    /// zae-limiter for Python. Its stacks look similar but are not compatible.
    Peer,
    /// Another project.
    Foreign,
}

/// A parameter that only templates of zae-limiter for Python have.
const PEER_PARAMETER: &str = "SchemaVersion";
/// The tag with who manages a resource.
pub(crate) const MANAGED_BY: &str = "ManagedBy";
/// The name prefix of the first stacks of zae-limiter for Python.
pub(crate) const PEER_PREFIX: &str = "ZAEL-";

impl Owner {
    /// The owner by tags and parameters alone.
    pub(crate) fn by_marks(parameters: &BTreeMap<String, String>, tags: &BTreeMap<String, String>) -> Self {
        if parameters.contains_key(PEER_PARAMETER) {
            Self::Peer
        } else if tagged(tags) {
            Self::Ours
        } else {
            Self::Foreign
        }
    }
}

/// Whether the tags are those of this project or of zae-limiter for Python.
pub(crate) fn tagged(tags: &BTreeMap<String, String>) -> bool {
    tags.get(MANAGED_BY).is_some_and(|value| value == "zae-limiter")
}

impl std::fmt::Display for Owner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Ours => "zae-limiter",
            Self::Peer => "zae-limiter for Python",
            Self::Foreign => "another project",
        })
    }
}

//! Whose stack it is.

use std::collections::BTreeMap;

use serde::Serialize;

/// Who made a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Owner {
    /// This project, however it was deployed: its template says so in its metadata.
    Ours,
    /// zae-limiter for Python, whose stacks look alike and are not: it has no place in ours, nor ours in its.
    Peer,
    /// Somebody else.
    Foreign,
}

/// A parameter that every template of the Python peer has and none of ours.
const PEER_PARAMETER: &str = "SchemaVersion";
const MANAGED_BY: &str = "ManagedBy";
/// The prefix of the peer's first stacks.
pub(crate) const PEER_PREFIX: &str = "ZAEL-";

impl Owner {
    /// Who made a stack of which only tags and parameters are known.
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

/// Whether the tags say that it is one of ours or of the peer's.
pub(crate) fn tagged(tags: &BTreeMap<String, String>) -> bool {
    tags.get(MANAGED_BY).is_some_and(|value| value == "zae-limiter")
}

impl std::fmt::Display for Owner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Ours => "zae-limiter",
            Self::Peer => "zae-limiter for Python",
            Self::Foreign => "something else",
        })
    }
}

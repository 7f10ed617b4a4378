//! The reconciler: one loop behind [`plan`](crate::Stack::plan), [`apply`](crate::Stack::apply) and
//! [`ensure`](crate::Stack::ensure).
//!
//! `draft` looks at the stack, classifies its situation, and drafts the work that is needed. `plan` returns the draft's
//! plan. `converge` carries drafts out until the stack matches its goal: the options (`ensure`), or a stored plan (`apply`).
//! `create`, `update` and `delete` are the three kinds of work, and `wait` follows an operation to its end.

mod converge;
mod create;
mod delete;
mod draft;
mod drift;
mod update;
mod wait;

pub use delete::{Deleted, Deletion, Kept};
pub use drift::{Drift, PropertyDrift, ResourceDrift, Verdict};

use crate::deployed::Described;
use crate::outcome::Change;

/// The result of carrying out a draft.
#[derive(Debug)]
enum Attempt {
    /// The stack was created or changed.
    Done {
        stack: Box<Described>,
        change: Change,
        warnings: Vec<String>,
    },
    /// Another process changed the stack first. Look at it again.
    Overtaken,
}

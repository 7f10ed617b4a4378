//! The reconciler: one loop behind [`plan`](crate::Stack::plan), [`apply`](crate::Stack::apply) and
//! [`ensure`](crate::Stack::ensure).
//!
//! `draft` looks at the stack, classifies its situation, and drafts the work that is needed. `plan` returns the draft's
//! plan. `converge` carries drafts out until the stack matches its goal: the options (`ensure`), or a stored plan (`apply`).

mod apply;
mod converge;
mod create;
mod delete;
mod draft;
mod drift;
mod failed;
mod goal;
mod observe;
mod observe_only;
mod obstacles;
mod protect;
mod purge;
mod queue_names;
mod recreate;
mod review;
mod rollback;
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

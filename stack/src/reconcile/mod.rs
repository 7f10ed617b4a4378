//! From what is deployed to what should be.

mod apply;
mod create;
mod delete;
mod drift;
mod ensure;
mod failed;
mod observe;
mod planning;
mod purge;
mod review;
mod rollback;
mod update;
mod wait;

pub use delete::{Deleted, Deletion, Kept};
pub use drift::{Drift, PropertyDrift, ResourceDrift, Verdict};

use crate::deployed::Described;
use crate::outcome::Change;

/// What became of an attempt to make or change a stack.
#[derive(Debug)]
enum Attempt {
    /// It was done.
    Done {
        stack: Box<Described>,
        change: Change,
        warnings: Vec<String>,
    },
    /// Somebody else was faster; what they made of the stack has to be looked at.
    Overtaken,
}

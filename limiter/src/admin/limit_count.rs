//! How many limits may apply together.

use crate::{Error, Result};

/// The most limits that a level, a bucket or a call may have. More do not fit into the expressions of one write, which must
/// have room for all of them under new names beside the old ones.
pub const MAX_LIMITS: usize = 28;

pub(crate) fn check_limit_count(field: &'static str, count: usize) -> Result<()> {
    if count <= MAX_LIMITS {
        return Ok(());
    }
    Err(Error::invalid(
        field,
        count.to_string(),
        format!("there may be at most {MAX_LIMITS} limits together"),
    ))
}

#[cfg(test)]
mod tests;

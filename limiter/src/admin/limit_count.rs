//! The number of limits that may apply together.

use zae_limiter_schema::{Limit, LimitSet};

use crate::{Error, Result};

/// The most limits that a level, a bucket or a call may have. More do not fit into the expressions of one write, which must
/// have room for all of them under new names beside the old ones.
pub const MAX_LIMITS: usize = 28;

/// The most limits that a write of a bucket concerns: those that it is to have, and those that it had before and that are not
/// full yet.
pub(crate) const MAX_LIMITS_OF_WRITE: usize = 2 * MAX_LIMITS;

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

/// The limits as a set, if there are not too many and no name is used twice.
pub(crate) fn limit_set(field: &'static str, limits: Vec<Limit>) -> Result<LimitSet> {
    check_limit_count(field, limits.len())?;
    LimitSet::new(limits).map_err(|twice| Error::invalid(field, twice.0.as_str(), "duplicate limit name"))
}

#[cfg(test)]
mod tests;

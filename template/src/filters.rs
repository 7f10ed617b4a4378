//! Which changes of the table each function is told of.

use zae_limiter_schema::keys::{attribute, prefix};

use crate::model::filter::FilterPattern;

/// Buckets that are created or changed.
pub fn aggregator() -> FilterPattern {
    FilterPattern::on_key(&["INSERT", "MODIFY"], attribute::SK, prefix::BUCKET)
}

/// Audit events that are written: while they are in the table, so that none is lost when archiving it fails.
pub fn archiver() -> FilterPattern {
    FilterPattern::on_key(&["INSERT"], attribute::PK, prefix::AUDIT)
}

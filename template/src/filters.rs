//! Which changes of the table each function receives.

use zae_limiter_schema::keys::{attribute, prefix};

use crate::model::filter::FilterPattern;

/// Created and changed buckets.
pub fn aggregator() -> FilterPattern {
    FilterPattern::on_key(&["INSERT", "MODIFY"], attribute::SK, prefix::BUCKET)
}

/// New audit events. They stay in the table for their retention, so none is lost when archiving fails.
pub fn archiver() -> FilterPattern {
    FilterPattern::on_key(&["INSERT"], attribute::PK, prefix::AUDIT)
}

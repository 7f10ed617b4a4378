//! The status of every limit of one bucket.

use zae_limiter_schema::bucket::{BucketConfig, BucketKey, Outlook};
use zae_limiter_schema::{Limit, LimitName};

use super::amounts::amount_of;
use crate::status::LimitStatus;

/// The status of every limit of a bucket, next to the requested amounts. `outlook` returns what is available of a limit and when
/// the requested amount will be; a limit that it does not know is left out.
pub(crate) fn limit_statuses(
    key: &BucketKey,
    config: &BucketConfig,
    requested: &[(LimitName, i128)],
    mut outlook: impl FnMut(&Limit, i128) -> Option<Outlook>,
) -> Vec<LimitStatus> {
    let mut statuses = Vec::with_capacity(config.limits().len());
    for limit in config.limits() {
        let amount = amount_of(requested, limit.name());
        if let Some(outlook) = outlook(limit, amount) {
            statuses.push(LimitStatus::new(key, limit, config.mode(), outlook, amount));
        }
    }
    statuses
}

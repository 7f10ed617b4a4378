//! Admitting a call from this process's own share of the limits while the table is unavailable.

use std::sync::Arc;

use zae_limiter_schema::LimitName;
use zae_limiter_schema::bucket::BucketKey;

use super::call::Checked;
use crate::bucket::{Asked, OutagePortion, OutageShare, Shared};
use crate::config::MAX_PARENTS;
use crate::{Error, Result};

/// Takes what the call asks, by the limits that were known last. Without known limits the answer is `why`.
pub(super) fn take_share(
    shared: &Arc<Shared>,
    share: &Arc<OutageShare>,
    checked: &Checked,
    why: &Error,
) -> Result<OutagePortion> {
    let charges = known_charges(shared, checked).ok_or_else(|| why.clone())?;
    OutagePortion::take(shared, share, charges, why)
}

/// The levels of a call by what was known last, however old; nothing where a level has no known limits, or the call asks
/// for one that the entity does not have.
fn known_charges(shared: &Shared, checked: &Checked) -> Option<Vec<Asked>> {
    let mut levels: Vec<Asked> = Vec::new();
    let mut next = Some(checked.entity.clone());
    while let Some(entity) = next {
        let own = levels.is_empty();
        let known = shared.cache.known(&entity, &checked.resource);
        let given = checked.limits.as_ref().filter(|_| own);
        let limits = given.unwrap_or(&known.limits).clone();
        let has = |limit: &LimitName| limits.get(limit).is_some();
        if limits.is_empty() || (own && !checked.amounts.iter().all(|(limit, _)| has(limit))) {
            return None;
        }
        let amounts = checked.amounts.iter().filter(|(limit, _)| has(limit));
        levels.push(Asked {
            key: BucketKey {
                entity,
                resource: checked.resource.clone(),
            },
            amounts: amounts.cloned().collect(),
            limits,
        });
        next = known.parent.clone().filter(|_| known.cascade);
        if next.is_some() && levels.len() > MAX_PARENTS {
            return None;
        }
    }
    Some(levels)
}

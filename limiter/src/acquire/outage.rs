//! Admitting a call from this process's own fraction of the limits while the table is unavailable.

use std::borrow::Cow;
use std::sync::Arc;

use zae_limiter_schema::LimitName;
use zae_limiter_schema::bucket::BucketKey;

use super::call::Call;
use super::estimate::with_estimate;
use crate::bucket::{Amounts, Buckets, LocalCharge, LocalTokens, OutageFraction};
use crate::config::MAX_PARENTS;
use crate::{Error, Result};

/// Takes what the call wants, by the limits that were known last. Without known limits it fails with `why`.
pub(super) fn take_locally(
    buckets: &Buckets,
    fraction: &Arc<OutageFraction>,
    call: &Call,
    why: &Error,
) -> Result<LocalTokens> {
    let shared = buckets.shared();
    let charges = known_charges(buckets, call).ok_or_else(|| why.clone())?;
    LocalTokens::take(shared, fraction, charges, why)
}

/// The levels of a call by what was known last, however old; nothing where a level has no known limits, or the call asks
/// for one that the entity does not have.
fn known_charges(buckets: &Buckets, call: &Call) -> Option<Vec<LocalCharge>> {
    let shared = buckets.shared();
    let mut levels: Vec<LocalCharge> = Vec::new();
    let mut next = Some(call.key.entity.clone());
    let mut all = Cow::Borrowed(&call.amounts);
    while let Some(entity) = next {
        let own = levels.is_empty();
        let known = shared.cache.known(&entity, &call.key.resource);
        let call_limits = call.limits.as_ref().filter(|_| own);
        let limits = call_limits.unwrap_or(&known.limits).clone();
        let has = |limit: &LimitName| limits.get(limit).is_some();
        if limits.is_empty() || (own && !call.amounts.iter().all(|(limit, _)| has(limit))) {
            return None;
        }
        if own {
            // Without known prices, what the call names has to do.
            let (estimate, prices) = (call.estimate.as_ref(), known.prices.as_deref());
            all = with_estimate(&call.amounts, estimate, prices, &call.key.resource).unwrap_or(all);
        }
        let amounts = all.iter().filter(|(limit, _)| has(limit));
        let key = BucketKey {
            entity,
            resource: call.key.resource.clone(),
        };
        levels.push(LocalCharge {
            left: buckets.known_image(&key).map_or_else(Amounts::new, |image| {
                let now = shared.now();
                let quotas = image.quotas.iter();
                quotas
                    .map(|(limit, quota)| (limit.clone(), quota.amount - quota.at(now).0))
                    .collect()
            }),
            key,
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

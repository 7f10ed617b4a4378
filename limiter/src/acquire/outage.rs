//! Admitting a call from this process's own fraction of the limits while the table is unavailable.

use std::borrow::Cow;
use std::sync::Arc;

use zae_limiter_schema::bucket::BucketKey;
use zae_limiter_schema::{LimitName, Mode};

use super::call::Call;
use super::estimate::with_estimate;
use crate::bucket::{Amounts, Buckets, LocalCharge, LocalTokens, OutageFraction};
use crate::config::MAX_PARENTS;
use crate::{Error, Result};

/// The strictest mode of the levels that a call is charged to, by what was known last, however old. An error if one of them is
/// disabled: no outage opens what an operator has closed.
pub(super) fn known_mode(buckets: &Buckets, key: &BucketKey) -> Result<Mode> {
    let cache = &buckets.shared().cache;
    let mut strictest = Mode::Bypass;
    let mut next = Some(key.entity.clone());
    for _ in 0..=MAX_PARENTS {
        let Some(entity) = next else { break };
        let (mode, mode_from) = cache.known_mode(&entity, &key.resource);
        let known = cache.known(&entity, &key.resource);
        next = known.cascades_to().cloned();
        if mode == Mode::Disabled {
            return Err(Error::Disabled {
                entity,
                resource: key.resource.clone(),
                mode_from,
            });
        }
        strictest = strictest.min(mode);
    }
    Ok(strictest)
}

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
    let mut seen = 0;
    let mut next = Some(call.key.entity.clone());
    let mut all = Cow::Borrowed(&call.amounts);
    while let Some(entity) = next {
        let own = seen == 0;
        seen += 1;
        let known = shared.cache.known(&entity, &call.key.resource);
        next = known.cascades_to().cloned();
        if next.is_some() && seen > MAX_PARENTS {
            return None;
        }
        let call_limits = call.limits.as_ref().filter(|_| own);
        let limits = call_limits.unwrap_or(&known.limits).clone();
        let has = |limit: &LimitName| limits.get(limit).is_some();
        let is_enforced = shared.cache.known_mode(&entity, &call.key.resource).0 == Mode::Enforce;
        let lacks_limits = limits.is_empty() || (own && !call.amounts.iter().all(|(limit, _)| has(limit)));
        if is_enforced && lacks_limits {
            return None;
        }
        if own {
            // Without known prices, what the call names has to do.
            let (estimate, prices) = (call.estimate.as_ref(), known.prices.as_deref());
            all = with_estimate(&call.amounts, estimate, prices, &call.key.resource).unwrap_or(all);
        }
        if !is_enforced {
            continue;
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
    }
    Some(levels)
}

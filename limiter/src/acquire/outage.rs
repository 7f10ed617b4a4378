//! Admitting a call from this process's own fraction of the limits while the table is unavailable.

use std::sync::Arc;

use zae_limiter_schema::bucket::BucketKey;
use zae_limiter_schema::money::Prices;
use zae_limiter_schema::{LimitName, Mode};

use super::estimate::with_estimate;
use super::part::Part;
use crate::bucket::{Amounts, Buckets, LocalCharge, LocalTokens, OutageFraction};
use crate::config::MAX_PARENTS;
use crate::{Error, Result};

/// The strictest mode of the levels that a call is charged to, by what was known last, however old. An error if one of them is
/// disabled: no outage opens what an operator has closed.
pub(super) fn known_mode(buckets: &Buckets, parts: &[Part]) -> Result<Mode> {
    let cache = &buckets.shared().cache;
    let mut strictest = Mode::Bypass;
    for part in parts {
        let (resource, mut cascade) = (&part.key.resource, part.cascade);
        let mut next = Some(part.key.entity.clone());
        for _ in 0..=MAX_PARENTS {
            let Some(entity) = next else { break };
            let (mode, mode_from) = cache.known_mode(&entity, resource);
            next = cache
                .known(&entity, resource)
                .charged_parent(cascade.take())
                .cloned();
            if mode == Mode::Disabled {
                return Err(Error::Disabled {
                    entity,
                    resource: resource.clone(),
                    mode_from,
                });
            }
            strictest = strictest.min(mode);
        }
    }
    Ok(strictest)
}

/// Takes what the parts of a call want, by the limits that were known last. Without known limits it fails with `why`.
pub(super) fn take_locally(
    buckets: &Buckets,
    fraction: &Arc<OutageFraction>,
    parts: &[Part],
    why: &Error,
) -> Result<LocalTokens> {
    let shared = buckets.shared();
    let charges = known_charges(buckets, parts).ok_or_else(|| why.clone())?;
    LocalTokens::take(shared, fraction, charges, why)
}

/// The levels of a call by what was known last, however old; nothing where a level has no known limits, or the call asks
/// for one that the entity does not have.
fn known_charges(buckets: &Buckets, parts: &[Part]) -> Option<Vec<LocalCharge>> {
    let key = &parts.first()?.key;
    let known = buckets.shared().cache.known(&key.entity, &key.resource);
    let prices = known.prices.as_deref();
    let mut charges = Vec::new();
    for part in parts {
        charges.append(&mut known_chain(buckets, part, prices)?);
    }
    Some(charges)
}

fn known_chain(buckets: &Buckets, part: &Part, prices: Option<&Prices>) -> Option<Vec<LocalCharge>> {
    let shared = buckets.shared();
    let resource = &part.key.resource;
    // Without known prices, what the call names has to do.
    let all = with_estimate(&part.amounts, part.estimate.as_ref(), prices, resource);
    let all = all.as_deref().unwrap_or(&part.amounts);
    let mut levels: Vec<LocalCharge> = Vec::new();
    let mut seen = 0;
    let mut next = Some(part.key.entity.clone());
    while let Some(entity) = next {
        let own = seen == 0;
        seen += 1;
        let known = shared.cache.known(&entity, resource);
        let call_limits = part.limits.as_ref().filter(|_| own);
        let limits = call_limits.unwrap_or(&known.limits).clone();
        let has = |limit: &LimitName| limits.get(limit).is_some();
        let cascade = part.cascade.filter(|_| own);
        next = known.charged_parent(cascade).cloned();
        if next.is_some() && seen > MAX_PARENTS {
            return None;
        }
        if shared.cache.known_mode(&entity, resource).0 != Mode::Enforce {
            continue;
        }
        if limits.is_empty() || (own && !part.amounts.iter().all(|(limit, _)| has(limit))) {
            return None;
        }
        let amounts = all.iter().filter(|(limit, _)| has(limit));
        let key = BucketKey {
            entity,
            resource: resource.clone(),
        };
        levels.push(LocalCharge {
            part: part.index,
            left: buckets.known_image(&key).map_or_else(Amounts::new, |image| {
                let now = shared.now();
                let left = image
                    .limits_on_item()
                    .filter_map(|(name, limit)| Some((name.clone(), limit.left_until_reset(now)?)));
                left.collect()
            }),
            key,
            amounts: amounts.cloned().collect(),
            limits,
        });
    }
    Some(levels)
}

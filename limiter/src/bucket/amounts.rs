//! Amounts by limit.

use smallvec::SmallVec;
use zae_limiter_schema::LimitName;

/// Amounts by limit, in millitokens: above zero is taken, below zero is given back. Up to two limits need no allocation, and
/// most buckets have no more.
pub(crate) type Amounts = SmallVec<[(LimitName, i128); 2]>;

/// The amount for a limit; 0 if there is none.
pub(crate) fn amount_of(amounts: &[(LimitName, i128)], limit: &LimitName) -> i128 {
    let own = amounts.iter().find(|(name, _)| name == limit);
    own.map_or(0, |(_, amount)| *amount)
}

/// Adds to the amount for a limit.
pub(crate) fn add(amounts: &mut Amounts, limit: &LimitName, amount: i128) {
    match amounts.iter_mut().find(|(name, _)| name == limit) {
        Some((_, total)) => *total += amount,
        None => amounts.push((limit.clone(), amount)),
    }
}

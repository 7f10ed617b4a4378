//! Refusals by entity.

use zae_limiter::AttributeValue;
use zae_limiter::usage::UsageSnapshot;

/// The attribute of a usage snapshot that counts refusals, as text. One without refusals, or from an aggregator that
/// does not count them, has none.
const ATTRIBUTE: &str = "_rf";

/// How many calls were refused in the window, if the snapshot says so.
pub(crate) fn refusals(snapshot: &UsageSnapshot) -> Option<i64> {
    match snapshot.to_item().get(ATTRIBUTE) {
        Some(AttributeValue::S(text) | AttributeValue::N(text)) => text.parse().ok(),
        _ => None,
    }
}

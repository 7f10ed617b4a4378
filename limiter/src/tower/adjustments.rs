//! Corrections from behind the layer.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::Lease;

/// Corrects the cost of a call from behind the layer. It is in the extensions of the request; clones share everything.
///
/// ```
/// use zae_limiter::tower::Adjustments;
///
/// async fn handle(request: http::Request<()>) -> http::Response<String> {
///     if let Some(cost) = request.extensions().get::<Adjustments>() {
///         cost.adjust("tpm", 120); // in addition to what was consumed
///     }
///     http::Response::new("a long response".to_owned())
/// }
/// ```
#[derive(Debug, Clone, Default)]
pub struct Adjustments(Arc<Mutex<Sums>>);

/// By resource, or none for the limits of whatever resource, and by limit.
type Sums = BTreeMap<(Option<String>, String), i64>;

impl Adjustments {
    /// Corrects what was used of a limit: above zero is used more than was consumed, below zero less. Adjustments add
    /// up. They are written when the body of the response has ended; later ones have no effect.
    pub fn adjust(&self, limit: impl Into<String>, tokens: i64) {
        self.add(None, limit.into(), tokens);
    }

    /// The same of a limit that several resources of the call have: see [`Lease::on`](crate::Lease::on).
    pub fn adjust_on(&self, resource: impl Into<String>, limit: impl Into<String>, tokens: i64) {
        self.add(Some(resource.into()), limit.into(), tokens);
    }

    fn add(&self, resource: Option<String>, limit: String, tokens: i64) {
        let mut sums = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let sum = sums.entry((resource, limit)).or_default();
        *sum = sum.saturating_add(tokens);
    }

    /// Adjusts the lease. Nothing is left for another one.
    pub(super) fn apply(&self, lease: &mut Lease) {
        let sums = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        for ((resource, limit), tokens) in sums {
            match resource {
                Some(resource) => _ = lease.on(resource).adjust(limit, tokens),
                None => _ = lease.adjust(limit, tokens),
            }
        }
    }
}

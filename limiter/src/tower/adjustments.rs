//! Corrections from behind the layer.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

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
pub struct Adjustments(Arc<Mutex<BTreeMap<String, i64>>>);

impl Adjustments {
    /// Corrects what was used of a limit: above zero is used more than was consumed, below zero less. Adjustments add
    /// up. They are written when the body of the response has ended; later ones have no effect.
    pub fn adjust(&self, limit: impl Into<String>, tokens: i64) {
        let mut sums = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let sum = sums.entry(limit.into()).or_default();
        *sum = sum.saturating_add(tokens);
    }

    pub(super) fn take(&self) -> BTreeMap<String, i64> {
        let mut sums = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut sums)
    }
}

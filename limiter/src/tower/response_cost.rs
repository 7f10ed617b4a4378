//! The cost of a call by its response.

use http::HeaderMap;
use http::response::Parts;

/// Reads from a response what its call really cost.
///
/// ```
/// use zae_limiter::tower::ResponseCost;
///
/// /// The response costs a token per byte; 500 were taken in advance.
/// struct Bytes(i64);
///
/// impl ResponseCost for Bytes {
///     fn data(&mut self, chunk: &[u8]) {
///         self.0 += i64::try_from(chunk.len()).unwrap_or(i64::MAX);
///     }
///
///     fn adjustments(&mut self) -> Vec<(String, i64)> {
///         vec![("tpm".to_owned(), self.0 - 500)]
///     }
/// }
/// ```
pub trait ResponseCost: Send {
    /// Sees the head of the response.
    fn head(&mut self, head: &Parts) {
        let _ = head;
    }

    /// Sees a piece of the body, in order, before the client does.
    fn data(&mut self, chunk: &[u8]) {
        let _ = chunk;
    }

    /// Sees the trailers, if there are any.
    fn trailers(&mut self, trailers: &HeaderMap) {
        let _ = trailers;
    }

    /// What to adjust when the body has ended, or the client has disconnected: tokens by limit, in addition to what
    /// was consumed in advance. Below zero gives back. Not asked if a panic drops the body: the call then costs what was
    /// consumed in advance.
    fn adjustments(&mut self) -> Vec<(String, i64)>;
}

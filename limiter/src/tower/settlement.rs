//! The end of a lease with the end of its response.

use std::fmt;

use http::HeaderMap;
use http::response::Parts;

use super::adjustments::Adjustments;
use super::call::{Call, RefundRule};
use super::response_cost::ResponseCost;
use crate::Lease;

/// A lease that is committed when this is dropped: the request reached the service, so the call has happened.
pub(super) struct Settlement {
    lease: Option<Lease>,
    adjustments: Adjustments,
    /// Whether the service has responded.
    responded: bool,
    refund_without_response: bool,
    cost: Option<Box<dyn ResponseCost>>,
    refund: Option<RefundRule>,
}

impl Settlement {
    pub(super) fn new(lease: Lease, adjustments: Adjustments, call: Call) -> Self {
        Self {
            lease: Some(lease),
            adjustments,
            responded: false,
            refund_without_response: call.refund_on_disconnect,
            cost: call.cost,
            refund: call.refund,
        }
    }

    /// Gives all tokens back.
    pub(super) fn refund(mut self) {
        self.return_tokens();
    }

    fn return_tokens(&mut self) {
        if let Some(lease) = self.lease.take() {
            lease.rollback_in_background();
        }
    }

    pub(super) fn head(&mut self, head: &Parts) {
        self.responded = true;
        if self.refund.take().is_some_and(|is_failure| is_failure(head)) {
            self.return_tokens();
        }
        if let Some(cost) = &mut self.cost {
            cost.head(head);
        }
    }

    pub(super) fn data(&mut self, chunk: &[u8]) {
        if let Some(cost) = &mut self.cost {
            cost.data(chunk);
        }
    }

    pub(super) fn trailers(&mut self, trailers: &HeaderMap) {
        if let Some(cost) = &mut self.cost {
            cost.trailers(trailers);
        }
    }
}

impl fmt::Debug for Settlement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settlement")
            .field("lease", &self.lease)
            .field("adjustments", &self.adjustments)
            .finish_non_exhaustive()
    }
}

impl Drop for Settlement {
    fn drop(&mut self) {
        let Some(mut lease) = self.lease.take() else {
            return;
        };
        let panics = std::thread::panicking();
        if !self.responded && (panics || self.refund_without_response) {
            return lease.rollback_in_background();
        }
        // The caller's code is not run during a panic: a second one would end the process. Without a response it has
        // seen nothing that it could correct the cost by.
        let cost = self.cost.as_mut().filter(|_| self.responded && !panics);
        let by_response = cost.map(|cost| cost.adjustments());
        for (limit, tokens) in by_response.into_iter().flatten() {
            lease.adjust(limit, tokens);
        }
        self.adjustments.apply(&mut lease);
        lease.commit_in_background();
    }
}

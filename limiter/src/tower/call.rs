//! Who pays what for a request.

use std::fmt;
use std::time::Duration;

use http::response::Parts;

use super::response_cost::ResponseCost;
use crate::{Acquire, Limit, OnUnavailable, RateLimiter};

/// Decides by the head of a response whether all tokens go back.
pub(super) type RefundRule = Box<dyn Fn(&Parts) -> bool + Send>;

/// Who pays what for a request.
///
/// ```
/// use zae_limiter::tower::Call;
///
/// let call = Call::new("user-1", "gpt-4")
///     .consume("rpm", 1)
///     .consume("tpm", 500)
///     .refund_if(|head| head.status.is_server_error());
/// ```
#[must_use = "a call does nothing until it is returned to the layer"]
pub struct Call {
    entity: String,
    resource: String,
    amounts: Vec<(String, u64)>,
    limits: Option<Vec<Limit>>,
    policy: Option<OnUnavailable>,
    wait: Option<Duration>,
    pub(super) cost: Option<Box<dyn ResponseCost>>,
    pub(super) refund: Option<RefundRule>,
    pub(super) refund_on_disconnect: bool,
}

impl Call {
    /// A call of an entity on a resource.
    pub fn new(entity: impl Into<String>, resource: impl Into<String>) -> Self {
        Self {
            entity: entity.into(),
            resource: resource.into(),
            amounts: vec![],
            limits: None,
            policy: None,
            wait: None,
            cost: None,
            refund: None,
            refund_on_disconnect: false,
        }
    }

    /// Takes tokens of a limit before the request is passed on. At least one token of at least one limit is needed.
    pub fn consume(mut self, limit: impl Into<String>, tokens: u64) -> Self {
        self.amounts.push((limit.into(), tokens));
        self
    }

    /// Uses these limits instead of the stored ones (see [`Acquire::limits`](crate::Acquire::limits)).
    pub fn limits(mut self, limits: impl IntoIterator<Item = Limit>) -> Self {
        self.limits = Some(limits.into_iter().collect());
        self
    }

    /// The policy for outages, instead of the stored one.
    pub fn on_unavailable(mut self, policy: OnUnavailable) -> Self {
        self.policy = Some(policy);
        self
    }

    /// Waits for tokens up to this time instead of being refused at once.
    pub fn wait_up_to(mut self, time: Duration) -> Self {
        self.wait = Some(time);
        self
    }

    /// Corrects the cost by what the response says.
    pub fn corrected_by(mut self, cost: impl ResponseCost + 'static) -> Self {
        self.cost = Some(Box::new(cost));
        self
    }

    /// Gives all tokens back if the response is a failure that should cost nothing.
    pub fn refund_if(mut self, is_failure: impl Fn(&Parts) -> bool + Send + 'static) -> Self {
        self.refund = Some(Box::new(is_failure));
        self
    }

    /// Whether all tokens go back if the client disconnects before the service has responded. By default they stay taken,
    /// because the service may have done the work.
    pub fn refund_on_disconnect(mut self, refund: bool) -> Self {
        self.refund_on_disconnect = refund;
        self
    }

    pub(super) fn acquire(&self, limiter: &RateLimiter) -> Acquire {
        let mut acquire = limiter.acquire(&self.entity, &self.resource);
        for (limit, tokens) in &self.amounts {
            acquire = acquire.consume(limit, *tokens);
        }
        if let Some(limits) = &self.limits {
            acquire = acquire.limits(limits.clone());
        }
        if let Some(policy) = self.policy {
            acquire = acquire.on_unavailable(policy);
        }
        if let Some(time) = self.wait {
            acquire = acquire.wait_up_to(time);
        }
        acquire
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("entity", &self.entity)
            .field("resource", &self.resource)
            .field("amounts", &self.amounts)
            .field("wait", &self.wait)
            .finish_non_exhaustive()
    }
}

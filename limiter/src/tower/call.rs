//! Who pays what for a request.

use std::fmt;
use std::time::Duration;

use http::response::Parts;

use super::response_cost::ResponseCost;
use crate::acquire::Drafts;
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
    drafts: Drafts,
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
            drafts: Drafts::new(&entity.into(), &resource.into()),
            policy: None,
            wait: None,
            cost: None,
            refund: None,
            refund_on_disconnect: false,
        }
    }

    /// Takes tokens of a limit before the request is passed on. At least one token of at least one limit is needed.
    pub fn consume(mut self, limit: impl Into<String>, tokens: u64) -> Self {
        self.drafts.consume(&limit.into(), tokens);
        self
    }

    /// Uses these limits instead of the stored ones (see [`Acquire::limits`](crate::Acquire::limits)).
    pub fn limits(mut self, limits: impl IntoIterator<Item = Limit>) -> Self {
        self.drafts.current().limits = Some(limits.into_iter().collect());
        self
    }

    /// Charges another resource of the same entity, too (see [`Acquire::and`](crate::Acquire::and)). What follows is about this
    /// resource.
    pub fn and(mut self, resource: impl Into<String>) -> Self {
        self.drafts.begin(&resource.into());
        self
    }

    /// Whether the entity's parent is charged too, for this resource (see [`Acquire::cascade`](crate::Acquire::cascade)).
    pub fn cascade(mut self, cascade: bool) -> Self {
        self.drafts.current().cascade = Some(cascade);
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
        let acquire = Acquire::of(limiter.buckets().clone(), self.drafts.clone());
        let acquire = match self.policy {
            Some(policy) => acquire.on_unavailable(policy),
            None => acquire,
        };
        match self.wait {
            Some(time) => acquire.wait_up_to(time),
            None => acquire,
        }
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("drafts", &self.drafts)
            .field("wait", &self.wait)
            .finish_non_exhaustive()
    }
}

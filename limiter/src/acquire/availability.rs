//! Reading the limits of a call without taking from them.

use zae_limiter_schema::bucket::{Attributes, Batch, Decoded, Evaluation, RetryAfter};
use zae_limiter_schema::{EntityId, LimitName, Mode, Resource};

use super::charge::Charge;
use crate::Result;
use crate::config::resolution::ConfigOrigin;
use crate::status::LimitStatus;

/// What is available to a call, from [`Acquire::peek`](crate::Acquire::peek): every limit of the entity and of the
/// parents that are charged too.
///
/// ```
/// use std::time::Duration;
/// use zae_limiter::{Limit, RateLimiter, RetryAfter};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> zae_limiter::Result<()> {
/// let limiter = RateLimiter::embedded().default_limits([Limit::per_hour("rph", 60)?]).await?;
/// limiter.acquire("user-1", "gpt-4").consume("rph", 15).await?.commit().await?;
///
/// let left = limiter.acquire("user-1", "gpt-4").peek().await?;
/// assert_eq!(left.tokens("rph"), Some(45));
///
/// let call = limiter.acquire("user-1", "gpt-4").consume("rph", 46).peek().await?;
/// assert!(!call.would_pass());
/// assert!(call.retry_after() <= RetryAfter::After(Duration::from_secs(60)), "one token per minute");
///
/// let call = limiter.acquire("user-1", "gpt-4").consume("rph", 61).peek().await?;
/// assert_eq!(call.retry_after(), RetryAfter::Never, "more than the burst");
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Availability {
    statuses: Vec<LimitStatus>,
    disabled: Option<(EntityId, ConfigOrigin)>,
}

impl Availability {
    /// The status of every limit, resource by resource: first the entity's own, then those of its parents.
    pub fn statuses(&self) -> &[LimitStatus] {
        &self.statuses
    }

    /// The whole tokens available of one limit, rounded down; negative if it is in debt. If a parent or another resource
    /// of the call has a limit of this name, the smallest amount. None if there is no such limit.
    pub fn tokens(&self, limit: impl AsRef<str>) -> Option<i64> {
        self.least(limit.as_ref(), |_| true)
    }

    /// The same of the limit on one resource.
    pub fn tokens_on(&self, resource: impl AsRef<str>, limit: impl AsRef<str>) -> Option<i64> {
        let resource = resource.as_ref();
        self.least(limit.as_ref(), |own| own.as_str() == resource)
    }

    fn least(&self, limit: &str, on: impl Fn(&Resource) -> bool) -> Option<i64> {
        let limit = LimitName::from_stored(limit).ok()?;
        let same = self
            .statuses
            .iter()
            .filter(|status| *status.limit.name() == limit && on(&status.resource));
        same.map(|status| status.available).min()
    }

    /// Reports whether the call would be admitted now.
    pub fn would_pass(&self) -> bool {
        !self.is_disabled() && self.statuses.iter().all(|status| !status.refused)
    }

    /// True if the entity, or a parent that is charged too, may not use a resource of the call: its [mode](Mode) is `disabled`.
    pub fn is_disabled(&self) -> bool {
        self.disabled.is_some()
    }

    /// The entity that may not use the resource (that of the call or a parent), and the level that says so.
    pub fn disabled_by(&self) -> Option<(&EntityId, ConfigOrigin)> {
        self.disabled.as_ref().map(|(entity, level)| (entity, *level))
    }

    /// When the call will be admitted if no other call takes tokens in the meantime.
    pub fn retry_after(&self) -> RetryAfter {
        if self.is_disabled() {
            return RetryAfter::Never;
        }
        let refused = self.statuses.iter().filter(|status| status.refused);
        refused
            .map(|status| status.retry_after)
            .max()
            .unwrap_or(RetryAfter::Now)
    }

    pub(super) async fn read(charges: &[Charge]) -> Result<Self> {
        let mut statuses = Vec::new();
        for charge in charges {
            let shared = charge.bucket.shared();
            let found = shared.store.read_bucket(charge.bucket.key(), false).await?;
            let decoded = found.as_ref().map(Attributes::decode).transpose()?;
            let now = shared.now();
            let image = match &decoded {
                Some(Decoded::Bucket(image)) => Some(image),
                Some(Decoded::Stub) | None => None,
            };
            let evaluation = Evaluation::by_image(image, &charge.config, now);
            statuses.extend(charge.statuses_on(&evaluation, &Batch::default()));
        }
        let disabled = charges.iter().find(|charge| charge.mode() == Mode::Disabled);
        let disabled = disabled.map(|charge| (charge.bucket.key().entity.clone(), charge.mode_from));
        Ok(Self { statuses, disabled })
    }
}

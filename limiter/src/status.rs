//! The status of each limit, and the refusal that reports it.

use std::fmt;
use std::time::Duration;

use serde::ser::{Serialize, SerializeStruct, Serializer};
use zae_limiter_schema::bucket::{BucketKey, Outlook, Reset, RetryAfter};
use zae_limiter_schema::{EntityId, Limit, Mode, Resource, whole_tokens};

/// The status of one limit, compared with the request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LimitStatus {
    /// Whose limit.
    pub entity: EntityId,
    /// On what.
    pub resource: Resource,
    /// The limit.
    pub limit: Limit,
    /// Whole tokens available. Negative is debt.
    pub available: i64,
    /// Whole tokens used of a quota's period, or permits held by calls in flight. None for a rate, which only knows what is
    /// available, and while the table is unavailable.
    pub used: Option<i64>,
    /// Whole tokens requested.
    pub requested: u64,
    /// True if this limit refuses the request: less is available than requested.
    pub refused: bool,
    /// True if this limit would refuse the request, but is only [observed](Mode::Observe).
    pub observed: bool,
    /// When the requested amount will be available.
    pub retry_after: RetryAfter,
    /// When all of it comes back at once: the end of a quota's period. Other kinds have none.
    pub reset: Option<Reset>,
    /// Whole tokens that a quota was [topped up](crate::Repository::top_up) with in the period that runs.
    pub topped_up: u64,
}

impl LimitStatus {
    pub(crate) fn new(key: &BucketKey, limit: &Limit, mode: Mode, outlook: Outlook, requested: i128) -> Self {
        let wait = outlook.retry_after;
        let whole = |millitokens| i64::try_from(whole_tokens(millitokens)).unwrap_or(i64::MIN);
        let is_short = requested > 0 && wait != RetryAfter::Now;
        Self {
            entity: key.entity.clone(),
            resource: key.resource.clone(),
            limit: limit.clone(),
            available: whole(outlook.left),
            used: outlook.used.map(whole),
            requested: u64::try_from(whole_tokens(requested)).unwrap_or(0),
            refused: is_short && matches!(mode, Mode::Enforce | Mode::Disabled),
            observed: is_short && mode == Mode::Observe,
            retry_after: wait,
            reset: outlook.reset,
            topped_up: u64::try_from(whole_tokens(outlook.topped_up)).unwrap_or(0),
        }
    }

    /// The most that can be available at once: the burst, and what a quota was topped up with.
    pub fn most(&self) -> u64 {
        self.limit.burst().get().saturating_add(self.topped_up)
    }

    /// The seconds in which all of the limit comes back: a rate from empty, a quota in its period. None for calls in flight,
    /// which come back when they end.
    pub fn window_seconds(&self) -> Option<u128> {
        let period = self.reset.map(|reset| u128::from(reset.period.as_secs()));
        let limit = &self.limit;
        period.or_else(|| limit.kind().seconds_to_refill(limit.capacity().get()))
    }

    /// How many tokens are missing.
    pub fn deficit(&self) -> u64 {
        let missing = i128::from(self.requested) - i128::from(self.available);
        u64::try_from(missing).unwrap_or(0)
    }
}

/// The Python peer's field names.
impl Serialize for LimitStatus {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut status = serializer.serialize_struct(
            "LimitStatus",
            9 + usize::from(self.observed)
                + usize::from(self.reset.is_some())
                + usize::from(self.topped_up > 0),
        )?;
        status.serialize_field("entity_id", &self.entity)?;
        status.serialize_field("resource", &self.resource)?;
        status.serialize_field("limit_name", self.limit.name())?;
        status.serialize_field("capacity", &self.limit.capacity())?;
        status.serialize_field("burst", &self.limit.burst())?;
        status.serialize_field("available", &self.available)?;
        status.serialize_field("requested", &self.requested)?;
        status.serialize_field("exceeded", &self.refused)?;
        if self.observed {
            status.serialize_field("observed", &true)?;
        }
        status.serialize_field("retry_after_seconds", &self.retry_after.seconds())?;
        if let Some(reset) = self.reset {
            status.serialize_field("resets_at", &reset.at.to_string())?;
        }
        if self.topped_up > 0 {
            status.serialize_field("topped_up", &self.topped_up)?;
        }
        status.end()
    }
}

/// A refusal: the status of every limit at every level of the call.
///
/// Serializes to the JSON that the Python peer's `as_dict` gives; a request that can never pass has `null` for its
/// times.
///
/// ```
/// use zae_limiter::{Error, Limit, RateLimiter, RetryAfter};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> zae_limiter::Result<()> {
/// # let limiter = RateLimiter::embedded().await?;
/// let limits = [Limit::per_hour("rph", 10)?, Limit::per_hour("tph", 1_000)?];
/// let call = limiter.acquire("user-1", "gpt-4").limits(limits).consume("rph", 1).consume("tph", 1_001);
/// let Err(Error::Refused(refusal)) = call.await else { panic!("it asks for too much") };
/// assert_eq!(refusal.refused_limits().count(), 1);
/// assert_eq!(refusal.passed_limits().next().unwrap().limit.name().as_str(), "rph");
/// assert_eq!(refusal.retry_after(), RetryAfter::Never, "more than the burst");
/// assert_eq!(refusal.retry_after_header(), None);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    statuses: Vec<LimitStatus>,
}

impl Refusal {
    pub(crate) fn new(statuses: Vec<LimitStatus>) -> Self {
        Self { statuses }
    }

    /// The status of every limit, resource by resource: first the entity's own, then those of its parents.
    pub fn statuses(&self) -> &[LimitStatus] {
        &self.statuses
    }

    /// The limits that refused the call.
    pub fn refused_limits(&self) -> impl Iterator<Item = &LimitStatus> {
        self.statuses.iter().filter(|status| status.refused)
    }

    /// The limits that had enough.
    pub fn passed_limits(&self) -> impl Iterator<Item = &LimitStatus> {
        self.statuses.iter().filter(|status| !status.refused)
    }

    /// The refused limit with the longest wait.
    pub fn primary_limit(&self) -> Option<&LimitStatus> {
        self.refused_limits().max_by_key(|status| status.retry_after)
    }

    /// When the call will be admitted if no other call takes the tokens first. Never [`RetryAfter::Now`].
    pub fn retry_after(&self) -> RetryAfter {
        let longest = self
            .primary_limit()
            .map_or(RetryAfter::Now, |status| status.retry_after);
        longest.max(RetryAfter::After(Duration::from_millis(1)))
    }

    /// The value of an HTTP `Retry-After` header: whole seconds, rounded up. None if the call can never pass.
    pub fn retry_after_header(&self) -> Option<String> {
        match self.retry_after() {
            RetryAfter::Now => Some("1".to_owned()),
            RetryAfter::After(time) => Some(time.as_millis().div_ceil(1000).to_string()),
            RetryAfter::Never => None,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let primary = self.primary_limit();
        let (entity, resource) = primary.map_or(("", ""), |status| {
            (status.entity.as_str(), status.resource.as_str())
        });
        // A call is charged to parents and other resources too, whose limits may have the same names.
        let refused = || self.refused_limits();
        let entities = refused().any(|status| status.entity.as_str() != entity);
        let resources = refused().any(|status| status.resource.as_str() != resource);
        let names = refused().map(|status| {
            let entity = entities.then_some(status.entity.as_str());
            let resource = resources.then_some(status.resource.as_str());
            let words = [entity, resource, Some(status.limit.name().as_str())];
            words.into_iter().flatten().collect::<Vec<_>>().join(" ")
        });
        let names: Vec<_> = names.collect();
        write!(
            f,
            "Rate limit exceeded for {entity}/{resource}: [{}]. ",
            names.join(", ")
        )?;
        match self.retry_after() {
            RetryAfter::Now => f.write_str("Retry"),
            RetryAfter::After(time) => {
                let tenths = time.as_millis().div_ceil(100);
                write!(f, "Retry after {}.{}s", tenths / 10, tenths % 10)
            }
            RetryAfter::Never => f.write_str("It can never pass: more is asked for than the burst"),
        }
    }
}

impl std::error::Error for Refusal {}

impl Serialize for Refusal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let seconds = self.retry_after().seconds();
        let millis = match self.retry_after() {
            RetryAfter::Now => Some(0),
            RetryAfter::After(time) => Some(u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
            RetryAfter::Never => None,
        };
        let mut exceeded = serializer.serialize_struct("Refusal", 5)?;
        exceeded.serialize_field("error", "rate_limit_exceeded")?;
        exceeded.serialize_field("message", &self.to_string())?;
        exceeded.serialize_field("retry_after_seconds", &seconds)?;
        exceeded.serialize_field("retry_after_ms", &millis)?;
        exceeded.serialize_field("limits", &self.statuses)?;
        exceeded.end()
    }
}

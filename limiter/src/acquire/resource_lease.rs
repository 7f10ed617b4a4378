//! One resource of a lease.

use zae_limiter_schema::LimitName;

use super::lease::Lease;
use crate::{Error, Result};

/// One resource of a lease: from [`Lease::on`].
///
/// ```
/// use zae_limiter::{Limit, RateLimiter};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> zae_limiter::Result<()> {
/// # let limiter = RateLimiter::embedded().default_limits([Limit::per_day("calls", 100)?]).await?;
/// let call = limiter.acquire("user-1", "search").consume("calls", 1).and("all-tools").consume("calls", 1);
/// let mut lease = call.await?;
/// lease.on("search").adjust("calls", 2); // both have a limit of this name
/// lease.on("all-tools").consume("calls", 4).await?;
/// assert_eq!(lease.consumed_on("search").unwrap()["calls"], 3);
/// assert_eq!(lease.consumed_on("all-tools").unwrap()["calls"], 5);
/// lease.commit().await?;
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct ResourceLease<'a> {
    lease: &'a mut Lease,
    /// The index of its part; an error if the lease has no such resource.
    part: Result<usize>,
}

impl<'a> ResourceLease<'a> {
    pub(super) fn new(lease: &'a mut Lease, part: Result<usize>) -> Self {
        Self { lease, part }
    }

    /// Corrects what was used of a limit of this resource: see [`Lease::adjust`].
    pub fn adjust(&mut self, limit: impl AsRef<str>, tokens: i64) -> &mut Self {
        let part = self.part.clone();
        self.lease.adjust_part(limit.as_ref(), tokens, |_, _| part);
        self
    }

    /// Gives tokens back: the same as adjusting by less.
    pub fn release(&mut self, limit: impl AsRef<str>, tokens: u64) -> &mut Self {
        let tokens = i64::try_from(tokens).unwrap_or(i64::MAX);
        self.adjust(limit, -tokens)
    }

    /// Takes more tokens of a limit of this resource, if they are there: see [`Lease::consume`].
    pub async fn consume(&mut self, limit: impl AsRef<str>, tokens: u64) -> Result<()> {
        let limit = LimitName::from_stored(limit.as_ref())?;
        let part = self.part.clone()?;
        self.lease.consume_part(part, &limit, tokens).await
    }
}

/// The error for a limit that several resources of a lease have.
pub(super) fn ambiguous(limit: &str, resources: &[&str]) -> Error {
    let resources = resources.join(", ");
    let rule = format!("several resources of the lease have this limit ({resources}): choose one with `on`");
    Error::invalid("limit", limit, rule)
}

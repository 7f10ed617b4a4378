//! Corrections without a lease.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;

use zae_limiter_schema::bucket::{Attributes, Decoded};
use zae_limiter_schema::{LimitName, Mode, Tokens};

use super::charge::{Charge, charges};
use super::part::{Drafts, Parts};
use super::resource_use::Written;
use crate::bucket::{Buckets, Origin, add};
use crate::{Error, RateLimiter, Result};

/// A correction without a lease, from [`RateLimiter::adjust`]. Nothing happens until it is awaited.
#[derive(Debug, Clone)]
#[must_use = "a correction does nothing until it is awaited"]
pub struct Adjust {
    buckets: Arc<Buckets>,
    drafts: Drafts,
}

impl RateLimiter {
    /// Corrects what was used of an entity's limits, and of the parents' that it counts on, without a lease: above zero was used
    /// in addition and may create debt, below zero gives back. For a call whose lease was lost with its process. The tokens
    /// that the lease took stay taken. True if it is written; false if that goes on in the background. An error changes
    /// nothing.
    ///
    /// Prefer [`Lease::adjust`](crate::Lease::adjust), which never gives back more than the lease took.
    ///
    /// ```
    /// use zae_limiter::{Limit, RateLimiter};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// let limiter = RateLimiter::embedded().default_limits([Limit::per_day("tpd", 1_000)?]).await?;
    /// limiter.acquire("user-1", "gpt-4").consume("tpd", 500).await?.commit().await?;
    /// limiter.adjust("user-1", "gpt-4", [("tpd", -120)]).await?;
    /// assert_eq!(limiter.acquire("user-1", "gpt-4").peek().await?.tokens("tpd"), Some(620));
    /// # Ok(()) }
    /// ```
    pub fn adjust<L: AsRef<str>>(
        &self,
        entity: impl AsRef<str>,
        resource: impl AsRef<str>,
        adjustments: impl IntoIterator<Item = (L, i64)>,
    ) -> Adjust {
        let adjust = Adjust {
            buckets: self.buckets().clone(),
            drafts: Drafts::new(entity.as_ref(), resource.as_ref()),
        };
        adjust.by(adjustments)
    }
}

impl Adjust {
    /// Corrects limits of another resource of the same entity, too: for a call that charged several
    /// ([`Acquire::and`](crate::Acquire::and)). All limits are checked before anything is written.
    ///
    /// ```
    /// use zae_limiter::{Limit, RateLimiter};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// # let limiter = RateLimiter::embedded().default_limits([Limit::per_day("tpd", 1_000)?]).await?;
    /// limiter.acquire("user-1", "gpt-4").consume("tpd", 500).and("budget").consume("tpd", 10).commit().await?;
    /// limiter.adjust("user-1", "gpt-4", [("tpd", -120)]).and("budget", [("tpd", 3)]).await?;
    /// assert_eq!(limiter.acquire("user-1", "budget").peek().await?.tokens("tpd"), Some(987));
    /// # Ok(()) }
    /// ```
    pub fn and<L: AsRef<str>>(
        mut self,
        resource: impl AsRef<str>,
        adjustments: impl IntoIterator<Item = (L, i64)>,
    ) -> Self {
        self.drafts.begin(resource.as_ref());
        self.by(adjustments)
    }

    /// Whether the entity's parent is corrected too, on the resource that was named last: as in the call whose cost this
    /// corrects ([`Acquire::cascade`](crate::Acquire::cascade)).
    pub fn cascade(mut self, cascade: bool) -> Self {
        self.drafts.current().cascade = Some(cascade);
        self
    }

    fn by<L: AsRef<str>>(mut self, adjustments: impl IntoIterator<Item = (L, i64)>) -> Self {
        for (limit, tokens) in adjustments {
            let adjusted = self.add(limit.as_ref(), tokens);
            self.drafts.note(adjusted);
        }
        self
    }

    fn add(&mut self, limit: &str, tokens: i64) -> Result<()> {
        let limit = LimitName::from_stored(limit)?;
        Tokens::new(tokens.unsigned_abs())
            .map_err(|error| Error::invalid("adjust", tokens.to_string(), error.to_string()))?;
        add(
            &mut self.drafts.current().amounts,
            &limit,
            i128::from(tokens) * 1000,
        );
        Ok(())
    }

    async fn write(self) -> Result<bool> {
        let mut parts = self.drafts.check(true)?;
        for part in &mut parts {
            part.amounts.retain(|(_, change)| *change != 0);
        }
        parts.retain(|part| !part.amounts.is_empty());
        let Some(first) = parts.first() else {
            return Ok(true);
        };
        let buckets = &self.buckets;
        let _inside = buckets.enter()?;
        let found = buckets.in_time(&first.key, find(buckets, &parts)).await?;
        let pending: Vec<_> = found.into_iter().map(queue).collect();
        let written = async {
            for change in pending {
                if !matches!(change.await, Ok(Ok(()))) {
                    return false;
                }
            }
            true
        };
        let written = tokio::time::timeout(buckets.shared().settings.time_budget, written).await;
        Ok(written.unwrap_or(false))
    }
}

impl IntoFuture for Adjust {
    type Output = Result<bool>;
    type IntoFuture = Pin<Box<dyn Future<Output = Result<bool>> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.write())
    }
}

/// The buckets to correct, with their incarnations.
async fn find(buckets: &Buckets, parts: &Parts) -> Result<Vec<(Charge, Arc<str>)>> {
    let charges = charges(buckets, parts).await?;
    charges.iter().try_for_each(check_adjustable)?;
    let mut found = Vec::new();
    let is_counted = |charge: &Charge| charge.mode() != Mode::Bypass && !charge.amounts.is_empty();
    for charge in charges.into_iter().filter(is_counted) {
        let incarnation = incarnation(&charge).await?;
        found.push((charge, incarnation));
    }
    Ok(found)
}

fn queue((charge, incarnation): (Charge, Arc<str>)) -> Written {
    let bucket = &charge.bucket;
    bucket.book_locally(&charge.config, &charge.amounts);
    bucket.adjust(
        charge.amounts,
        Origin::of_bucket(incarnation),
        bucket.with_core(|core| core.client()),
    )
}

/// An error if one of the limits cannot be corrected.
fn check_adjustable(charge: &Charge) -> Result<()> {
    for (limit, change) in &charge.amounts {
        let limit = charge.config.limits().get(limit);
        if let Some(limit) = limit.filter(|limit| !limit.kind().can_be_adjusted()) {
            let amount = (change / 1000).to_string();
            let rule = format!("{limit} counts calls in flight, which are released by their lease");
            return Err(Error::invalid("adjust", amount, rule));
        }
    }
    Ok(())
}

/// The incarnation of the bucket now; empty if there is none.
async fn incarnation(charge: &Charge) -> Result<Arc<str>> {
    let bucket = &charge.bucket;
    if let Some(image) = bucket.image() {
        return Ok(image.incarnation().into());
    }
    let found = bucket.shared().store.read_bucket(bucket.key(), true).await?;
    Ok(match found.as_ref().map(Attributes::decode).transpose()? {
        Some(Decoded::Bucket(image)) => image.incarnation().into(),
        Some(Decoded::Stub) | None => "".into(),
    })
}

//! Corrections without a lease.

use std::sync::Arc;

use zae_limiter_schema::bucket::{Attributes, BucketKey, Decoded};
use zae_limiter_schema::{EntityId, LimitName, Mode, Resource, Tokens};

use super::charge::{self, Charge};
use crate::bucket::{Amounts, Origin};
use crate::{Error, RateLimiter, Result};

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
    pub async fn adjust<L: AsRef<str>>(
        &self,
        entity: impl AsRef<str>,
        resource: impl AsRef<str>,
        adjustments: impl IntoIterator<Item = (L, i64)>,
    ) -> Result<bool> {
        let key = BucketKey {
            entity: EntityId::parse(entity)?,
            resource: Resource::parse(resource)?,
        };
        let mut changes = Amounts::new();
        for (limit, tokens) in adjustments {
            let limit = LimitName::from_stored(limit.as_ref())?;
            Tokens::new(tokens.unsigned_abs())
                .map_err(|error| Error::invalid("adjust", tokens.to_string(), error.to_string()))?;
            crate::bucket::add(&mut changes, &limit, i128::from(tokens) * 1000);
        }
        changes.retain(|(_, change)| *change != 0);
        if changes.is_empty() {
            return Ok(true);
        }
        let buckets = self.buckets();
        let _inside = buckets.enter()?;
        let found = async {
            let charges = charge::charges(buckets, &key, &changes, None, None).await?;
            charges.iter().try_for_each(check_adjustable)?;
            let mut found = Vec::new();
            let is_counted = |charge: &Charge| charge.mode() != Mode::Bypass && !charge.amounts.is_empty();
            for charge in charges.into_iter().filter(is_counted) {
                let incarnation = incarnation(&charge).await?;
                found.push((charge, incarnation));
            }
            Ok(found)
        };
        let pending: Vec<_> = buckets
            .in_time(&key, found)
            .await?
            .into_iter()
            .map(|(charge, incarnation)| {
                let bucket = &charge.bucket;
                bucket.book_locally(&charge.config, &charge.amounts);
                bucket.adjust(
                    charge.amounts,
                    Origin::of_bucket(incarnation),
                    bucket.with_core(|core| core.client()),
                )
            })
            .collect();
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

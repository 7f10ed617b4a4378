//! Taking more tokens for a lease.

use std::sync::Arc;

use smallvec::smallvec;
use zae_limiter_schema::bucket::BucketKey;
use zae_limiter_schema::{LimitName, OnUnavailable, Tokens};

use super::super::call::Checked;
use super::super::charge;
use super::super::{cascade, outage};
use super::{Admission, Lease, granted};
use crate::bucket::{Deltas, Grant, add};
use crate::{Error, Result};

impl Lease {
    /// Takes more tokens, if they are there: a real conditional write, at every charge, under the limits and the policy
    /// that the call came with. What a policy lets pass while the table cannot be reached is not counted, and
    /// [`admission`](Lease::admission) tells so.
    ///
    /// ```
    /// use zae_limiter::{Error, Limit, RateLimiter};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// # let limiter = RateLimiter::embedded().default_limits([Limit::per_hour("tph", 1_000)?]).await?;
    /// let mut lease = limiter.acquire("user-1", "gpt-4").consume("tph", 600).await?;
    /// lease.consume("tph", 300).await?; // the next part of a streamed answer
    /// let refused = lease.consume("tph", 300).await;
    /// assert!(matches!(refused, Err(Error::Refused(_))), "the lease keeps its 900");
    /// lease.commit().await?;
    /// # Ok(()) }
    /// ```
    pub async fn consume(&mut self, limit: impl AsRef<str>, tokens: u64) -> Result<()> {
        let name = LimitName::from_stored(limit.as_ref())?;
        let amount = Tokens::new(tokens)
            .map_err(|error| Error::invalid("amount", tokens.to_string(), error.to_string()))?
            .millis();
        if amount == 0 {
            return Err(Error::invalid(
                "amount",
                "0",
                "at least one token must be consumed",
            ));
        }
        let buckets = self.buckets.clone();
        let _inside = buckets.enter()?;
        if self.is_counted() {
            match self.take_more(&name, amount).await {
                Err(error) if error.is_unavailable() && self.policy() == OnUnavailable::Allow => {
                    self.take_own(&name, amount, &error)?;
                    self.admission = Admission::PartlyCounted;
                    return Ok(());
                }
                result => return result,
            }
        }
        if self.own.is_some() {
            let full = buckets.shared().unavailable("too many buckets are in use");
            self.take_own(&name, amount, &full)?;
        }
        add(self.uncounted.get_or_insert_default(), &name, amount);
        Ok(())
    }

    fn policy(&self) -> OnUnavailable {
        let BucketKey { entity, resource } = self.key();
        let stored = || self.buckets.shared().cache.policy(entity, resource).0;
        self.policy.unwrap_or_else(stored)
    }

    /// Takes from the process's own part of the limits, if it has one.
    fn take_own(&mut self, name: &LimitName, amount: i128, why: &Error) -> Result<()> {
        if let Some(own) = &mut self.own {
            return own.consume(name, amount, why);
        }
        let shared = self.buckets.shared();
        if let Some(share) = &shared.share {
            let more = Checked {
                entity: self.entity().clone(),
                resource: self.resource().clone(),
                amounts: smallvec![(name.clone(), amount)],
                limits: self.limits.clone(),
                policy: self.policy,
                known: None,
            };
            self.own = Some(Box::new(outage::take_share(shared, share, &more, why)?));
        }
        Ok(())
    }

    async fn take_more(&mut self, name: &LimitName, amount: i128) -> Result<()> {
        let amounts: Deltas = smallvec![(name.clone(), amount)];
        let admitted = async {
            let (BucketKey { entity, resource }, limits) = (self.key(), self.limits.as_ref());
            let charges = charge::charges(&self.buckets, entity, resource, &amounts, limits).await?;
            let grants = cascade::admit(&charges).await?;
            Ok((charges, grants))
        };
        let (charges, grants) = self.buckets.in_time(admitted).await?;
        for (charge, grant) in charges.into_iter().zip(grants) {
            self.hold(granted(charge, grant));
        }
        Ok(())
    }

    fn hold(&mut self, more: Grant) {
        let same = |held: &&mut Grant| Arc::ptr_eq(held.queue(), more.queue());
        match self.held.iter_mut().find(same) {
            Some(held) => held.absorb(more),
            None => self.held.push(more),
        }
    }
}

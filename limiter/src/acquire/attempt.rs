//! One attempt to admit a call, within the time budget.

use std::future::Future;
use std::sync::Arc;

use zae_limiter_schema::bucket::BucketKey;

use super::call::Call;
use super::cascade::{self, Grants};
use super::charge::{self, Charge};
use super::lease::Lease;
use crate::bucket::Buckets;
use crate::error::Unavailable;
use crate::store::WriteQueue;
use crate::{Error, Result};

impl Buckets {
    /// The buckets that a call concerns.
    pub(super) async fn charges(&self, call: &Call) -> Result<Vec<Charge>> {
        charge::charges(self, &call.key, &call.amounts, call.limits.as_ref()).await
    }

    /// The result, or that there was none within the time budget; at once, while the circuit breaker is open.
    pub(super) async fn in_time<T>(
        &self,
        key: &BucketKey,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let shared = self.shared();
        let started = shared.clock.elapsed();
        let queue = shared.store.write_queue();
        // Before there is a timer: while the breaker is open nothing is waited for.
        shared.check_breaker().await?;
        let spent = shared.clock.elapsed().saturating_sub(started);
        let left = shared.settings.time_budget.saturating_sub(spent);
        let late = |_| Err(shared.unavailable("no response within the time budget"));
        let result = tokio::time::timeout(left, work).await.unwrap_or_else(late);
        let result = result.map_err(|error| self.overloaded(key, queue, error));
        if result.as_ref().is_err_and(Error::is_unavailable) {
            shared.suspect(started);
        }
        result
    }

    /// A call that had no response while others had: it waited for them and not for the table. That is no outage, and no policy
    /// lets the call pass.
    fn overloaded(&self, key: &BucketKey, before: Option<WriteQueue>, error: Error) -> Error {
        match (before, self.shared().store.write_queue(), &error) {
            (Some(before), Some(after), Error::Unavailable(Unavailable::NoResponse { .. }))
                if after.responses > before.responses =>
            {
                Error::Overloaded {
                    entity: key.entity.clone(),
                    resource: key.resource.clone(),
                    what: "writes to the file at a time",
                    limit: after.at_a_time,
                }
            }
            _ => error,
        }
    }

    /// One try, within the time budget.
    pub(super) async fn acquire_now(self: &Arc<Self>, call: &Call) -> Result<Lease> {
        self.check_open()?;
        if let Some(lease) = self.spend_chunks(call) {
            return Ok(lease);
        }
        let admitted = async {
            let charges = self.charges(call).await?;
            let grants = cascade::admit(&charges).await?;
            Ok((charges, grants))
        };
        let (charges, grants) = self.in_time(&call.key, admitted).await?;
        Ok(Lease::counted(
            self.clone(),
            call,
            charges.into_iter().zip(grants),
        ))
    }

    /// While the circuit breaker is open, tokens taken ahead are spent: they are paid for.
    fn spend_chunks(self: &Arc<Self>, call: &Call) -> Option<Lease> {
        if call.limits.is_some() || self.shared().breaker_error().is_none() {
            return None;
        }
        let chain = self
            .shared()
            .cache
            .remembered_chain(&call.key.entity, &call.key.resource)?;
        let charges = charge::of_chain(self, chain, &call.key.resource, &call.amounts, None).ok()?;
        let grant = |charge: &Charge| match charge.amounts[..] {
            [] => Some(None),
            _ => charge
                .bucket
                .spend_chunk(&charge.amounts, &charge.config)
                .map(Some),
        };
        let grants = charges.iter().map(grant).collect::<Option<Grants>>()?;
        Some(Lease::counted(
            self.clone(),
            call,
            charges.into_iter().zip(grants),
        ))
    }
}

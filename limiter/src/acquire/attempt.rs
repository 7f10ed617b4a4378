//! One attempt to admit a call, within the time budget.

use std::future::Future;
use std::sync::Arc;

use super::call::Checked;
use super::cascade::{self, Grants};
use super::charge::{self, Charge};
use super::lease::Lease;
use crate::bucket::Buckets;
use crate::{Error, Result};

impl Buckets {
    pub(super) async fn charges(&self, checked: &Checked) -> Result<Vec<Charge>> {
        let Checked {
            entity,
            resource,
            amounts,
            limits,
            ..
        } = checked;
        if let Some(known) = &checked.known
            && let Some(charge) = charge::of_known(self, known, amounts)?
        {
            return Ok(vec![charge]);
        }
        charge::charges(self, entity, resource, amounts, limits.as_ref()).await
    }

    /// The result, or that there was none within the time budget; at once, while the circuit breaker is open.
    pub(super) async fn in_time<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        let shared = self.shared();
        let started = shared.clock.elapsed();
        // Before there is a timer: while the breaker is open nothing is waited for.
        shared.check_breaker().await?;
        let spent = shared.clock.elapsed().saturating_sub(started);
        let left = shared.settings.time_budget.saturating_sub(spent);
        let late = |_| Err(shared.unavailable("no answer within the time budget"));
        let result = tokio::time::timeout(left, work).await.unwrap_or_else(late);
        if result.as_ref().is_err_and(Error::is_unavailable) {
            shared.suspect(started);
        }
        result
    }

    /// One try, within the time budget.
    pub(super) async fn acquire_now(self: &Arc<Self>, checked: &Checked) -> Result<Lease> {
        self.check_open()?;
        if let Some(lease) = self.spend_while_unavailable(checked) {
            return Ok(lease);
        }
        let admitted = async {
            let charges = self.charges(checked).await?;
            let grants = cascade::admit(&charges).await?;
            Ok((charges, grants))
        };
        let (charges, grants) = self.in_time(admitted).await?;
        Ok(Lease::counted(
            self.clone(),
            checked,
            charges.into_iter().zip(grants),
        ))
    }

    /// While the circuit breaker is open, tokens in hand are spent: they are paid for.
    fn spend_while_unavailable(self: &Arc<Self>, checked: &Checked) -> Option<Lease> {
        if checked.limits.is_some() || self.shared().breaker_error().is_none() {
            return None;
        }
        let chain = self
            .shared()
            .cache
            .remembered_chain(&checked.entity, &checked.resource)?;
        let charges = charge::of_chain(self, chain, &checked.resource, &checked.amounts, None).ok()?;
        let grant = |charge: &Charge| match charge.amounts[..] {
            [] => Some(None),
            _ => charge.queue.spend_now(&charge.amounts, &charge.config).map(Some),
        };
        let grants = charges.iter().map(grant).collect::<Option<Grants>>()?;
        Some(Lease::counted(
            self.clone(),
            checked,
            charges.into_iter().zip(grants),
        ))
    }
}

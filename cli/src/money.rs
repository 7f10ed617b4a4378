//! Amounts as people read them: those of limits that count money in dollars.

use std::collections::BTreeMap;

use zae_limiter::money::{Prices, dollars};
use zae_limiter::{EntityId, LimitName, Repository, Resource};

use crate::output::grouped;

/// The limit of each resource that counts money.
#[derive(Debug, Clone, Default)]
pub(crate) struct MoneyLimits(BTreeMap<Resource, LimitName>);

impl MoneyLimits {
    /// By the prices that a call of the entity has read already. Without them it is the limit that counts money by default: a
    /// table that is unavailable does not matter here.
    pub(crate) async fn of_call<'a>(
        repository: &Repository,
        entity: &EntityId,
        resources: impl IntoIterator<Item = &'a Resource>,
    ) -> Self {
        let mut limits = BTreeMap::new();
        for resource in resources {
            if let Ok(resolved) = repository.resolve_limits(entity, resource).await {
                let limit = Prices::money_limit_of(resolved.prices.as_deref());
                limits.insert(resource.clone(), limit);
            }
        }
        Self(limits)
    }

    /// True if the limit counts money.
    pub(crate) fn has(&self, resource: &Resource, limit: &LimitName) -> bool {
        match self.0.get(resource) {
            Some(money) => money == limit,
            None => limit.as_str() == Prices::DEFAULT_MONEY_LIMIT,
        }
    }

    /// An amount of a limit.
    pub(crate) fn amount(&self, resource: &Resource, limit: &LimitName, amount: impl Into<i128>) -> String {
        if self.has(resource, limit) {
            dollars(amount.into())
        } else {
            grouped(amount)
        }
    }
}

//! One bucket now.

use zae_limiter::error::NotFound;
use zae_limiter::money::Prices;
use zae_limiter::{BucketState, ConfigOrigin, EntityId, Error, LimitName, LimitStatus, Mode, Resource};

use super::Loaded;
use crate::ui::Ui;

/// A bucket, and the limits that its calls have to pass.
#[derive(Debug, Clone)]
pub(crate) struct LiveBucket {
    pub(crate) entity: EntityId,
    pub(crate) resource: Resource,
    /// None before the first acquire.
    pub(crate) bucket: Option<BucketState>,
    /// The entity's own limits first, then those of the parents that are charged too.
    pub(crate) statuses: Vec<LimitStatus>,
    /// Whether they are enforced, and the level that says so.
    pub(crate) mode: (Mode, ConfigOrigin),
    /// The parent that may not use the resource, for whose sake calls are refused.
    pub(crate) disabled_parent: Option<EntityId>,
    /// The limit that counts money.
    pub(crate) money: Option<LimitName>,
}

pub(crate) async fn live_bucket(ui: &Ui, entity: &EntityId, resource: &Resource) -> Loaded<LiveBucket> {
    let limiter = &ui.app.limiter;
    let bucket = limiter.repository().get_bucket(entity, resource).await?;
    let (statuses, disabled) = match limiter.acquire(entity, resource).peek().await {
        Ok(peek) => {
            let disabled = peek.disabled_by().map(|(entity, _)| entity.clone());
            (peek.statuses().to_vec(), disabled)
        }
        Err(Error::NotFound(NotFound::Limits { .. })) => (vec![], None),
        Err(error) => return Err(error.into()),
    };
    let resolved = limiter.repository().resolve_limits(entity, resource).await?;
    Ok(LiveBucket {
        money: Some(Prices::money_limit_of(resolved.prices.as_deref())),
        mode: (resolved.mode, resolved.mode_from),
        disabled_parent: disabled.filter(|disabled| disabled != entity),
        entity: entity.clone(),
        resource: resource.clone(),
        bucket,
        statuses,
    })
}

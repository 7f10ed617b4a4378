//! The two registries: which resources have configuration. Each write is part of the transaction that makes it true.

use zae_limiter_dynamo::{Table, Update};
use zae_limiter_schema::keys;
use zae_limiter_schema::{AttributeValue, EntityId, Item, Resource, ResourceRegistry};

pub(crate) fn enter_resource(resource: &Resource) -> Update {
    Update::of(keys::resource_registry()).add(ResourceRegistry::ATTRIBUTE, one(resource))
}

pub(super) fn leave_resource(resource: &Resource) -> Update {
    Update::of(keys::resource_registry()).delete(ResourceRegistry::ATTRIBUTE, one(resource))
}

fn one(resource: &Resource) -> AttributeValue {
    AttributeValue::Ss(vec![resource.to_string()])
}

/// Counts one entity's configuration for each of these resources (or `_default_`) up or down.
pub(crate) fn count_entity_configs<'a>(resources: impl IntoIterator<Item = &'a str>, by: i32) -> Update {
    resources
        .into_iter()
        .fold(Update::of(keys::entity_config_registry()), |update, resource| {
            update.add(resource, AttributeValue::N(by.to_string()))
        })
}

/// The Python peer accepts ids that we do not.
pub(super) fn entity_of_partition(item: &Item) -> Option<EntityId> {
    let key = zae_limiter_dynamo::key_of(item)?.pk;
    let id = EntityId::parse(key.strip_prefix(keys::prefix::ENTITY).unwrap_or(&key));
    id.inspect_err(|error| tracing::warn!(%error, "an entity is passed over"))
        .ok()
}

/// Forgets a count that has come down to nothing. Readers pass over it anyway, so failing here is harmless.
pub(super) async fn drop_empty_counts(table: &Table, resource: Option<&str>) {
    let Some(resource) = resource else { return };
    let update = Update::of(keys::entity_config_registry())
        .remove(resource)
        .when(|p| {
            let name = p.name(resource);
            format!("{name} <= {}", p.value(AttributeValue::N("0".to_owned())))
        });
    if let Err(error) = table.update(update).await {
        tracing::debug!(%error, resource, "an empty count stays in the registry");
    }
}

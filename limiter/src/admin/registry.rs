//! The two registries: which resources have configuration. Each write is part of the transaction that makes it true.

use zae_limiter_dynamo::{Query, Sort, Update};
use zae_limiter_schema::keys;
use zae_limiter_schema::{AttributeValue, EntityConfigRegistry, EntityId, Item, Resource, ResourceRegistry};

use super::paging::Rows;
use crate::page::{Page, PageRequest};
use crate::{Repository, Result};

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

impl Repository {
    /// The entities that have configuration of their own for a resource (limits, or a policy alone), in order of their
    /// ids. Without a resource: those that have it for every resource. Invalid ids are skipped.
    ///
    /// ```
    /// use zae_limiter::{Limit, PageRequest};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// # let repository = zae_limiter::RateLimiter::embedded().build_repository().await?;
    /// repository.set_limits("user-1", "gpt-4", [Limit::per_minute("rpm", 100)?]).await?;
    /// let resource = "gpt-4".parse()?;
    /// let page = repository.list_entities_with_custom_limits(Some(&resource), &PageRequest::new(100)).await?;
    /// assert_eq!(page.items[0].as_str(), "user-1");
    /// # Ok(()) }
    /// ```
    pub async fn list_entities_with_custom_limits(
        &self,
        resource: Option<&Resource>,
        page: &PageRequest,
    ) -> Result<Page<EntityId>> {
        let resource = resource.map_or(
            zae_limiter_schema::ConfigLevel::DEFAULT_RESOURCE,
            Resource::as_str,
        );
        let query = Query::index(keys::GSI3, keys::gsi3_partition(resource), Sort::All);
        self.page_of(&query, Rows::AsTheyAre, page, |item| {
            Ok(entity_of_partition(item))
        })
        .await
    }
}

/// The Python peer accepts ids that we do not.
fn entity_of_partition(item: &Item) -> Option<EntityId> {
    let key = zae_limiter_dynamo::key_of(item)?.pk;
    let id = EntityId::parse(key.strip_prefix(keys::prefix::ENTITY).unwrap_or(&key));
    id.inspect_err(|error| tracing::warn!(%error, "an entity is passed over"))
        .ok()
}

impl Repository {
    /// Forgets a count that has come down to nothing. Readers pass over it anyway, so failing here is harmless.
    pub(super) async fn drop_empty_counts(&self, resource: Option<&str>) {
        let Some(resource) = resource else { return };
        let update = Update::of(keys::entity_config_registry())
            .remove(resource)
            .when(|p| {
                let name = p.name(resource);
                format!("{name} <= {}", p.value(AttributeValue::N("0".to_owned())))
            });
        if let Err(error) = self.inner.table.update(update).await {
            tracing::debug!(%error, resource, "an empty count stays in the registry");
        }
    }

    /// The resources that have defaults, sorted: limits, or a policy alone.
    ///
    /// ```
    /// use zae_limiter::Limit;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// # let repository = zae_limiter::RateLimiter::embedded().build_repository().await?;
    /// repository.set_resource_defaults("gpt-4", [Limit::per_minute("rpm", 100)?]).await?;
    /// assert_eq!(repository.list_resources_with_defaults().await?, ["gpt-4"]);
    /// # Ok(()) }
    /// ```
    pub async fn list_resources_with_defaults(&self) -> Result<Vec<String>> {
        let item = self.inner.table.get(&keys::resource_registry(), true).await?;
        let registry = item.map(|item| ResourceRegistry::from_item(&item)).transpose()?;
        Ok(registry.unwrap_or_default().0.into_iter().collect())
    }

    /// The resources for which entities have configuration of their own, sorted: limits, or a policy alone.
    /// `_default_` stands for what an entity has on every resource.
    ///
    /// ```
    /// use zae_limiter::Limit;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// # let repository = zae_limiter::RateLimiter::embedded().build_repository().await?;
    /// repository.set_limits("user-1", "gpt-4", [Limit::per_minute("rpm", 100)?]).await?;
    /// repository.set_default_limits("user-1", [Limit::per_minute("rpm", 10)?]).await?;
    /// assert_eq!(repository.list_resources_with_entity_configs().await?, ["_default_", "gpt-4"]);
    /// # Ok(()) }
    /// ```
    pub async fn list_resources_with_entity_configs(&self) -> Result<Vec<String>> {
        let item = self
            .inner
            .table
            .get(&keys::entity_config_registry(), true)
            .await?;
        let registry = item
            .map(|item| EntityConfigRegistry::from_item(&item))
            .transpose()?
            .unwrap_or_default();
        Ok(registry.resources().map(str::to_owned).collect())
    }
}

//! A change of an entity, and how it merges with the changes of other writers.

use std::collections::BTreeMap;

use serde_json::Value;
use zae_limiter_schema::{AttributeValue, EntityId, EntityRecord, Metadata};

use super::bucket_change::checked_reason;
use super::metadata::{check_size, to_metadata};
use super::new_entity::checked_name;
use super::setting::Setting;
use crate::Result;

/// What to change about an entity. Everything that it does not mention stays, also if another writer changes it at the
/// same time.
///
/// ```
/// use zae_limiter::EntityChange;
///
/// let change = EntityChange::new().parent("project-2").cascade(true).metadata([("tier", "gold")]);
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
#[must_use = "a change does nothing until it is passed to update_entity"]
pub struct EntityChange {
    name: Option<String>,
    parent: Setting<String>,
    cascade: Option<bool>,
    /// By key: the new value, or none to remove it.
    metadata: BTreeMap<String, Option<Value>>,
    /// Whether metadata that is not mentioned is removed.
    replaces_metadata: bool,
    reason: Option<String>,
}

impl EntityChange {
    /// Changes nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the name for people.
    pub fn name(mut self, name: impl AsRef<str>) -> Self {
        self.name = Some(name.as_ref().to_owned());
        self
    }

    /// Sets the parent, which must exist.
    pub fn parent(mut self, parent: impl AsRef<str>) -> Self {
        self.parent = Setting::To(parent.as_ref().to_owned());
        self
    }

    /// Removes the parent.
    pub fn without_parent(mut self) -> Self {
        self.parent = Setting::Nothing;
        self
    }

    /// Why, for the audit event: at most 1,000 bytes.
    pub fn reason(mut self, reason: impl Into<String>) -> Self {
        self.reason = Some(reason.into());
        self
    }

    /// The reason, as a detail of the audit event.
    pub(super) fn reason_detail(&self) -> Result<Option<(String, AttributeValue)>> {
        let reason = checked_reason(self.reason.as_deref())?;
        Ok(reason.map(|reason| ("reason".to_owned(), reason)))
    }

    /// True if it changes nothing.
    pub(super) fn is_nothing(&self) -> bool {
        let reason = self.reason.clone();
        *self
            == Self {
                reason,
                ..Self::default()
            }
    }

    /// Sets whether its acquires are charged to the parent too.
    pub fn cascade(mut self, cascade: bool) -> Self {
        self.cascade = Some(cascade);
        self
    }

    /// Sets these metadata entries. The other entries stay.
    pub fn metadata<K: Into<String>, V: Into<Value>>(
        mut self,
        entries: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        self.metadata.extend(
            entries
                .into_iter()
                .map(|(key, value)| (key.into(), Some(value.into()))),
        );
        self
    }

    /// Removes the metadata entries with these keys, if they exist.
    pub fn without_metadata<K: Into<String>>(mut self, keys: impl IntoIterator<Item = K>) -> Self {
        self.metadata
            .extend(keys.into_iter().map(|key| (key.into(), None)));
        self
    }

    /// Replaces all metadata with these entries. Without entries it removes all metadata.
    ///
    /// ```
    /// use zae_limiter::{EntityChange, NewEntity};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// # let repository = zae_limiter::RateLimiter::embedded().build_repository().await?;
    /// repository.create_entity(NewEntity::new("user-1").metadata([("tier", "gold"), ("team", "a")])).await?;
    /// let change = EntityChange::new().replace_metadata([("tier", "silver")]);
    /// let user = repository.update_entity("user-1", change).await?;
    /// assert_eq!(user.metadata.keys().collect::<Vec<_>>(), ["tier"]);
    /// # Ok(()) }
    /// ```
    pub fn replace_metadata<K: Into<String>, V: Into<Value>>(
        mut self,
        entries: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        self.metadata.clear();
        self.replaces_metadata = true;
        self.metadata(entries)
    }

    /// The entity after the change. It has the next version if the change makes a difference.
    pub(super) fn apply(&self, present: &EntityRecord) -> Result<EntityRecord> {
        let mut record = present.clone();
        if let Some(name) = &self.name {
            record.name = checked_name(name.clone())?;
        }
        record.parent = match &self.parent {
            Setting::Keep => record.parent,
            Setting::Nothing => None,
            Setting::To(parent) => Some(EntityId::parse(parent)?),
        };
        record.cascade = self.cascade.unwrap_or(record.cascade);
        record.metadata = self.metadata_after(record.metadata)?;
        if record != *present {
            record.version = present.version.saturating_add(1);
        }
        Ok(record)
    }

    fn metadata_after(&self, present: Metadata) -> Result<Metadata> {
        if self.metadata.is_empty() && !self.replaces_metadata {
            return Ok(present);
        }
        let set = self
            .metadata
            .iter()
            .filter_map(|(key, value)| Some((key.clone(), value.clone()?)));
        let set = to_metadata(set.collect())?;
        if self.replaces_metadata {
            return Ok(set);
        }
        let mut metadata = present;
        metadata.retain(|key, _| !self.metadata.contains_key(key));
        metadata.extend(set);
        check_size(&metadata)?;
        Ok(metadata)
    }

    /// The field that this change and another writer have set to different values since `first` was read, if there is
    /// one. Changes of different fields, or of different metadata entries, merge.
    pub(super) fn conflict(
        &self,
        first: &EntityRecord,
        present: &EntityRecord,
        wanted: &EntityRecord,
    ) -> Option<String> {
        if self.name.is_some() && differ(&first.name, &present.name, &wanted.name) {
            return Some("name".to_owned());
        }
        if self.parent != Setting::Keep && differ(&first.parent, &present.parent, &wanted.parent) {
            return Some("parent".to_owned());
        }
        if self.cascade.is_some() && differ(&first.cascade, &present.cascade, &wanted.cascade) {
            return Some("cascade flag".to_owned());
        }
        if self.replaces_metadata {
            return differ(&first.metadata, &present.metadata, &wanted.metadata)
                .then(|| "metadata".to_owned());
        }
        let key = self.metadata.keys().find(|key| {
            let [first, present, wanted] = [first, present, wanted].map(|record| record.metadata.get(*key));
            differ(&first, &present, &wanted)
        })?;
        Some(format!("metadata entry {key:?}"))
    }
}

/// Whether another writer has changed a value, and not to the one that is wanted.
fn differ<T: PartialEq>(first: &T, present: &T, wanted: &T) -> bool {
    first != present && present != wanted
}

#[cfg(test)]
mod tests;

//! An entity that is to be created.

use serde_json::Value;
use zae_limiter_schema::{EntityId, EntityRecord, Timestamp, Unknown};

use super::metadata::to_metadata;
use crate::error::Conflict;
use crate::{Error, Result};

/// An entity that is to be created.
///
/// ```
/// use zae_limiter::NewEntity;
///
/// let key = NewEntity::new("key-1")
///     .parent("project-1")
///     .cascade(true)
///     .name("Build server")
///     .metadata([("tier", "gold")]);
/// ```
#[derive(Debug, Clone, PartialEq)]
#[must_use = "an entity is not created until it is passed to create_entity"]
pub struct NewEntity {
    id: String,
    parent: Option<String>,
    cascade: bool,
    name: Option<String>,
    metadata: Vec<(String, Value)>,
}

impl NewEntity {
    /// An entity with this id, without a parent.
    pub fn new(id: impl AsRef<str>) -> Self {
        Self {
            id: id.as_ref().to_owned(),
            parent: None,
            cascade: false,
            name: None,
            metadata: vec![],
        }
    }

    /// The entity above it, which must exist.
    pub fn parent(mut self, parent: impl AsRef<str>) -> Self {
        self.parent = Some(parent.as_ref().to_owned());
        self
    }

    /// Whether its calls are charged to the parent as well. The default is false.
    pub fn cascade(mut self, cascade: bool) -> Self {
        self.cascade = cascade;
        self
    }

    /// A name for people. The default is the id.
    pub fn name(mut self, name: impl AsRef<str>) -> Self {
        self.name = Some(name.as_ref().to_owned());
        self
    }

    /// Metadata: texts, numbers, flags, lists and maps. Up to 100 KiB in all, and 30 levels of lists and maps.
    pub fn metadata<K: Into<String>, V: Into<Value>>(
        mut self,
        entries: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        self.metadata
            .extend(entries.into_iter().map(|(key, value)| (key.into(), value.into())));
        self
    }

    pub(super) fn check(self, now: Timestamp) -> Result<EntityRecord> {
        let id = EntityId::parse(&self.id)?;
        let parent = self.parent.map(EntityId::parse).transpose()?;
        if parent.as_ref() == Some(&id) {
            return Err(Error::Conflict(Conflict::ParentCycle {
                entity: id.clone(),
                parent: id,
            }));
        }
        Ok(EntityRecord {
            name: checked_name(self.name.unwrap_or_else(|| id.to_string()))?,
            parent,
            cascade: self.cascade,
            metadata: to_metadata(self.metadata)?,
            // As it is stored.
            created_at: Timestamp::from_seconds(now.seconds()),
            version: 1,
            unknown: Unknown::new(),
            id,
        })
    }
}

pub(super) fn checked_name(name: String) -> Result<String> {
    const MOST: usize = 256;
    if name.trim().is_empty() {
        return Err(Error::invalid("name", name, "it must not be empty"));
    }
    if name.chars().count() > MOST {
        return Err(Error::invalid(
            "name",
            name,
            format!("it must have at most {MOST} characters"),
        ));
    }
    Ok(name)
}

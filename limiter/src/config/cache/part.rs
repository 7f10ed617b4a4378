//! The parts that configuration is read and kept in.

use std::collections::HashMap;
use std::sync::Arc;

use zae_limiter_schema::bucket::BucketKey;
use zae_limiter_schema::keys::{self, Key};
use zae_limiter_schema::{ConfigLevel, ConfigRecord, EntityRecord, Item, Malformed, Resource};

use super::BucketImage;
use crate::config::resolution::{LevelConfig, OwnConfig};
use crate::store::ItemsRead;
use crate::{Error, Result};

/// What is read and kept as one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Part {
    /// A level that all entities share: the system or a resource.
    Shared(ConfigLevel),
    /// An entity's record and its two configurations. The bucket is read along with them.
    Own(BucketKey),
}

impl Part {
    pub(super) fn system() -> Self {
        Self::Shared(ConfigLevel::System)
    }

    pub(super) fn resource(resource: &Resource) -> Self {
        Self::Shared(ConfigLevel::Resource(resource.clone()))
    }

    /// The items that it is made of.
    pub(super) fn keys(&self) -> Vec<Key> {
        match self {
            Self::Shared(level) => vec![keys::config(level)],
            Self::Own(key) => {
                let [entity, entity_default] = own_levels(key);
                vec![
                    keys::entity_meta(&key.entity),
                    keys::config(&entity),
                    keys::config(&entity_default),
                    key.key(),
                ]
            }
        }
    }
}

/// The levels that belong to an entity alone, most specific first.
pub(super) fn own_levels(key: &BucketKey) -> [ConfigLevel; 2] {
    [
        ConfigLevel::Entity(key.entity.clone(), key.resource.clone()),
        ConfigLevel::EntityDefault(key.entity.clone()),
    ]
}

/// What belongs to an entity, and its bucket.
#[derive(Debug, Clone)]
pub(super) struct OwnRead {
    pub(super) config: Arc<OwnConfig>,
    pub(super) bucket: BucketImage,
}

/// Parts as they were read, each by itself: one that is malformed does not spoil the others.
#[derive(Debug, Default)]
pub(super) struct PartsRead {
    pub(super) shared: HashMap<ConfigLevel, Result<Arc<LevelConfig>>>,
    pub(super) own: HashMap<BucketKey, Result<OwnRead>>,
}

impl PartsRead {
    /// The parts, decoded.
    pub(super) fn decode<'a>(parts: impl Iterator<Item = &'a Part>, read: &Result<ItemsRead>) -> Self {
        let mut decoded = Self::default();
        for part in parts {
            match part {
                Part::Shared(level) => {
                    let config = record(read, &keys::config(level)).map(Arc::new);
                    decoded.shared.insert(level.clone(), config);
                }
                Part::Own(key) => {
                    decoded.own.insert(key.clone(), own(read, key));
                }
            }
        }
        decoded
    }

    /// Takes over a part that another caller has read.
    pub(super) fn copy(&mut self, other: &Self, part: &Part) {
        match part {
            Part::Shared(level) => {
                let read = other.shared.get(level).map(|read| (level.clone(), read.clone()));
                self.shared.extend(read);
            }
            Part::Own(key) => {
                let read = other.own.get(key).map(|read| (key.clone(), read.clone()));
                self.own.extend(read);
            }
        }
    }
}

fn own(read: &Result<ItemsRead>, key: &BucketKey) -> Result<OwnRead> {
    let [entity, entity_default] = own_levels(key);
    let decode = |item: &Item| EntityRecord::from_item(item);
    let config = OwnConfig {
        entity: record(read, &keys::config(&entity))?,
        entity_default: record(read, &keys::config(&entity_default))?,
        position: item(read, &keys::entity_meta(&key.entity), decode)?.map(Into::into),
    };
    let bucket = match item(read, &key.key(), |item| Ok(Arc::new(item.clone()))) {
        Ok(Some(item)) => BucketImage::Present(item),
        Ok(None) => BucketImage::Absent,
        // The next caller that needs it reads it.
        Err(_) => BucketImage::NotRead,
    };
    Ok(OwnRead {
        config: Arc::new(config),
        bucket,
    })
}

fn record(read: &Result<ItemsRead>, key: &Key) -> Result<LevelConfig> {
    let record = item(read, key, ConfigRecord::from_item)?;
    Ok(record.map(Into::into).unwrap_or_default())
}

fn item<T>(
    read: &Result<ItemsRead>,
    key: &Key,
    decode: impl FnOnce(&Item) -> Result<T, Malformed>,
) -> Result<Option<T>> {
    let read = read.as_ref().map_err(Error::clone)?;
    if let Some(error) = read.unread.get(key) {
        return Err(error.clone());
    }
    Ok(read.found.get(key).map(decode).transpose()?)
}

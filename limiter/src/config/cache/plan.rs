//! What a lookup has in memory, what it must read, and what becomes of both. Pure.

use std::sync::Arc;

use zae_limiter_schema::bucket::BucketKey;
use zae_limiter_schema::{ConfigLevel, Resource};

use super::BucketImage;
use super::flight::Wanted;
use super::part::{OwnRead, Part, PartsRead};
use super::timed::{Age, Timed};
use crate::config::resolution::{LevelConfig, OwnConfig, SharedConfig};
use crate::error::Unavailable;
use crate::{Error, Result};

/// What memory has of one part.
#[derive(Debug, Clone)]
pub(super) enum CachedPart<T> {
    /// It can be used.
    Known { value: T, stale: bool },
    /// It can be used if it cannot be read.
    Expired(T),
    /// It must be read.
    Missing,
}

impl<T: Clone> CachedPart<T> {
    /// What is kept, about to be used or reloaded.
    pub(super) fn of(kept: Option<&mut Timed<T>>, now: std::time::Duration) -> Self {
        let Some(kept) = kept else { return Self::Missing };
        let value = kept.value.clone();
        match kept.age(now) {
            Age::Fresh => Self::Known { value, stale: false },
            Age::Stale => Self::Known { value, stale: true },
            Age::Expired => {
                kept.reload_starts(now);
                Self::Expired(value)
            }
        }
    }

    fn wanted(&self, part: impl FnOnce() -> Part) -> Option<Wanted> {
        let optional = match self {
            Self::Known { .. } => return None,
            Self::Expired(_) => true,
            Self::Missing => false,
        };
        Some(Wanted {
            part: part(),
            optional,
        })
    }

    /// The value, and whether it is stale.
    fn value(&self, read: Option<Result<T>>) -> Result<(T, bool)> {
        match (self, read) {
            (Self::Known { value, stale }, _) => Ok((value.clone(), *stale)),
            (Self::Expired(old), Some(Err(error))) if error.is_unavailable() => Ok((old.clone(), true)),
            (_, Some(read)) => Ok((read?, false)),
            (Self::Expired(old), None) => Ok((old.clone(), true)),
            (Self::Missing, None) => Err(not_read()),
        }
    }
}

/// A part that was not requested.
pub(super) fn not_read() -> Error {
    Error::Unavailable(Unavailable::NoResponse {
        operation: "BatchGetItem",
        table: String::new(),
        reason: "the configuration was not read".to_owned(),
        within: std::time::Duration::ZERO,
    })
}

/// A lookup for one or more entities on a resource.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) resource_name: Resource,
    pub(super) system: CachedPart<Arc<LevelConfig>>,
    pub(super) resource: CachedPart<Arc<LevelConfig>>,
    pub(super) own: Vec<(BucketKey, CachedPart<Arc<OwnConfig>>)>,
}

/// Everything that decides about one entity.
#[derive(Debug)]
pub(super) struct Decided {
    pub(super) own: Arc<OwnConfig>,
    pub(super) shared: SharedConfig,
    pub(super) bucket: BucketImage,
    pub(super) stale: bool,
}

impl Plan {
    /// The parts to read.
    pub(super) fn wanted(&self) -> Vec<Wanted> {
        let shared = [
            self.system.wanted(Part::system),
            self.resource.wanted(|| Part::resource(&self.resource_name)),
        ];
        let own = self
            .own
            .iter()
            .map(|(key, cached)| cached.wanted(|| Part::Own(key.clone())));
        shared.into_iter().chain(own).flatten().collect()
    }

    /// What decides about each entity, now that the parts were read.
    pub(super) fn fill(&self, read: &PartsRead) -> Vec<(BucketKey, Result<Decided>)> {
        let shared = self.shared(read);
        let decided = self.own.iter().map(|(key, cached)| {
            let (shared, shared_stale) = shared.clone()?;
            let own = read.own.get(key).cloned();
            let bucket = match &own {
                Some(Ok(OwnRead { bucket, .. })) => bucket.clone(),
                _ => BucketImage::NotRead,
            };
            let (own, own_stale) = cached.value(own.map(|own| own.map(|own| own.config)))?;
            Ok(Decided {
                own,
                shared,
                bucket,
                stale: shared_stale || own_stale,
            })
        });
        let keys = self.own.iter().map(|(key, _)| key.clone());
        keys.zip(decided).collect()
    }

    fn shared(&self, read: &PartsRead) -> Result<(SharedConfig, bool)> {
        let level = |level| read.shared.get(&level).cloned();
        let (system, system_stale) = self.system.value(level(ConfigLevel::System))?;
        let resource = ConfigLevel::Resource(self.resource_name.clone());
        let (resource, resource_stale) = self.resource.value(level(resource))?;
        let shared = SharedConfig { resource, system };
        Ok((shared, system_stale || resource_stale))
    }
}

//! Looking up an entity and the parents that its acquires count on.

use std::collections::HashMap;

use zae_limiter_schema::EntityId;
use zae_limiter_schema::bucket::BucketKey;

use super::{ConfigCache, Lookup, bucket_key};
use crate::config::MAX_PARENTS;
use crate::error::Conflict;
use crate::{Error, Result};

impl ConfigCache {
    /// What applies to the entity and, as far as it cascades, to its parents. A chain that is longer than
    /// [`MAX_PARENTS`] or contains a cycle, which only other writers can store, is refused: a client that charged a part of it
    /// would admit more than the other levels allow. Levels of the tree that were seen before are read together; each entity's
    /// record decides which of them count; whether the first one's parent does, the call may decide.
    pub(crate) async fn resolve_chain(
        &self,
        BucketKey { entity, resource }: &BucketKey,
        cascade: Option<bool>,
    ) -> Result<Vec<(EntityId, Lookup)>> {
        let mut chain: Vec<(EntityId, Lookup)> = Vec::new();
        let mut read: HashMap<BucketKey, Result<Lookup>> = HashMap::new();
        let mut next = Some(entity.clone());
        while let Some(entity) = next {
            refuse_endless(&chain, &entity)?;
            let cascade = cascade.filter(|_| chain.is_empty());
            let key = bucket_key(&entity, resource);
            let known = match read.remove(&key) {
                Some(lookup) => Some(lookup?),
                None => self.remembered(&key),
            };
            let lookup = if let Some(lookup) = known {
                lookup
            } else {
                let parents = match cascade {
                    Some(false) => 0,
                    _ => MAX_PARENTS - chain.len(),
                };
                let group = self.with_likely_parents(key.clone(), parents);
                read.extend(self.load(group, resource).await);
                match read.remove(&key) {
                    Some(lookup) => lookup?,
                    None => self.resolve(&entity, resource).await?,
                }
            };
            next = lookup.resolved().charged_parent(cascade).cloned();
            chain.push((entity, lookup));
        }
        Ok(chain)
    }

    /// The same from memory alone; nothing if a level is not there or has expired.
    pub(crate) fn remembered_chain(
        &self,
        BucketKey { entity, resource }: &BucketKey,
        cascade: Option<bool>,
    ) -> Option<Vec<(EntityId, Lookup)>> {
        let mut chain = Vec::new();
        let mut next = Some(entity.clone());
        while let Some(entity) = next.filter(|_| chain.len() <= MAX_PARENTS) {
            let lookup = self.remembered(&bucket_key(&entity, resource))?;
            let cascade = cascade.filter(|_| chain.is_empty());
            next = lookup.resolved().charged_parent(cascade).cloned();
            chain.push((entity, lookup));
        }
        Some(chain)
    }

    /// The entity, and those of the parents it had when it was last seen that must be read too.
    fn with_likely_parents(&self, key: BucketKey, most: usize) -> Vec<BucketKey> {
        let now = self.clock.elapsed();
        let state = self.state();
        let mut seen = vec![key];
        while let Some(parent) = seen.last().and_then(|last| state.parent_hint(last)) {
            let parent = bucket_key(parent, &seen[0].resource);
            if seen.len() > most || seen.contains(&parent) {
                break;
            }
            seen.push(parent);
        }
        let mut group = seen.into_iter();
        let first = group.next();
        let others = group.filter(|key| state.lacks_own(key, now));
        first.into_iter().chain(others).collect()
    }
}

/// Refuses the next entity of a chain if it closes a cycle or is one too many.
fn refuse_endless(chain: &[(EntityId, Lookup)], next: &EntityId) -> Result<()> {
    let (Some((first, _)), Some((last, _))) = (chain.first(), chain.last()) else {
        return Ok(());
    };
    if chain.iter().any(|(seen, _)| seen == next) {
        return Err(Error::Conflict(Conflict::ParentCycle {
            entity: next.clone(),
            parent: last.clone(),
        }));
    }
    if chain.len() > MAX_PARENTS {
        return Err(Error::Conflict(Conflict::TooManyParents {
            entity: first.clone(),
            parent: next.clone(),
            limit: MAX_PARENTS,
        }));
    }
    Ok(())
}

//! The policies that were last seen at each level, for when nothing can be read.

use std::collections::HashMap;

use zae_limiter_schema::{ConfigLevel, EntityId, OnUnavailable, Resource};

use crate::config::resolution::Source;
use crate::store::LoadedConfig;

/// So many policies are remembered besides the system's; one more, and any of them is forgotten.
const MOST_POLICIES: usize = 10_000;

/// Only levels that have a policy are in here.
#[derive(Debug, Default)]
pub(super) struct LastKnown {
    system: Option<OnUnavailable>,
    levels: HashMap<ConfigLevel, OnUnavailable>,
}

impl LastKnown {
    pub(super) fn remember(&mut self, entity: &EntityId, resource: &Resource, loaded: &LoadedConfig) {
        let records = [
            &loaded.entity,
            &loaded.entity_default,
            &loaded.resource,
            &loaded.system,
        ];
        for (level, record) in ConfigLevel::chain(entity, resource).into_iter().zip(records) {
            self.note(level, record.as_ref().and_then(|record| record.on_unavailable));
        }
    }

    /// What a level says now.
    pub(super) fn note(&mut self, level: ConfigLevel, policy: Option<OnUnavailable>) {
        match (level, policy) {
            (ConfigLevel::System, policy) => self.system = policy,
            (level, None) => {
                self.levels.remove(&level);
            }
            (level, Some(policy)) => {
                if self.levels.len() >= MOST_POLICIES
                    && !self.levels.contains_key(&level)
                    && let Some(any) = self.levels.keys().next().cloned()
                {
                    self.levels.remove(&any);
                }
                self.levels.insert(level, policy);
            }
        }
    }

    pub(super) fn forget_entity(&mut self, entity: &EntityId) {
        self.levels.retain(|level, _| level.entity() != Some(entity));
    }

    /// The policy of the most specific level that has one.
    pub(super) fn policy(&self, entity: &EntityId, resource: &Resource) -> Option<(OnUnavailable, Source)> {
        let stored = |level: &ConfigLevel| match level {
            ConfigLevel::System => self.system,
            level => self.levels.get(level).copied(),
        };
        ConfigLevel::chain(entity, resource)
            .iter()
            .find_map(|level| Some((stored(level)?, Source::from(level.kind()))))
    }
}

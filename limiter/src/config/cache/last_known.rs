//! The policies that were last seen at each level, for when nothing can be read.

use std::collections::HashMap;

use zae_limiter_schema::{ConfigLevel, EntityId, OnUnavailable, Resource};

use super::part::{PartsRead, own_levels};
use crate::config::resolution::ConfigOrigin;

/// At most this many policies are remembered besides the system's; beyond that, an arbitrary one is dropped.
const MAX_POLICIES: usize = 10_000;

/// Only levels that have a policy are in here.
#[derive(Debug, Default)]
pub(super) struct LastKnown {
    system: Option<OnUnavailable>,
    levels: HashMap<ConfigLevel, OnUnavailable>,
}

impl LastKnown {
    pub(super) fn remember(&mut self, read: &PartsRead) {
        for (level, config) in &read.shared {
            if let Ok(config) = config {
                self.note(level.clone(), config.on_unavailable);
            }
        }
        for (key, own) in &read.own {
            if let Ok(own) = own {
                let [entity, entity_default] = own_levels(key);
                self.note(entity, own.config.entity.on_unavailable);
                self.note(entity_default, own.config.entity_default.on_unavailable);
            }
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
                if self.levels.len() >= MAX_POLICIES
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
    pub(super) fn policy(
        &self,
        entity: &EntityId,
        resource: &Resource,
    ) -> Option<(OnUnavailable, ConfigOrigin)> {
        let stored = |level: &ConfigLevel| match level {
            ConfigLevel::System => self.system,
            level => self.levels.get(level).copied(),
        };
        ConfigLevel::chain(entity, resource)
            .iter()
            .find_map(|level| Some((stored(level)?, ConfigOrigin::from(level.kind()))))
    }
}

//! The policies and modes that were last seen at each level, for when nothing can be read.

use std::collections::HashMap;

use zae_limiter_schema::{ConfigLevel, EntityId, Mode, OnUnavailable, Resource};

use super::part::{PartsRead, own_levels};
use crate::config::resolution::{ConfigOrigin, Switches};

/// At most this many levels are remembered besides the system's; beyond that, an arbitrary one is dropped.
const MAX_LEVELS: usize = 10_000;

/// Only levels that have a policy or a mode are in here.
#[derive(Debug, Default)]
pub(super) struct LastKnown {
    system: Switches,
    levels: HashMap<ConfigLevel, Switches>,
}

impl LastKnown {
    pub(super) fn remember(&mut self, read: &PartsRead) {
        for (level, config) in &read.shared {
            if let Ok(config) = config {
                self.note(level.clone(), config.switches);
            }
        }
        for (key, own) in &read.own {
            if let Ok(own) = own {
                let [entity, entity_default] = own_levels(key);
                self.note(entity, own.config.entity.switches);
                self.note(entity_default, own.config.entity_default.switches);
            }
        }
    }

    /// What a level says now.
    pub(super) fn note(&mut self, level: ConfigLevel, switches: Switches) {
        match level {
            ConfigLevel::System => self.system = switches,
            level if switches == Switches::default() => {
                self.levels.remove(&level);
            }
            level => {
                if self.levels.len() >= MAX_LEVELS
                    && !self.levels.contains_key(&level)
                    && let Some(any) = self.levels.keys().next().cloned()
                {
                    self.levels.remove(&any);
                }
                self.levels.insert(level, switches);
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
        self.first(entity, resource, |switches| switches.on_unavailable)
    }

    /// The mode of the most specific level that has one.
    pub(super) fn mode(&self, entity: &EntityId, resource: &Resource) -> Option<(Mode, ConfigOrigin)> {
        self.first(entity, resource, |switches| switches.mode)
    }

    fn first<T>(
        &self,
        entity: &EntityId,
        resource: &Resource,
        wanted: impl Fn(Switches) -> Option<T>,
    ) -> Option<(T, ConfigOrigin)> {
        let stored = |level: &ConfigLevel| match level {
            ConfigLevel::System => Some(self.system),
            level => self.levels.get(level).copied(),
        };
        ConfigLevel::chain(entity, resource)
            .iter()
            .find_map(|level| Some((wanted(stored(level)?)?, ConfigOrigin::from(level.kind()))))
    }
}

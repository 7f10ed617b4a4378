//! The policies that were last seen at resource and system level, for entities that were never seen.

use std::collections::HashMap;

use zae_limiter_schema::{OnUnavailable, Resource};

use crate::backend::LoadedConfig;
use crate::resolution::Source;

/// More resources than this are not remembered; their system policy still is.
const MOST_RESOURCES: usize = 1_000;

#[derive(Debug, Default)]
pub(super) struct LastKnown {
    system: Option<OnUnavailable>,
    resources: HashMap<Resource, OnUnavailable>,
}

impl LastKnown {
    pub(super) fn remember(&mut self, resource: &Resource, loaded: &LoadedConfig) {
        self.system = loaded.system.as_ref().and_then(|record| record.on_unavailable);
        match loaded.resource.as_ref().and_then(|record| record.on_unavailable) {
            Some(policy)
                if self.resources.len() < MOST_RESOURCES || self.resources.contains_key(resource) =>
            {
                self.resources.insert(resource.clone(), policy);
            }
            Some(_) => {}
            None => {
                self.resources.remove(resource);
            }
        }
    }

    pub(super) fn policy(&self, resource: &Resource) -> Option<(OnUnavailable, Source)> {
        let resource = self
            .resources
            .get(resource)
            .map(|policy| (*policy, Source::Resource));
        resource.or(self.system.map(|policy| (policy, Source::System)))
    }
}

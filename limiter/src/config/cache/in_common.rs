//! What entities have in common is in memory once: most have no configuration of their own, or that of their parent's other
//! children.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use lru::LruCache;
use zae_limiter_schema::Resource;

use super::state::{CachedResolution, put_bounded};
use crate::config::resolution::OwnConfig;

/// At most this many are shared; the one that was not seen for longest is in memory once more when it comes again.
const MAX_SHARED: usize = 1_000;

/// The configurations of entities that were seen last, and what followed from them.
#[derive(Debug)]
pub(super) struct InCommon {
    nothing: Arc<OwnConfig>,
    own: LruCache<Arc<OwnConfig>, ()>,
    resolutions: LruCache<Origin, Arc<CachedResolution>>,
}

/// What a resolution follows from, beside the levels that all share.
#[derive(Debug, Clone)]
struct Origin {
    resource: Resource,
    /// This very one, which is shared.
    own: Arc<OwnConfig>,
}

impl PartialEq for Origin {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.own, &other.own) && self.resource == other.resource
    }
}

impl Eq for Origin {}

impl Hash for Origin {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.own).hash(state);
        self.resource.hash(state);
    }
}

impl Default for InCommon {
    fn default() -> Self {
        Self {
            nothing: Arc::default(),
            own: LruCache::unbounded(),
            resolutions: LruCache::unbounded(),
        }
    }
}

impl InCommon {
    /// The same configuration, shared.
    pub(super) fn own(&mut self, config: &Arc<OwnConfig>) -> Arc<OwnConfig> {
        if *config == self.nothing {
            return self.nothing.clone();
        }
        if let Some((shared, ())) = self.own.get_key_value(config) {
            return shared.clone();
        }
        put_bounded(&mut self.own, config.clone(), (), MAX_SHARED);
        config.clone()
    }

    /// What followed last from a shared configuration.
    pub(super) fn resolution(
        &self,
        resource: &Resource,
        own: &Arc<OwnConfig>,
    ) -> Option<&Arc<CachedResolution>> {
        self.resolutions.peek(&Origin::of(resource, own))
    }

    pub(super) fn keep_resolution(
        &mut self,
        resource: &Resource,
        own: &Arc<OwnConfig>,
        cached: &Arc<CachedResolution>,
    ) {
        put_bounded(
            &mut self.resolutions,
            Origin::of(resource, own),
            cached.clone(),
            MAX_SHARED,
        );
    }
}

impl Origin {
    fn of(resource: &Resource, own: &Arc<OwnConfig>) -> Self {
        Self {
            resource: resource.clone(),
            own: own.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::config::resolution::TreePosition;

    fn child_of(parent: &str) -> Arc<OwnConfig> {
        let position = TreePosition {
            parent: Some(parent.parse().unwrap()),
            cascade: true,
        };
        Arc::new(OwnConfig {
            position: Some(position),
            ..OwnConfig::default()
        })
    }

    #[test]
    fn equal_configurations_are_one() {
        let mut shared = InCommon::default();
        let nothing = shared.own(&Arc::default());
        assert!(Arc::ptr_eq(&nothing, &shared.own(&Arc::default())));
        let first = shared.own(&child_of("org-1"));
        assert!(Arc::ptr_eq(&first, &shared.own(&child_of("org-1"))));
        assert_ne!(first, shared.own(&child_of("org-2")));
    }

    #[test]
    fn the_number_of_shared_configurations_is_bounded() {
        let mut shared = InCommon::default();
        for number in 0..2 * MAX_SHARED {
            shared.own(&child_of(&format!("org-{number}")));
        }
        assert_eq!(shared.own.len(), MAX_SHARED);
        let nothing = shared.own(&Arc::default());
        assert!(Arc::ptr_eq(&shared.nothing, &nothing));
    }
}

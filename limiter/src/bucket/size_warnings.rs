//! Warning about buckets that may grow beyond one write unit, once per resource.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use zae_limiter_schema::Resource;
use zae_limiter_schema::bucket::{BucketConfig, BucketKey, SlotIndex, WRITE_UNIT_BYTES, estimated_bytes};

/// At most this many resources are warned about.
const MAX_WARNED: usize = 1_000;

/// The resources that were warned about.
#[derive(Debug, Default)]
pub(super) struct SizeWarnings {
    warned: Mutex<BTreeSet<Resource>>,
}

impl SizeWarnings {
    /// Logs a warning if this bucket may grow too large, unless there was one about its resource.
    pub(super) fn check(&self, key: &BucketKey, config: &BucketConfig) {
        let bytes = estimated_bytes(
            &key.entity,
            &key.resource,
            config.parent(),
            config.limits().names(),
            usize::from(SlotIndex::COUNT),
        );
        if bytes > WRITE_UNIT_BYTES && self.is_first(&key.resource) {
            tracing::warn!(
                entity = %key.entity, resource = %key.resource, bytes,
                "buckets of this resource may grow beyond 1 KB, and each of their writes then costs two units: shorten ids or limit names"
            );
        }
    }

    fn is_first(&self, resource: &Resource) -> bool {
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        warned.len() < MAX_WARNED && warned.insert(resource.clone())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn resource(number: usize) -> Resource {
        format!("model-{number}").parse().unwrap()
    }

    #[test]
    fn each_resource_is_warned_about_once() {
        let warnings = SizeWarnings::default();
        assert!(warnings.is_first(&resource(1)));
        assert!(!warnings.is_first(&resource(1)));
        assert!(warnings.is_first(&resource(2)));
    }

    #[test]
    fn there_is_an_end_to_the_warnings() {
        let warnings = SizeWarnings::default();
        for number in 0..MAX_WARNED {
            assert!(warnings.is_first(&resource(number)));
        }
        assert!(!warnings.is_first(&resource(MAX_WARNED)));
        assert_eq!(warnings.warned.lock().unwrap().len(), MAX_WARNED);
    }
}

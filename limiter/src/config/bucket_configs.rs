//! Bucket configurations, each built once per resolved configuration: building one hashes its limits.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use zae_limiter_schema::LimitSet;
use zae_limiter_schema::bucket::{BucketConfig, TtlRule};

use super::resolution::Resolved;

/// A resolved configuration and the bucket configurations built from it.
#[derive(Debug)]
pub(crate) struct BucketConfigs {
    pub(crate) resolved: Arc<Resolved>,
    stored: OnceLock<Arc<BucketConfig>>,
    /// The one for the limits that were last passed with a call.
    for_call: Mutex<Option<Arc<BucketConfig>>>,
}

impl BucketConfigs {
    pub(crate) fn of(resolved: Resolved) -> Self {
        Self {
            resolved: Arc::new(resolved),
            stored: OnceLock::new(),
            for_call: Mutex::new(None),
        }
    }

    /// The configuration with the resolved limits.
    pub(crate) fn stored(&self, ttl: TtlRule) -> Arc<BucketConfig> {
        let build = || Arc::new(self.build(self.resolved.limits.clone(), ttl));
        let built = self.stored.get_or_init(build);
        if built.ttl() == ttl {
            built.clone()
        } else {
            // Limiters that share a cache may differ in this.
            Arc::new(built.as_ref().clone().with_ttl(ttl))
        }
    }

    /// The configuration with limits that were passed with the call.
    pub(crate) fn for_call(&self, limits: &LimitSet, ttl: TtlRule) -> Arc<BucketConfig> {
        let mut last = self.for_call.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |built: &&Arc<BucketConfig>| built.limits() == limits && built.ttl() == ttl;
        if let Some(built) = last.as_ref().filter(same) {
            return built.clone();
        }
        let built = Arc::new(self.build(limits.clone(), ttl));
        *last = Some(built.clone());
        built
    }

    fn build(&self, limits: LimitSet, ttl: TtlRule) -> BucketConfig {
        BucketConfig::new(limits, self.resolved.parent.clone(), self.resolved.cascade, ttl)
    }
}

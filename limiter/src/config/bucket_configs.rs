//! Bucket configurations, each built once per resolved configuration: building one hashes its limits.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use zae_limiter_schema::LimitSet;
use zae_limiter_schema::bucket::{BucketConfig, TtlRule};

use super::resolution::ResolvedConfig;

/// Entities share what they have in common, so that calls with several sets of limits take turns.
const MAX_FOR_CALL: usize = 8;

/// A resolved configuration and the bucket configurations built from it.
#[derive(Debug)]
pub(crate) struct BucketConfigs {
    pub(crate) resolved: Arc<ResolvedConfig>,
    stored: OnceLock<Arc<BucketConfig>>,
    /// Those for the limits that were last passed with calls.
    for_call: Mutex<VecDeque<Arc<BucketConfig>>>,
}

impl BucketConfigs {
    pub(crate) fn of(resolved: ResolvedConfig) -> Self {
        Self {
            resolved: Arc::new(resolved),
            stored: OnceLock::new(),
            for_call: Mutex::default(),
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
        if let Some(built) = last.iter().find(same) {
            return built.clone();
        }
        let built = Arc::new(self.build(limits.clone(), ttl));
        last.push_front(built.clone());
        last.truncate(MAX_FOR_CALL);
        built
    }

    fn build(&self, limits: LimitSet, ttl: TtlRule) -> BucketConfig {
        let resolved = &self.resolved;
        BucketConfig::new(limits, resolved.parent.clone(), resolved.cascade, ttl).with_mode(resolved.mode)
    }
}

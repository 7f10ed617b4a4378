//! Buckets of a limiter over a store of the test's own, and copies of the buckets of a running process.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Duration;

use zae_limiter_dynamo::Entropy;
use zae_limiter_schema::{Limit, LimitSet, OnUnavailable, Timestamp};

use super::Buckets;
use super::handle::BucketHandle;
use crate::Clock;
use crate::builder::Settings;
use crate::config::cache::{CacheLimits, ConfigCache};
use crate::config::resolution::Defaults;
use crate::store::Store;

/// The tokens of the only limit, `rpm`.
pub(super) const BURST: u64 = 3;

/// Time stands still, so that nothing is refilled.
#[derive(Debug)]
struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_700_000_000_000)
    }

    fn elapsed(&self) -> Duration {
        Duration::from_secs(1)
    }
}

pub(super) fn buckets<S: Store>(store: &Arc<S>) -> Arc<Buckets> {
    buckets_with(store, OnUnavailable::Block)
}

/// With this policy for outages.
pub(crate) fn buckets_with<S: Store>(store: &Arc<S>, on_unavailable: OnUnavailable) -> Arc<Buckets> {
    let clock: Arc<dyn Clock> = Arc::new(Still);
    let limit = Limit::custom("rpm", BURST, BURST, 1, 3_600).unwrap();
    let defaults = Defaults {
        limits: LimitSet::new([limit]).unwrap(),
        on_unavailable,
    };
    let kept = CacheLimits {
        ttl: Duration::from_secs(60),
        entries: 10,
    };
    let cache = ConfigCache::new(store.clone(), clock.clone(), defaults, kept);
    let (entropy, settings) = (Entropy::seeded(1), Settings::default());
    Arc::new(Buckets::new(
        store.clone(),
        Arc::new(cache),
        clock,
        Arc::new(entropy),
        settings,
        "test".to_owned(),
    ))
}

impl Buckets {
    /// Makes these buckets, which are new, those of a copy of a running process.
    pub(crate) fn becomes_copy_of(self: &mut Arc<Self>, original: &Self) {
        let copy = Arc::get_mut(self).unwrap();
        Arc::get_mut(&mut copy.shared).unwrap().client = original.shared.client;
        for bucket in original.all() {
            let handle = BucketHandle::new(copy.shared.clone(), bucket.key().clone());
            handle.with_core(|core| *core = bucket.with_core(|original| original.copy()));
            copy.cache().put(bucket.key().clone(), Arc::new(handle));
        }
    }
}

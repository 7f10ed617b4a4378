//! Buckets that have other limits than the configuration.

use std::sync::Arc;

use zae_limiter_schema::bucket::{BucketConfig, TtlRule};
use zae_limiter_schema::{Limit, LimitSet};

use super::super::{Reloaded, Step};
use super::bench::{Bench, parsed};
use super::created;

/// Twice the limit that the bucket has.
fn doubled() -> Arc<BucketConfig> {
    let limits = parsed(LimitSet::new(vec![parsed(Limit::per_minute("rpm", 20))]));
    Arc::new(BucketConfig::new(limits, None, false, TtlRule::Never))
}

/// The configuration was read for a bucket with the etag that this one has, or with none.
fn reload(bench: &mut Bench, config: &Arc<BucketConfig>, same_etag: bool) {
    let image = bench.bucket();
    assert!(image.etag.is_some());
    bench.core.reloaded = Some(Box::new(Reloaded {
        etag: image.etag.filter(|_| same_etag),
        config: config.clone(),
        at: bench.now().elapsed,
    }));
}

#[test]
fn other_limits_are_written_only_after_a_reload() {
    let mut bench = created();
    bench.config = doubled();
    let _call = bench.ask(1);
    assert!(matches!(bench.next().0, Step::Reload));
    let config = bench.config.clone();
    reload(&mut bench, &config, true);
    let write = bench.write();
    assert!(bench.arrive(&write));
    let image = bench.bucket();
    assert!(config.matches(&image));
}

#[test]
fn a_reload_counts_for_its_etag_its_limits_and_a_second() {
    let mut bench = created();
    let image = bench.bucket();
    let (config, other) = (bench.config.clone(), doubled());
    let may = |bench: &Bench| bench.core.may_rewrite(&image, &config, bench.now());
    assert!(!may(&bench), "nothing was read");
    reload(&mut bench, &config, true);
    assert!(may(&bench));
    reload(&mut bench, &other, true);
    assert!(!may(&bench), "other limits were read");
    reload(&mut bench, &config, false);
    assert!(!may(&bench), "it was read for another bucket");
    reload(&mut bench, &config, true);
    bench.outlast(1_000);
    assert!(may(&bench));
    bench.outlast(1);
    assert!(!may(&bench), "it was read too long ago");
}

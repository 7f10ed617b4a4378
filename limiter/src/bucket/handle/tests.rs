//! The bounds of a queue.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::future::pending;

use smallvec::smallvec;
use zae_limiter_schema::bucket::BucketWrite;

use super::super::test_buckets::buckets;
use super::*;
use crate::store::{BoxFuture, ConfigSource, ItemsRead, ItemsWanted, Store, WriteOutcome};

/// A table that never responds.
#[derive(Debug)]
struct Silent;

impl ConfigSource for Silent {
    fn read_items<'a>(&'a self, _: &'a ItemsWanted) -> BoxFuture<'a, Result<ItemsRead>> {
        Box::pin(pending())
    }
}

impl Store for Silent {
    fn read_bucket<'a>(&'a self, _: &'a BucketKey, _: bool) -> BoxFuture<'a, Result<Option<Attributes>>> {
        Box::pin(pending())
    }

    fn write_bucket<'a>(&'a self, _: &'a BucketWrite) -> BoxFuture<'a, WriteOutcome> {
        Box::pin(pending())
    }

    fn ping(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(pending())
    }
}

/// The worker is a task of this test's only thread, so that nothing leaves the queue before the test waits.
#[tokio::test]
async fn a_change_that_finds_the_queue_full_is_reported_and_not_queued() {
    let buckets = buckets(&Arc::new(Silent));
    let key = BucketKey {
        entity: "user-1".parse().unwrap(),
        resource: "gpt-4".parse().unwrap(),
    };
    let bucket = Arc::new(BucketHandle::new(buckets.shared().clone(), key.clone()));
    let change: Amounts = smallvec![("rpm".parse().unwrap(), -1_000)];
    let adjust = || {
        let origin = Origin::of_bucket("incarnation");
        bucket.adjust(change.clone(), origin, buckets.shared().client)
    };

    let mut queued: Vec<_> = (0..MAX_REQUESTS).map(|_| adjust()).collect();
    assert!(queued.iter_mut().all(|outcome| outcome.try_recv().is_err()));
    assert_eq!(buckets.report().unwritten_total, 0);

    let refused = adjust().try_recv().unwrap().unwrap_err();
    assert!(
        matches!(&refused, Error::Overloaded { entity, what, limit, .. }
            if *entity == key.entity && *what == "calls and changes waiting for this bucket" && *limit == MAX_REQUESTS),
        "{refused}"
    );
    assert_eq!(bucket.lock().core.waiting(), MAX_REQUESTS);
    let report = buckets.report();
    let [unwritten] = report.unwritten.as_slice() else {
        panic!("{report:?}")
    };
    assert_eq!(unwritten.changes, change.to_vec());
    assert_eq!(
        (&unwritten.reason, unwritten.maybe_written),
        (&refused.to_string(), false)
    );
}

#[tokio::test]
async fn what_was_taken_before_a_copy_was_noticed_is_reported_and_not_given_back() {
    let buckets = buckets(&Arc::new(Silent));
    let key = BucketKey {
        entity: "user-1".parse().unwrap(),
        resource: "gpt-4".parse().unwrap(),
    };
    let bucket = Arc::new(BucketHandle::new(buckets.shared().clone(), key));
    let before = ClientTag::from_random(1);
    let rpm = || "rpm".parse().unwrap();
    let mut back = bucket.adjust(
        smallvec![(rpm(), -1_000)],
        Origin::of_bucket("incarnation"),
        before,
    );
    let error = back.try_recv().unwrap().unwrap_err();
    assert!(error.is_unavailable(), "{error}");
    let report = buckets.report();
    assert!(report.unwritten[0].maybe_written, "{report:?}");
    assert_eq!(bucket.lock().core.waiting(), 0);
    // What was used more is written all the same.
    let changes = smallvec![(rpm(), 1_000), ("tpm".parse().unwrap(), -1_000)];
    let _used = bucket.adjust(changes, Origin::of_bucket("incarnation"), before);
    assert_eq!(
        (bucket.lock().core.waiting(), buckets.report().unwritten_total),
        (1, 2)
    );
}

//! Buckets as administrators see them.

use zae_limiter::error::{Internal, Invalid};
use zae_limiter::{Error, PageRequest};
use zae_limiter_schema::AttributeValue;

use crate::store::migrations::item;
use crate::store::support::{Stage, page, rpm};

#[tokio::test]
async fn a_bucket_that_cannot_be_read_does_not_hide_the_others() {
    let stage = Stage::memory();
    let limiter = stage.builder().default_limits([rpm(10)]).await.unwrap();
    for (resource, tokens) in [("gpt-4", 3), ("gpt-3", 1)] {
        let lease = limiter.acquire("user-1", resource).consume("rpm", tokens).await;
        lease.unwrap().commit().await.unwrap();
    }
    let mut damaged = item("ENTITY#user-1", "#BUCKET#gpt-5", &[("b_rpm_tk", 1)], false).into_inner();
    damaged.insert("rf".to_owned(), AttributeValue::Bool(true));
    stage.put([damaged.into()]).await;
    stage
        .put([item("ENTITY#user-1", "#BUCKET#gpt-6", &[("b_rpm_tk", 1)], false)])
        .await;

    let repository = limiter.repository();
    let buckets = repository.list_buckets("user-1", &page(10)).await.unwrap();
    let shown = buckets.items.iter().map(|bucket| {
        let limit = &bucket.limits[0];
        assert_eq!((bucket.limits.len(), limit.name.as_str()), (1, "rpm"));
        assert_eq!(
            (limit.capacity, limit.burst, limit.refill_period_ms),
            (10, 10, 60_000)
        );
        assert_eq!((bucket.acquires, bucket.writers.len()), (1, 1));
        (bucket.resource.as_str(), limit.available, limit.consumed)
    });
    assert_eq!(shown.collect::<Vec<_>>(), [("gpt-3", 9, 1), ("gpt-4", 7, 3)]);

    let one = repository.get_bucket("user-1", "gpt-4").await.unwrap();
    assert_eq!(one.as_ref(), buckets.items.get(1));
    let unreadable = repository.get_bucket("user-1", "gpt-5").await;
    assert!(
        matches!(unreadable, Err(Error::Internal(Internal::Malformed(_)))),
        "{unreadable:?}"
    );
    // What the Python peer leaves of an expired bucket, and none at all.
    for resource in ["gpt-6", "gpt-7"] {
        assert_eq!(repository.get_bucket("user-1", resource).await.unwrap(), None);
    }
    let refused = repository.list_buckets("user-1", &PageRequest::new(0)).await;
    assert!(
        matches!(refused, Err(Error::Invalid(Invalid::Argument { .. }))),
        "{refused:?}"
    );
}

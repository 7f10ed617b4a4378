//! Buckets as administrators see them.

use zae_limiter::error::{Internal, Invalid};
use zae_limiter::usage::CapacityScope;
use zae_limiter::{BucketLimitKind, Error, PageRequest};
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
        assert_eq!((limit.capacity, limit.burst), (10, 10));
        let refill = BucketLimitKind::Rate {
            refill_amount: 10,
            refill_period_ms: 60_000,
        };
        assert_eq!(limit.kind, refill);
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

#[tokio::test]
async fn limits_of_all_kinds_are_shown_with_what_is_used_and_held() {
    let stage = Stage::memory();
    let texts = [
        "rpm:100",
        "spend:500 per month in Europe/Berlin",
        "parallel:8 at once for 10min",
    ];
    let limits = texts.map(|text| text.parse().unwrap());
    let limiter = stage.builder().default_limits(limits).await.unwrap();
    let call = limiter.acquire("user-1", "gpt-4").consume("rpm", 1);
    let lease = call.consume("spend", 120).consume("parallel", 3).await.unwrap();

    let repository = limiter.repository();
    let bucket = repository.get_bucket("user-1", "gpt-4").await.unwrap().unwrap();
    let shown = bucket.limits.iter().map(|limit| {
        (
            limit.name.as_str(),
            limit.capacity,
            limit.available,
            limit.consumed,
        )
    });
    assert_eq!(
        shown.collect::<Vec<_>>(),
        [
            ("parallel", 8, 5, 3),
            ("rpm", 100, 99, 1),
            ("spend", 500, 380, 120)
        ]
    );
    let held = BucketLimitKind::Concurrency {
        held: 3,
        expires_after_seconds: 600,
    };
    assert_eq!(bucket.limits[0].kind, held);
    let BucketLimitKind::Quota {
        period,
        used,
        period_end,
    } = &bucket.limits[2].kind
    else {
        panic!("{:?}", bucket.limits[2]);
    };
    let ends = period.end_after(bucket.at);
    assert_eq!(
        (period.to_string().as_str(), *used, *period_end),
        ("month in Europe/Berlin", 120, Some(ends))
    );

    for (limit, capacity, available) in [("spend", 500, 380), ("parallel", 8, 5)] {
        let of_limit = repository.get_resource_capacity("gpt-4", limit, CapacityScope::Everyone);
        let of_limit = of_limit.await.unwrap();
        assert_eq!(
            (of_limit.total_capacity, of_limit.total_available),
            (capacity, available)
        );
    }
    lease.commit().await.unwrap();
    let bucket = repository.get_bucket("user-1", "gpt-4").await.unwrap().unwrap();
    assert_eq!(bucket.limits[0].available, 8, "the permits are released");
}

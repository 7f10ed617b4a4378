//! Usage of an embedded table, counted in the process.

use zae_limiter::usage::{UsageQuery, UsageSummary, WindowKind};
use zae_limiter::{EmbeddedStore, Limit, RateLimiter, RateLimiterBuilder, Repository};

/// Nothing comes back while a test runs.
fn limits() -> [Limit; 2] {
    [
        Limit::custom("rpd", 10, 10, 1, 86_400).unwrap(),
        Limit::custom("tpd", 10_000, 10_000, 1, 86_400).unwrap(),
    ]
}

async fn counting(builder: RateLimiterBuilder) -> RateLimiter {
    builder.default_limits(limits()).count_usage(true).await.unwrap()
}

/// By month: it does not matter when in a month the test runs, and the sum of two is right too.
async fn usage(repository: &Repository, entity: &str) -> UsageSummary {
    let query = UsageQuery::of_entity(entity).unwrap();
    repository
        .get_usage_summary(&query, WindowKind::Monthly)
        .await
        .unwrap()
}

#[tokio::test]
async fn calls_corrections_and_refusals_are_counted_when_the_limiter_shuts_down() {
    let limiter = counting(RateLimiter::embedded()).await;
    let mut lease = limiter
        .acquire("user-1", "gpt-4")
        .consume("rpd", 1)
        .consume("tpd", 500)
        .await
        .unwrap();
    lease.adjust("tpd", 120);
    lease.commit().await.unwrap();
    for _ in 0..3 {
        let refused = limiter.acquire("user-1", "gpt-4").consume("rpd", 10).await;
        assert!(refused.is_err());
    }
    limiter.shutdown().await;
    let usage = usage(limiter.repository(), "user-1").await;
    assert_eq!((usage.totals["rpd"], usage.totals["tpd"]), (1, 620));
    assert_eq!((usage.total_events, usage.refusals), (1, 3));
}

#[tokio::test]
async fn every_window_is_counted() {
    let limiter = counting(RateLimiter::embedded()).await;
    limiter
        .acquire("user-1", "gpt-4")
        .consume("rpd", 2)
        .commit()
        .await
        .unwrap();
    let repository = limiter.repository();
    assert!(repository.catch_up_usage().await.unwrap() > 0);
    let query = UsageQuery::of_resource("gpt-4").unwrap();
    for window in WindowKind::ALL {
        let usage = repository.get_usage_summary(&query, window).await.unwrap();
        assert_eq!(usage.totals["rpd"], 2, "{window}");
    }
}

#[tokio::test]
async fn of_several_processes_on_a_file_any_may_count_and_each_call_counts_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("limiter.db");
    let one = counting(RateLimiter::embedded_at(&path)).await;
    let two = counting(RateLimiter::embedded_at(&path)).await;
    let silent = RateLimiter::embedded_at(&path)
        .default_limits(limits())
        .await
        .unwrap();
    for limiter in [&one, &two, &silent] {
        limiter
            .acquire("user-1", "gpt-4")
            .consume("rpd", 1)
            .commit()
            .await
            .unwrap();
        let (first, second) = tokio::join!(
            one.repository().catch_up_usage(),
            two.repository().catch_up_usage()
        );
        first.unwrap();
        second.unwrap();
    }
    assert_eq!(usage(silent.repository(), "user-1").await.totals["rpd"], 3);
    assert_eq!(
        silent.repository().catch_up_usage().await.unwrap(),
        0,
        "it counts nothing"
    );
}

#[tokio::test]
async fn what_was_not_counted_is_counted_by_the_next_process_that_counts() {
    let store = EmbeddedStore::memory().unwrap();
    let first = counting(RateLimiter::embedded_in(&store)).await;
    drop(first);
    let silent = RateLimiter::embedded_in(&store)
        .default_limits(limits())
        .await
        .unwrap();
    silent
        .acquire("user-1", "gpt-4")
        .consume("rpd", 4)
        .commit()
        .await
        .unwrap();
    silent.shutdown().await;
    assert_eq!(usage(silent.repository(), "user-1").await.total_events, 0);
    let next = counting(RateLimiter::embedded_in(&store)).await;
    next.repository().catch_up_usage().await.unwrap();
    assert_eq!(usage(next.repository(), "user-1").await.totals["rpd"], 4);
}

#[tokio::test]
async fn a_stack_counts_its_usage_itself() {
    let builder = RateLimiter::builder("my-app")
        .region("eu-west-1")
        .count_usage(true);
    let error = builder.build_repository().await.unwrap_err().to_string();
    assert!(
        error.contains("count_usage") && error.contains("embedded"),
        "{error}"
    );
}

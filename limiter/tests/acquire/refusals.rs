//! What a refusal says.

use serde_json::json;
use zae_limiter::RetryAfter;

use crate::acquire::support::*;

#[tokio::test(start_paused = true)]
async fn a_refusal_tells_how_every_limit_stands() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["rpm:10", "tpm:1000", "rpd:100/day"]).await;
    let call = |tokens| {
        limiter
            .acquire("user-1", GPT)
            .consume("rpm", 6)
            .consume("tpm", tokens)
    };
    call(900).await.unwrap().commit().await.unwrap();
    let refused = exceeded(call(400).await.unwrap_err());
    assert_eq!(refused.statuses().len(), 3);
    let names = |of: Vec<&zae_limiter::LimitStatus>| -> Vec<String> {
        of.iter().map(|status| status.limit.name().to_string()).collect()
    };
    assert_eq!(names(refused.refused_limits().collect()), ["rpm", "tpm"]);
    assert_eq!(names(refused.passed_limits().collect()), ["rpd"]);
    let rpm = refused.refused_limits().next().unwrap();
    assert_eq!((rpm.available, rpm.requested, rpm.deficit()), (4, 6, 2));
    assert_eq!(rpm.retry_after, RetryAfter::After(secs(12)));
    let primary = refused.primary_limit().unwrap();
    assert_eq!(primary.limit.name().as_str(), "tpm", "it takes longest");
    assert_eq!(refused.retry_after(), RetryAfter::After(secs(18)));
    assert_eq!(refused.retry_after_header().as_deref(), Some("18"));
    assert_eq!(
        refused.to_string(),
        "Rate limit exceeded for user-1/gpt-4: [rpm, tpm]. Retry after 18.0s"
    );
}

#[tokio::test(start_paused = true)]
async fn it_serialises_as_the_python_peer_does() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["rpm:100:150", "tpm:1000"]).await;
    take(&limiter, "user-1", "rpm", 150).await.unwrap();
    let refused = exceeded(take(&limiter, "user-1", "rpm", 1).await.unwrap_err());
    assert_eq!(
        serde_json::to_value(&refused).unwrap(),
        json!({
            "error": "rate_limit_exceeded",
            "message": "Rate limit exceeded for user-1/gpt-4: [rpm]. Retry after 0.6s",
            "retry_after_seconds": 0.6,
            "retry_after_ms": 600,
            "limits": [
                {
                    "entity_id": "user-1", "resource": "gpt-4", "limit_name": "rpm", "capacity": 100, "burst": 150,
                    "available": 0, "requested": 1, "exceeded": true, "retry_after_seconds": 0.6,
                },
                {
                    "entity_id": "user-1", "resource": "gpt-4", "limit_name": "tpm", "capacity": 1000, "burst": 1000,
                    "available": 1000, "requested": 0, "exceeded": false, "retry_after_seconds": 0.0,
                },
            ],
        })
    );
}

#[tokio::test(start_paused = true)]
async fn it_never_says_retry_at_once() {
    let stage = Stage::new();
    // A thousand a second: the next token comes in a millisecond.
    let limiter = stage.limiter(&["fast:1000/sec"]).await;
    take(&limiter, "user-1", "fast", 1000).await.unwrap();
    let refused = exceeded(take(&limiter, "user-1", "fast", 1).await.unwrap_err());
    assert_eq!(refused.retry_after(), RetryAfter::After(millis(1)));
    assert_eq!(refused.retry_after_header().as_deref(), Some("1"));
    assert!(refused.to_string().ends_with("Retry after 0.1s"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn more_than_the_burst_can_never_pass_and_takes_nothing() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["tpm:100:150", "rpm:10"]).await;
    let asked = limiter
        .acquire("user-1", GPT)
        .consume("rpm", 1)
        .consume("tpm", 151);
    let refused = exceeded(asked.await.unwrap_err());
    assert_eq!(refused.retry_after(), RetryAfter::Never);
    assert_eq!(refused.retry_after_header(), None);
    assert!(refused.to_string().contains("can never pass"), "{refused}");
    let as_json = serde_json::to_value(&refused).unwrap();
    assert!(as_json["retry_after_seconds"].is_null() && as_json["retry_after_ms"].is_null());
    assert!(stage.bucket("user-1").await.is_none(), "nothing was written");
    take(&limiter, "user-1", "tpm", 150).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn debt_is_shown_as_less_than_nothing() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["tpm:1000"]).await;
    let mut lease = lease(&limiter, "user-1", "tpm", 500).await.unwrap();
    lease.adjust("tpm", 1500);
    lease.commit().await.unwrap();
    let refused = exceeded(take(&limiter, "user-1", "tpm", 1).await.unwrap_err());
    let status = refused.primary_limit().unwrap();
    assert_eq!((status.available, status.deficit()), (-1000, 1001));
    assert_eq!(refused.retry_after(), RetryAfter::After(millis(60_060)));
}

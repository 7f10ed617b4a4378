//! What is left, and when there will be enough.

use std::time::Duration;

use zae_limiter::error::{Invalid, NotFound};
use zae_limiter::{Availability, Error, NewEntity, RateLimiter, RetryAfter};

use crate::store::capacity::{NOON, bucket};
use crate::store::support::{Stage, Weather, create_key_of_acme, rpm, tpm};

on_every_store! {
    an_unused_bucket_is_full,
    a_new_configuration_is_seen_before_the_bucket_has_it,
    unknown_limits_and_missing_limits_are_errors,
}

mod at_a_fixed_time {
    use super::{the_parent_counts_where_the_entity_cascades, what_came_back_since_the_last_refill_counts};

    on_stores_without_a_clock! {
        the_parent_counts_where_the_entity_cascades,
        what_came_back_since_the_last_refill_counts,
    }
}

async fn peek(limiter: &RateLimiter, entity: &str, rpm: u64) -> Availability {
    let call = limiter.acquire(entity, "gpt-4").consume("rpm", rpm);
    call.peek().await.unwrap()
}

async fn an_unused_bucket_is_full(stage: Stage) {
    let limiter = stage.limiter().await;
    let burst = rpm(60).with_burst(100).unwrap();
    limiter
        .repository()
        .set_system_defaults([burst, tpm(5)])
        .await
        .unwrap();
    let left = peek(&limiter, "user-1", 0).await;
    assert_eq!((left.tokens("rpm"), left.tokens("tpm")), (Some(100), Some(5)));
    assert_eq!(left.tokens("tpd"), None);
    let all = peek(&limiter, "user-1", 100).await;
    assert_eq!((all.would_pass(), all.retry_after()), (true, RetryAfter::Now));
    let more = peek(&limiter, "user-1", 101).await;
    assert_eq!(
        (more.would_pass(), more.retry_after()),
        (false, RetryAfter::Never)
    );
}

async fn what_came_back_since_the_last_refill_counts(stage: Stage) {
    let limiter = stage.limiter().await;
    limiter.repository().set_system_defaults([rpm(60)]).await.unwrap();
    stage
        .put([bucket(&"user-1".parse().unwrap(), "gpt-4", -5_500, NOON - 2_000)])
        .await;
    let now = peek(&limiter, "user-1", 1).await;
    assert_eq!(now.tokens("rpm"), Some(-4), "three and a half in debt");
    let wait = Duration::from_millis(4_500);
    assert_eq!(now.retry_after(), RetryAfter::After(wait));
    stage.clock.advance(wait);
    assert_eq!(peek(&limiter, "user-1", 1).await.retry_after(), RetryAfter::Now);
}

async fn the_parent_counts_where_the_entity_cascades(stage: Stage) {
    let limiter = stage.limiter().await;
    create_key_of_acme(&limiter).await;
    let not_cascading = NewEntity::new("key-2").parent("acme");
    limiter.repository().create_entity(not_cascading).await.unwrap();
    stage
        .put([bucket(&"acme".parse().unwrap(), "gpt-4", 10_000, NOON)])
        .await;
    let key = peek(&limiter, "key-1", 12).await;
    let entities = key.statuses().iter().map(|status| status.entity.as_str());
    assert_eq!(entities.collect::<Vec<_>>(), ["key-1", "acme"]);
    assert_eq!(key.tokens("rpm"), Some(10));
    assert_eq!(key.retry_after(), RetryAfter::After(Duration::from_secs(2)));
    assert_eq!(peek(&limiter, "key-2", 0).await.tokens("rpm"), Some(60));
}

async fn a_new_configuration_is_seen_before_the_bucket_has_it(stage: Stage) {
    let limiter = stage.limiter().await;
    stage
        .put([bucket(&"user-1".parse().unwrap(), "gpt-4", 50_000, NOON)])
        .await;
    limiter
        .repository()
        .set_system_defaults([rpm(20), tpm(7)])
        .await
        .unwrap();
    let left = peek(&limiter, "user-1", 0).await;
    assert_eq!(
        (left.tokens("rpm"), left.tokens("tpm")),
        (Some(20), Some(7)),
        "cut to the new burst; a new limit starts full"
    );
}

async fn unknown_limits_and_missing_limits_are_errors(stage: Stage) {
    let limiter = stage.limiter().await;
    let missing = limiter.acquire("user-1", "gpt-4").peek().await;
    assert!(
        matches!(missing, Err(Error::NotFound(NotFound::Limits { .. }))),
        "{missing:?}"
    );
    limiter.repository().set_system_defaults([rpm(60)]).await.unwrap();
    let unknown = limiter.acquire("user-1", "gpt-4").consume("rpn", 1).peek().await;
    assert!(
        matches!(
            unknown,
            Err(Error::Invalid(Invalid::Argument { field: "limit", .. }))
        ),
        "{unknown:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_wrong_lets_nothing_come_back_early() {
    let stage = Stage::faulty(Weather::Fair);
    // An hour behind the clock of this machine.
    stage.faults().date("Sat, 31 Jan 2099 11:00:00 GMT");
    let limiter = stage.limiter().await;
    limiter.repository().set_system_defaults([rpm(60)]).await.unwrap();
    let take = async |entity: &str| {
        let lease = limiter.acquire(entity, "gpt-4").consume("rpm", 60).await;
        lease.unwrap().commit().await.unwrap();
    };
    take("whose-response-tells-the-time").await;
    take("user-1").await;
    assert_eq!(peek(&limiter, "user-1", 0).await.tokens("rpm"), Some(0));
    let scope = zae_limiter::usage::CapacityScope::Everyone;
    let capacity = limiter
        .repository()
        .get_resource_capacity("gpt-4", "rpm", scope)
        .await
        .unwrap();
    let of_user = capacity
        .entities
        .iter()
        .find(|one| one.entity.as_str() == "user-1");
    assert_eq!(of_user.unwrap().available, 0);
}

//! Negative hits give back what was taken, and no more.

use std::time::Duration;

use zae_limiter::{EmbeddedStore, RateLimiter};
use zae_limiter_server::Settings;

use crate::grpc::client::{TestServer, calls, codes, limits, refund, request, tokens};
use crate::grpc::messages::{Code, RateLimitDescriptor};

#[tokio::test]
async fn negative_hits_give_back_what_was_not_used() {
    let server = TestServer::start().await;
    server.ok(request(0, [calls("ada"), tokens("ada", 500)])).await;
    assert_eq!(server.left("ada", "tpm").await, 500);
    let response = server.ok(request(0, [refund("ada", 380)])).await;
    assert_eq!(codes(&response.statuses), [Code::Ok]);
    assert_eq!(
        (server.left("ada", "rpm").await, server.left("ada", "tpm").await),
        (9, 880)
    );
    assert_eq!(server.handle.leases(), 0);
}

#[tokio::test]
async fn nobody_gets_back_more_than_was_taken() {
    let server = TestServer::start().await;
    for _ in 0..2 {
        server.ok(request(0, [tokens("ada", 100)])).await;
    }
    server.ok(request(0, [refund("bob", 1_000)])).await;
    assert_eq!(server.left("ada", "tpm").await, 800);
    server.ok(request(0, [refund("ada", 150)])).await;
    assert_eq!(server.left("ada", "tpm").await, 950);
    server.ok(request(0, [refund("ada", 1_000)])).await;
    assert_eq!(server.left("ada", "tpm").await, 950, "both leases have ended");
}

#[tokio::test]
async fn hits_can_be_given_back_for_as_long_as_the_mapping_says() {
    let server = TestServer::start().await;
    server.ok(request(0, [tokens("ada", 900)])).await;
    server.clock.advance(Duration::from_secs(60));
    server.handle.expire_leases().await;
    // A minute has filled the bucket; a refund would overfill what 500 more leave.
    server.ok(request(0, [tokens("bob", 1)])).await;
    let other = server
        .limiter
        .acquire("ada", "gpt-4")
        .consume("tpm", 500)
        .await
        .unwrap();
    other.commit().await.unwrap();
    server.ok(request(0, [refund("ada", 900)])).await;
    assert_eq!(server.left("ada", "tpm").await, 500);
}

#[tokio::test]
async fn a_full_lease_table_still_counts_and_stopping_settles_what_is_held() {
    let store = EmbeddedStore::memory().unwrap();
    let builder = RateLimiter::embedded_in(&store).default_limits(limits());
    let mut settings = Settings::default();
    settings.max_leases = 2;
    let server = TestServer::on(builder, settings, None).await;
    let clock = server.clock.clone();
    for _ in 0..3 {
        server.ok(request(0, [tokens("ada", 100)])).await;
    }
    assert_eq!(server.handle.leases(), 1);
    server.ok(request(0, [refund("ada", 300)])).await;
    assert_eq!(
        server.left("ada", "tpm").await,
        800,
        "one lease was held: half of two"
    );
    server.ok(request(0, [tokens("ada", 100)])).await;
    let closed = server.stopped().await;
    assert_eq!((closed.committed, closed.unwritten), (1, 0));
    let after = RateLimiter::embedded_in(&store)
        .default_limits(limits())
        .clock(clock);
    let left = after.await.unwrap().acquire("ada", "gpt-4").peek().await.unwrap();
    assert_eq!(left.tokens("tpm"), Some(700));
}

#[tokio::test]
async fn refunds_beyond_any_number_give_back_what_was_taken() {
    let server = TestServer::start().await;
    server.ok(request(1, [tokens("ada", 600)])).await;
    let calls = RateLimitDescriptor {
        is_negative_hits: true,
        hits_addend: Some(u64::MAX),
        ..calls("ada")
    };
    server.ok(request(1, [refund("ada", u64::MAX), calls])).await;
    assert_eq!(server.left("ada", "tpm").await, 1_000);
}

#[tokio::test]
async fn leases_of_envoy_leave_half_of_the_room_to_others() {
    let mut settings = Settings::default();
    settings.max_leases = 4;
    let limiter = RateLimiter::embedded().default_limits(limits());
    let server = TestServer::on(limiter, settings, None).await;
    for user in ["ada", "bob", "cid", "dan"] {
        server.ok(request(0, [tokens(user, 100)])).await;
    }
    assert_eq!(server.handle.leases(), 2);
    server
        .ok(request(0, [refund("ada", 100), refund("cid", 100)]))
        .await;
    assert_eq!(server.handle.leases(), 1, "cid had no lease");
    server.ok(request(0, [tokens("dan", 100)])).await;
    assert_eq!(server.handle.leases(), 2);
    // Leases that expire make room, even if nobody gives anything back.
    server.clock.advance(Duration::from_secs(60));
    server.handle.expire_leases().await;
    server.ok(request(0, [tokens("eva", 100)])).await;
    assert_eq!(server.handle.leases(), 1);
}

//! Quotas and limits on calls in flight behind Envoy, which never says that a request has ended.

use std::time::Duration;

use zae_limiter::{Limit, RateLimiter};
use zae_limiter_server::Settings;

use crate::grpc::client::{TestServer, codes, descriptor, request};
use crate::grpc::messages::{Code, RateLimitDescriptor, Unit};

const MAPPING: &str = r#"
domains:
  gateway:
    - match: {user: "*", kind: spend}
      entity: "{user}"
      resource: gpt-4
      limit: spend
    - match: {user: "*", kind: parallel}
      entity: "{user}"
      resource: gpt-4
      limit: parallel
    - match: {user: "*", kind: request}
      entity: "{user}"
      resource: gpt-4
      limit: parallel
      refundable_seconds: 30
"#;

async fn start_with(settings: Settings) -> TestServer {
    let limits =
        ["spend:5 per day", "parallel:2 at once for 10min"].map(|text| text.parse::<Limit>().unwrap());
    let limiter = RateLimiter::embedded().default_limits(limits);
    TestServer::mapped(limiter, settings, None, MAPPING).await
}

async fn start() -> TestServer {
    start_with(Settings::default()).await
}

fn of(kind: &str) -> RateLimitDescriptor {
    descriptor(&[("user", "ada"), ("kind", kind)])
}

#[tokio::test]
async fn a_quota_is_used_up_and_its_status_says_when_it_resets() {
    let server = start().await;
    let response = server.ok(request(5, [of("spend")])).await;
    let status = &response.statuses[0];
    let limit = status.current_limit.as_ref().unwrap();
    assert_eq!(
        (limit.requests_per_unit, limit.unit(), status.limit_remaining),
        (5, Unit::Day, 0)
    );
    // The clock is at noon.
    assert_eq!(status.duration_until_reset.unwrap().seconds, 12 * 3_600);
    let response = server.over_limit(request(1, [of("spend")])).await;
    let wait = response.statuses[0].duration_until_reset.unwrap().seconds;
    assert!((12 * 3_600..=12 * 3_600 + 3).contains(&wait), "{wait}");
    server.clock.advance(Duration::from_secs(12 * 3_600));
    server.ok(request(1, [of("spend")])).await;
}

#[tokio::test]
async fn permits_are_held_until_their_expiry_and_then_come_back() {
    let server = start().await;
    for _ in 0..2 {
        let response = server.ok(request(0, [of("parallel"), of("spend")])).await;
        let limit = response.statuses[0].current_limit.as_ref().unwrap();
        assert_eq!((limit.requests_per_unit, limit.unit()), (2, Unit::Unknown));
        assert_eq!(response.statuses[0].duration_until_reset, None);
    }
    let response = server.over_limit(request(0, [of("parallel"), of("spend")])).await;
    assert_eq!(codes(&response.statuses), [Code::OverLimit, Code::Ok]);
    assert_eq!(
        (
            server.left("ada", "parallel").await,
            server.left("ada", "spend").await
        ),
        (0, 3)
    );
    server.clock.advance(Duration::from_secs(600));
    server.handle.expire_leases().await;
    assert_eq!(
        (
            server.left("ada", "parallel").await,
            server.left("ada", "spend").await
        ),
        (2, 3)
    );
    assert_eq!(server.handle.leases(), 0);
}

#[tokio::test]
async fn negative_hits_release_a_permit() {
    let server = start().await;
    for _ in 0..2 {
        server.ok(request(0, [of("request")])).await;
    }
    server.over_limit(request(0, [of("request")])).await;
    let ended = RateLimitDescriptor {
        is_negative_hits: true,
        ..of("request")
    };
    server.ok(request(0, [ended])).await;
    assert_eq!(
        (server.left("ada", "parallel").await, server.handle.leases()),
        (1, 1)
    );
    server.ok(request(0, [of("request")])).await;
    // The mapping holds a request for half a minute.
    server.clock.advance(Duration::from_secs(30));
    server.handle.expire_leases().await;
    assert_eq!(server.left("ada", "parallel").await, 2);
}

#[tokio::test]
async fn a_server_without_room_for_permits_refuses_and_keeps_none() {
    let mut settings = Settings::default();
    settings.max_leases = 2;
    let server = start_with(settings).await;
    server.ok(request(0, [of("parallel")])).await;
    let status = server.ask(request(0, [of("parallel")])).await.unwrap_err();
    assert_eq!(status.code(), tonic::Code::Unavailable, "{status:?}");
    server.limiter.settled().await;
    assert_eq!(server.left("ada", "parallel").await, 1);
}

//! Hits are counted on the mapped entity and resource, all of a request or none.

use std::time::Duration;

use serde_json::Value;
use tonic::Code as GrpcCode;
use zae_limiter::RateLimiter;
use zae_limiter_server::Settings;

use crate::grpc::client::{TestServer, calls, codes, descriptor, request, tokens};
use crate::grpc::messages::{Code, RateLimitResponse, Unit};

fn header<'a>(response: &'a RateLimitResponse, name: &str) -> Option<&'a str> {
    let mut headers = response.response_headers_to_add.iter();
    headers
        .find(|header| header.key == name)
        .map(|header| header.value.as_str())
}

#[tokio::test]
async fn a_request_that_fits_is_counted_and_shows_its_limit() {
    let server = TestServer::start().await;
    let response = server.ok(request(0, [calls("ada")])).await;
    let [status] = &response.statuses[..] else {
        panic!("{response:?}")
    };
    assert_eq!((status.code(), status.limit_remaining), (Code::Ok, 9));
    let limit = status.current_limit.as_ref().unwrap();
    assert_eq!(
        (limit.name.as_str(), limit.requests_per_unit, limit.unit()),
        ("rpm", 10, Unit::Minute)
    );
    // One token every 6 seconds fills it.
    assert_eq!(status.duration_until_reset.unwrap().seconds, 6);
    assert_eq!(
        header(&response, "ratelimit-policy"),
        Some(r#""rpm";q=10;w=60, "tpm";q=1000;w=60"#)
    );
    assert_eq!(
        header(&response, "ratelimit"),
        Some(r#""rpm";r=9;t=6, "tpm";r=1000"#)
    );
    assert_eq!(server.left("ada", "rpm").await, 9);
    assert_eq!(server.left("bob", "rpm").await, 10);
}

#[tokio::test]
async fn a_request_over_the_limit_takes_nothing_and_says_when_to_come_back() {
    let server = TestServer::start().await;
    server.ok(request(8, [calls("ada")])).await;
    let response = server.over_limit(request(5, [calls("ada")])).await;
    let status = &response.statuses[0];
    assert_eq!((status.code(), status.limit_remaining), (Code::OverLimit, 2));
    assert_eq!(
        status.duration_until_reset.unwrap().seconds,
        18,
        "3 tokens are missing"
    );
    assert_eq!(header(&response, "retry-after"), Some("18"));
    let body: Value = serde_json::from_slice(&response.raw_body).unwrap();
    assert_eq!(body["status"], 429);
    assert_eq!(body["violated-policies"], serde_json::json!(["rpm"]));
    assert_eq!(server.left("ada", "rpm").await, 2);
    server.clock.advance(Duration::from_secs(18));
    server.ok(request(5, [calls("ada")])).await;
}

#[tokio::test]
async fn descriptors_have_their_own_hits_and_their_own_codes() {
    let server = TestServer::start().await;
    let response = server.ok(request(2, [calls("ada"), tokens("ada", 700)])).await;
    let left: Vec<_> = response
        .statuses
        .iter()
        .map(|status| status.limit_remaining)
        .collect();
    assert_eq!(left, [8, 300]);
    let response = server
        .over_limit(request(2, [calls("ada"), tokens("ada", 700)]))
        .await;
    assert_eq!(codes(&response.statuses), [Code::Ok, Code::OverLimit]);
    assert_eq!(
        (server.left("ada", "rpm").await, server.left("ada", "tpm").await),
        (8, 300)
    );
}

#[tokio::test]
async fn if_one_entity_is_over_its_limit_the_other_gets_its_tokens_back() {
    let server = TestServer::start().await;
    server.ok(request(10, [calls("ada")])).await;
    let response = server.over_limit(request(0, [calls("bob"), calls("ada")])).await;
    assert_eq!(codes(&response.statuses), [Code::Ok, Code::OverLimit]);
    server.limiter.settled().await;
    assert_eq!(server.left("bob", "rpm").await, 10);
}

#[tokio::test]
async fn zero_hits_ask_whether_a_token_is_left_and_take_none() {
    let server = TestServer::start().await;
    server.ok(request(0, [tokens("ada", 0)])).await;
    assert_eq!(server.left("ada", "tpm").await, 1_000);
    server.ok(request(0, [tokens("ada", 1_000)])).await;
    // The check of the tokens counts although the request also takes something else of the bucket.
    let response = server
        .over_limit(request(0, [calls("ada"), tokens("ada", 0)]))
        .await;
    assert_eq!(codes(&response.statuses), [Code::Ok, Code::OverLimit]);
    server.limiter.settled().await;
    assert_eq!(server.left("ada", "rpm").await, 10);
}

#[tokio::test]
async fn what_no_mapping_matches_is_not_limited() {
    let server = TestServer::start().await;
    let mut unknown = request(1_000, [calls("ada")]);
    unknown.domain = "other".to_owned();
    let response = server.ok(unknown).await;
    assert_eq!(codes(&response.statuses), [Code::Ok]);
    assert_eq!(response.statuses[0].current_limit, None);
    assert!(response.response_headers_to_add.is_empty());
    let response = server
        .ok(request(1, [descriptor(&[("path", "/")]), calls("ada")]))
        .await;
    assert_eq!(response.statuses[0].current_limit, None);
    assert_eq!(response.statuses[1].limit_remaining, 9);
}

#[tokio::test]
async fn a_request_without_descriptors_is_an_error_that_says_why() {
    let server = TestServer::start().await;
    let status = server.ask(request(1, [])).await.unwrap_err();
    assert_eq!(status.code(), GrpcCode::InvalidArgument, "{status:?}");
    assert!(status.message().contains("at least one descriptor"), "{status:?}");
}

#[tokio::test]
async fn values_that_callers_choose_do_not_avoid_limits() {
    let server = TestServer::start().await;
    let mut binary = calls("x");
    binary.entries[0].value = b"\xff\xfe".to_vec();
    let bad = [
        binary,
        descriptor(&[("user", "ada"), ("user", "bob")]),
        tokens("ada", u64::MAX),
        tokens("ada", 1_000_000_000_001),
        calls("a#b"),
        // The mapping names a limit that the bucket does not have.
        descriptor(&[("user", "ada"), ("kind", "typo")]),
    ];
    for (number, bad) in bad.into_iter().enumerate() {
        let other = format!("other-{number}");
        let response = server.over_limit(request(1, [bad, calls(&other)])).await;
        assert_eq!(codes(&response.statuses), [Code::OverLimit, Code::Ok], "{number}");
        assert_eq!(
            server.left(&other, "rpm").await,
            9,
            "the other descriptor is charged"
        );
    }
    assert_eq!(server.left("ada", "rpm").await, 10);
}

#[tokio::test]
async fn a_bucket_without_limits_is_over_the_limit_unless_its_mapping_allows_it() {
    let mapping = |more: &str| {
        format!(
            "domains: {{gateway: [{{match: {{user: '*'}}, entity: '{{user}}', resource: r, limit: rpm{more}}}]}}"
        )
    };
    let start = async |mapping: String| {
        TestServer::mapped(RateLimiter::embedded(), Settings::default(), None, &mapping).await
    };
    let strict = start(mapping("")).await;
    strict.over_limit(request(1, [calls("ada")])).await;
    let open = start(mapping(", allow_without_limits: true")).await;
    open.ok(request(1, [calls("ada")])).await;
}

#[tokio::test]
async fn a_message_that_is_too_large_is_over_the_limit_and_too_many_requests_are_unavailable() {
    let mut settings = Settings::default();
    settings.max_body_bytes = 100;
    let server = TestServer::on(RateLimiter::embedded(), settings, None).await;
    server.over_limit(request(1, [calls(&"x".repeat(200))])).await;

    let mut settings = Settings::default();
    settings.max_grpc_requests = 0;
    let server = TestServer::on(RateLimiter::embedded(), settings, None).await;
    let status = server.ask(request(1, [calls("ada")])).await.unwrap_err();
    assert_eq!(status.code(), GrpcCode::Unavailable, "{status:?}");
}

#[tokio::test]
async fn a_value_that_cannot_be_a_name_is_over_the_limit_and_a_shadow_ignores_it() {
    let server = TestServer::start().await;
    let response = server.over_limit(request(1, [calls("ada"), calls("a#b")])).await;
    assert_eq!(codes(&response.statuses), [Code::Ok, Code::OverLimit]);
    assert_eq!(
        server.left("ada", "rpm").await,
        9,
        "the other descriptor is charged"
    );
    let trial = descriptor(&[("user", "a#b"), ("kind", "trial")]);
    let response = server.ok(request(1, [trial, calls("ada")])).await;
    assert_eq!(codes(&response.statuses), [Code::Ok, Code::Ok]);
    assert_eq!(server.left("ada", "rpm").await, 8, "the shadow is ignored");
}

#[tokio::test]
async fn a_request_has_at_most_100_descriptors() {
    let server = TestServer::start().await;
    let users = |count: usize| request(1, (0..count).map(|user| calls(&format!("user-{user}"))));
    let status = server.ask(users(101)).await.unwrap_err();
    assert_eq!(status.code(), GrpcCode::InvalidArgument, "{status:?}");
    assert!(status.message().contains("at most 100"), "{status:?}");
    assert_eq!(server.left("user-0", "rpm").await, 10);
    let response = server.ok(users(100)).await;
    assert_eq!(response.statuses.len(), 100);
}

#[tokio::test]
async fn another_method_is_not_implemented() {
    let server = TestServer::start().await;
    let mut client = server.client.clone();
    let other = client
        .call("ShouldNotRateLimit", request(1, [calls("ada")]))
        .await;
    assert_eq!(other.unwrap_err().code(), GrpcCode::Unimplemented);
    assert_eq!(server.left("ada", "rpm").await, 10);
}

#[tokio::test]
async fn an_entity_that_may_not_use_the_resource_is_over_the_limit_and_nothing_is_taken() {
    let server = TestServer::start().await;
    let level = zae_limiter::ConfigLevel::EntityDefault("ada".parse().unwrap());
    let repository = server.limiter.repository();
    repository
        .set_mode(&level, zae_limiter::Mode::Disabled)
        .await
        .unwrap();
    let response = server.over_limit(request(0, [calls("bob"), calls("ada")])).await;
    assert_eq!(codes(&response.statuses), [Code::Ok, Code::OverLimit]);
    assert_eq!(header(&response, "retry-after"), None);
    let body: Value = serde_json::from_slice(&response.raw_body).unwrap();
    assert_eq!(
        (&body["status"], &body["type"]),
        (&403.into(), &"urn:zae-limiter:problem:disabled".into())
    );
    assert_eq!(server.left("bob", "rpm").await, 10);
    // Asking takes nothing, and gets the same response.
    let mut asks = calls("ada");
    asks.hits_addend = Some(0);
    server.over_limit(request(0, [asks])).await;
    repository
        .set_mode(&level, zae_limiter::Mode::Observe)
        .await
        .unwrap();
    server.ok(request(99, [calls("ada")])).await;
}

//! The life of a lease.

use std::time::Duration;

use serde_json::{Value, json};
use zae_limiter_server::Settings;

use crate::client::TestServer;

fn request(tokens: u64) -> Value {
    json!({ "entity": "user-1", "resource": "gpt-4", "consume": { "rpm": 1, "tpm": tokens } })
}

#[tokio::test]
async fn adjustments_add_up_and_are_written_by_the_commit() {
    let server = TestServer::start().await;
    let lease = server.post("/v1/acquire", request(500)).await.lease();
    let adjusted = server
        .post(
            &format!("/v1/leases/{lease}/adjust"),
            json!({ "adjust": { "tpm": 200 } }),
        )
        .await
        .expect(200)
        .json();
    assert_eq!(adjusted["consumed"], json!({ "rpm": 1, "tpm": 700 }));
    assert_eq!(server.available("tpm").await, 9_500, "not written yet");
    let committed = server
        .post(
            &format!("/v1/leases/{lease}/commit"),
            json!({ "adjust": { "tpm": -300 } }),
        )
        .await
        .expect(200)
        .json();
    assert_eq!(
        committed,
        json!({ "lease_id": lease, "consumed": { "rpm": 1, "tpm": 400 }, "written": true })
    );
    assert_eq!(server.available("tpm").await, 9_600);
}

#[tokio::test]
async fn a_lease_never_gives_back_more_than_it_took() {
    let server = TestServer::start().await;
    let lease = server.post("/v1/acquire", request(500)).await.lease();
    let path = format!("/v1/leases/{lease}/commit");
    let committed = server.post(&path, json!({ "adjust": { "tpm": -9_000 } })).await;
    assert_eq!(committed.expect(200).json()["consumed"]["tpm"], 0);
    assert_eq!(server.available("tpm").await, 10_000);
}

#[tokio::test]
async fn deleting_a_lease_gives_everything_back() {
    let server = TestServer::start().await;
    let lease = server.post("/v1/acquire", request(500)).await.lease();
    let deleted = server
        .delete(&format!("/v1/leases/{lease}"))
        .await
        .expect(200)
        .json();
    assert_eq!(deleted["consumed"], json!({ "rpm": 0, "tpm": 0 }));
    assert_eq!(server.available("tpm").await, 10_000);
    assert_eq!(server.available("rpm").await, 100);
}

#[tokio::test]
async fn a_lease_ends_once() {
    let server = TestServer::start().await;
    for (end, how) in [("commit", "committed"), ("", "rolled_back")] {
        let lease = server.post("/v1/acquire", request(10)).await.lease();
        let path = format!("/v1/leases/{lease}");
        if end.is_empty() {
            server.delete(&path).await.expect(200);
        } else {
            // Without a body nothing is adjusted.
            let committed = server
                .send(hyper::Method::POST, &format!("{path}/commit"), &[], "")
                .await;
            committed.expect(200);
        }
        let again = [
            server.delete(&path).await,
            server.post(&format!("{path}/commit"), json!({})).await,
            server
                .post(&format!("{path}/adjust"), json!({ "adjust": { "tpm": 1 } }))
                .await,
        ];
        for response in again {
            assert_eq!(response.problem(410, "lease-ended")["ended"], how);
        }
    }
    assert_eq!(server.available("tpm").await, 9_990);
}

#[tokio::test]
async fn of_many_who_end_a_lease_at_once_one_succeeds() {
    let server = TestServer::start().await;
    let lease = server.post("/v1/acquire", request(500)).await.lease();
    let path = format!("/v1/leases/{lease}");
    let commit = format!("{path}/commit");
    let adjustment = || json!({ "adjust": { "tpm": -100 } });
    let responses = tokio::join!(
        server.post(&commit, adjustment()),
        server.delete(&path),
        server.post(&commit, adjustment()),
        server.delete(&path),
    );
    let statuses = [&responses.0, &responses.1, &responses.2, &responses.3].map(|one| one.status.as_u16());
    assert_eq!(
        statuses.iter().filter(|status| **status == 200).count(),
        1,
        "{statuses:?}"
    );
    assert_eq!(
        statuses.iter().filter(|status| **status == 410).count(),
        3,
        "{statuses:?}"
    );
}

#[tokio::test]
async fn an_id_that_was_never_given_out_is_not_found() {
    let server = TestServer::start().await;
    for id in ["0123456789abcdef0123456789abcdef", "x", "%20"] {
        let path = format!("/v1/leases/{id}");
        server.delete(&path).await.problem(404, "lease-not-found");
        let commit = server.post(&format!("{path}/commit"), json!({})).await;
        commit.problem(404, "lease-not-found");
    }
}

#[tokio::test]
async fn adjusting_an_unknown_limit_changes_nothing_and_does_not_end_the_lease() {
    let server = TestServer::start().await;
    let lease = server.post("/v1/acquire", request(500)).await.lease();
    let wrong = json!({ "adjust": { "tpm": -100, "tokens": 1 } });
    for end in ["adjust", "commit"] {
        let path = format!("/v1/leases/{lease}/{end}");
        let problem = server
            .post(&path, wrong.clone())
            .await
            .problem(400, "invalid-request");
        assert_eq!(
            problem["detail"],
            "limit tokens is invalid: the lease has the limits rpm, tpm"
        );
    }
    let committed = server
        .post(&format!("/v1/leases/{lease}/commit"), json!({}))
        .await;
    assert_eq!(committed.expect(200).json()["consumed"]["tpm"], 500);
}

#[tokio::test]
async fn a_lease_that_nobody_ends_is_committed_as_taken_and_counted() {
    let server = TestServer::start().await;
    let minute = server.post("/v1/acquire", request(500)).await.lease();
    let mut longer = request(500);
    longer["lease_ms"] = 60_001.into();
    let longer = server.post("/v1/acquire", longer).await.lease();
    let path = format!("/v1/leases/{minute}/adjust");
    server
        .post(&path, json!({ "adjust": { "tpm": 250 } }))
        .await
        .expect(200);

    server.clock.advance(Duration::from_secs(60));
    let late = server
        .post(&format!("/v1/leases/{minute}/commit"), json!({}))
        .await;
    assert_eq!(late.problem(410, "lease-ended")["ended"], "expired");
    server.handle.expire_leases().await;
    assert_eq!((server.handle.leases(), server.handle.expired_leases()), (1, 1));
    let committed = server
        .post(&format!("/v1/leases/{longer}/commit"), json!({}))
        .await;
    committed.expect(200);
    // A minute has refilled the bucket but for the adjustment, which is written after it.
    assert_eq!(server.available("tpm").await, 9_750);
}

#[tokio::test]
async fn a_lease_that_expires_releases_its_permit_and_keeps_its_tokens() {
    let server = TestServer::start().await;
    let limits = json!({ "limits": [
        { "name": "parallel", "concurrency": 1 }, { "name": "rpd", "capacity": 10, "refill_period_seconds": 86_400 },
    ] });
    server.put("/v1/limits?resource=gpt-5", limits).await.expect(200);
    let body = || {
        let consume = json!({ "rpd": 4, "parallel": 1 });
        json!({ "entity": "user-1", "resource": "gpt-5", "consume": consume, "lease_ms": 10_000 })
    };
    server.post("/v1/acquire", body()).await.expect(200);
    let refused = server.post("/v1/acquire", body()).await.expect(429);
    assert_eq!(refused.json()["violated-policies"], json!(["parallel"]));
    server.clock.advance(Duration::from_secs(11));
    server.handle.expire_leases().await;
    server.post("/v1/acquire", body()).await.expect(200);
    let refused = server.post("/v1/acquire", body()).await.expect(429).json();
    assert_eq!(
        refused["limits"][1]["available"], 2,
        "both calls keep their tokens"
    );
}

#[tokio::test]
async fn a_full_lease_table_takes_no_tokens_and_frees_slots_with_every_end() {
    let mut settings = Settings::default();
    settings.max_leases = 2;
    let server = TestServer::with(settings, None).await;
    let first = server.post("/v1/acquire", request(10)).await.lease();
    server.post("/v1/acquire", request(10)).await.lease();
    let full = server.post("/v1/acquire", request(10)).await;
    assert_eq!(full.header("retry-after"), Some("1"));
    full.problem(503, "overloaded");
    assert_eq!(server.available("tpm").await, 9_980);
    // Without a lease there is room.
    let mut at_once = request(10);
    at_once["lease_ms"] = 0.into();
    server.post("/v1/acquire", at_once).await.expect(200);
    server.delete(&format!("/v1/leases/{first}")).await.expect(200);
    server.post("/v1/acquire", request(10)).await.expect(200);
    // A refusal gives its slot back.
    let second = server.post("/v1/acquire", request(9_999)).await;
    second.problem(503, "overloaded");
}

#[tokio::test]
async fn a_renewed_lease_expires_later() {
    let server = TestServer::start().await;
    let body =
        json!({ "entity": "user-1", "resource": "gpt-4", "consume": { "tpm": 500 }, "lease_ms": 1_000 });
    let lease = server.post("/v1/acquire", body).await.lease();
    let path = format!("/v1/leases/{lease}/renew");
    server.clock.advance(Duration::from_millis(900));
    let renewed = server.post(&path, json!({ "lease_ms": 2_000 })).await.expect(200);
    assert_eq!(renewed.json(), json!({ "lease_id": lease, "lease_ms": 2_000 }));
    server.clock.advance(Duration::from_millis(1_900));
    server.handle.expire_leases().await;
    assert_eq!(server.handle.leases(), 1);
    let unset = server.send(hyper::Method::POST, &path, &[], "").await.expect(200);
    assert_eq!(unset.json()["lease_ms"], 60_000);
    for (millis, rule) in [(0_u64, "greater than zero"), (3_600_001, "at most 3600000")] {
        let invalid = server.post(&path, json!({ "lease_ms": millis })).await;
        let problem = invalid.problem(400, "invalid-request");
        assert!(problem["detail"].as_str().unwrap().contains(rule), "{problem}");
    }
    server.clock.advance(Duration::from_secs(60));
    let late = server.post(&path, json!({})).await.problem(410, "lease-ended");
    assert_eq!(late["ended"], "expired");
}

#[tokio::test]
async fn an_adjustment_without_a_lease_is_made_once_per_key() {
    let server = TestServer::start().await;
    let adjust = async |key: &str, tokens: i64| {
        let body = json!({ "entity": "user-1", "resource": "gpt-4", "adjust": { "tpm": tokens } });
        server
            .post_with("/v1/adjust", &[("idempotency-key", key)], body)
            .await
    };
    server.post("/v1/acquire", request(1_000)).await.expect(200);
    let made = adjust("one", 9_500).await.expect(200);
    assert_eq!(made.json(), json!({ "written": true }));
    assert_eq!(server.available("tpm").await, -500, "it may create debt");
    let again = adjust("one", 9_500).await.expect(200);
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    adjust("one", 1).await.problem(422, "idempotency-key-reused");
    adjust("two", -700).await.expect(200);
    assert_eq!(server.available("tpm").await, 200);
    adjust("three", 1_000_000_000_001)
        .await
        .problem(400, "invalid-request");
    let unknown = json!({ "entity": "user-1", "resource": "gpt-4", "adjust": { "nope": 1 } });
    server
        .post("/v1/adjust", unknown)
        .await
        .problem(400, "invalid-request");
}

#[tokio::test]
async fn an_unknown_lease_names_the_likely_causes() {
    let server = TestServer::start().await;
    let path = |id: &str| format!("/v1/leases/{id}/commit");
    let unknown = server.post(&path(&"0".repeat(32)), json!({})).await;
    let problem = unknown.problem(404, "lease-not-found");
    for cause in ["id is wrong", "ended long ago", "restarted", "another server"] {
        assert!(problem["detail"].as_str().unwrap().contains(cause), "{problem}");
    }
    let other = server.post(&path("a-b-c-d"), json!({})).await;
    let problem = other.problem(404, "lease-not-found");
    assert!(
        problem["detail"].as_str().unwrap().contains("--advertise"),
        "{problem}"
    );
}

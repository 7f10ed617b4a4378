//! Entities, limits, usage and the audit trail.

use std::collections::BTreeSet;

use hyper::Method;
use serde_json::{Value, json};
use zae_limiter::RateLimiter;
use zae_limiter_server::Settings;

use crate::client::TestServer;

async fn empty() -> TestServer {
    TestServer::on(RateLimiter::embedded(), Settings::default(), None).await
}

#[tokio::test]
async fn all_kinds_of_limits_are_set_shown_and_enforced() {
    let server = empty().await;
    let limits = json!([
        { "name": "parallel", "concurrency": 1, "expires_after_seconds": 600 },
        { "name": "rpm", "capacity": 100, "burst": 100, "refill_amount": 100, "refill_period_seconds": 60 },
        { "name": "spend", "quota": 10, "per": "month in Europe/Berlin", "alert_at": [80, 100] },
    ]);
    let stored = server
        .put("/v1/limits", json!({ "limits": limits }))
        .await
        .expect(200);
    assert_eq!(stored.json()["limits"], limits);
    let call = |spend: u64| {
        let consume = json!({ "rpm": 1, "parallel": 1, "spend": spend });
        json!({ "entity": "user-1", "resource": "gpt-4", "consume": consume })
    };
    let first = server.post("/v1/acquire", call(4)).await.expect(200);
    assert_eq!(
        first.header("ratelimit-policy"),
        Some(r#""parallel";q=1, "rpm";q=100;w=60, "spend";q=10;w=2678400"#)
    );
    let refused = server.post("/v1/acquire", call(1)).await.expect(429);
    assert_eq!(refused.json()["violated-policies"], json!(["parallel"]));
    let path = "/v1/entities/user-1/resources/gpt-4/available";
    let left = server.get(path).await.expect(200).json();
    assert_eq!(left["limits"][2]["resets_at"], "2026-01-31T23:00:00Z");
    assert!(left["limits"][1].get("resets_at").is_none(), "{left}");
    let used = |index: usize| left["limits"][index].get("used").cloned();
    assert_eq!(
        [used(0), used(1), used(2)],
        [Some(json!(1)), None, Some(json!(4))],
        "{left}"
    );
    let lease = first.json()["lease_id"].as_str().unwrap().to_owned();
    let commit = format!("/v1/leases/{lease}/commit");
    server.post(&commit, json!({})).await.expect(200);
    let refused = server.post("/v1/acquire", call(7)).await.expect(429);
    assert_eq!(refused.json()["violated-policies"], json!(["spend"]));
    assert_eq!(refused.json()["limits"][2]["resets_at"], "2026-01-31T23:00:00Z");

    let mixed = json!({ "limits": [{ "name": "a", "capacity": 1, "quota": 1, "per": "day" }] });
    let problem = server
        .put("/v1/limits", mixed)
        .await
        .problem(400, "invalid-request");
    let detail = problem["detail"].as_str().unwrap();
    assert!(
        detail.contains("either capacity, or quota and per, or concurrency"),
        "{detail}"
    );
}

#[tokio::test]
async fn an_entity_is_created_shown_changed_listed_and_deleted() {
    let server = empty().await;
    server
        .post("/v1/entities", json!({ "entity_id": "org-1" }))
        .await
        .expect(201);
    let user = json!({
        "entity_id": "user-1", "name": "User", "parent_id": "org-1", "cascade": true, "metadata": { "seats": 12 },
    });
    let created = server.post("/v1/entities", user.clone()).await.expect(201);
    assert_eq!(created.header("location"), Some("/v1/entities/user-1"));
    let shown = server.get("/v1/entities/user-1").await.expect(200).json();
    assert_eq!(shown, created.json());
    assert_eq!(
        shown,
        json!({
            "entity_id": "user-1", "name": "User", "parent_id": "org-1", "cascade": true, "metadata": { "seats": 12 },
            "created_at": "2026-01-31T12:00:00Z",
        })
    );
    let children = server.get("/v1/entities?parent=org-1").await.expect(200).json();
    assert_eq!(children, json!({ "items": [shown], "next": null }));

    let renamed = server
        .patch("/v1/entities/user-1", json!({ "name": "Other" }))
        .await
        .expect(200)
        .json();
    assert_eq!(
        (&renamed["name"], &renamed["parent_id"]),
        (&"Other".into(), &"org-1".into())
    );
    let noted = server
        .patch("/v1/entities/user-1", json!({ "metadata": { "tier": "gold" } }))
        .await;
    let noted = noted.expect(200).json();
    assert_eq!(noted["metadata"], json!({ "tier": "gold" }), "replaces all of it");
    let orphan = server
        .patch("/v1/entities/user-1", json!({ "parent_id": null }))
        .await;
    assert!(orphan.expect(200).json()["parent_id"].is_null());

    server
        .post("/v1/entities", user)
        .await
        .problem(409, "entity-exists");
    server.delete("/v1/entities/user-1").await.expect(204);
    server
        .delete("/v1/entities/user-1")
        .await
        .problem(404, "entity-not-found");
    server
        .get("/v1/entities/user-1")
        .await
        .problem(404, "entity-not-found");
}

#[tokio::test]
async fn parents_must_exist_and_children_protect_them() {
    let server = empty().await;
    let child = json!({ "entity_id": "user-1", "parent_id": "org-1" });
    server
        .post("/v1/entities", child.clone())
        .await
        .problem(422, "invalid-parent");
    server
        .post("/v1/entities", json!({ "entity_id": "org-1" }))
        .await
        .expect(201);
    server.post("/v1/entities", child).await.expect(201);
    server
        .delete("/v1/entities/org-1")
        .await
        .problem(409, "has-children");
    let cycle = server
        .patch("/v1/entities/org-1", json!({ "parent_id": "user-1" }))
        .await;
    cycle.problem(422, "invalid-parent");
}

#[tokio::test]
async fn a_list_comes_in_pages() {
    let server = empty().await;
    for number in 0..5 {
        let body = json!({ "entity_id": format!("user-{number}") });
        server.post("/v1/entities", body).await.expect(201);
    }
    let mut seen = BTreeSet::new();
    let mut path = "/v1/entities?page_size=2".to_owned();
    loop {
        let page = server.get(&path).await.expect(200).json();
        let items = page["items"].as_array().unwrap();
        assert!(items.len() <= 2, "{page}");
        seen.extend(
            items
                .iter()
                .map(|item| item["entity_id"].as_str().unwrap().to_owned()),
        );
        match page["next"].as_str() {
            Some(next) => path = format!("/v1/entities?page_size=2&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(seen.len(), 5, "{seen:?}");
    for wrong in [
        "page_size=0",
        "page_size=1001",
        "page_size=x",
        "cursor=x",
        "size=1",
    ] {
        server
            .get(&format!("/v1/entities?{wrong}"))
            .await
            .problem(400, "invalid-request");
    }
}

#[tokio::test]
async fn limits_of_every_level_are_set_shown_used_and_deleted() {
    let server = empty().await;
    let rpm = |capacity: u64| json!({ "limits": [{ "name": "rpm", "capacity": capacity }] });
    let whole = |capacity: u64| json!({ "name": "rpm", "capacity": capacity, "burst": capacity, "refill_amount": capacity, "refill_period_seconds": 60 });
    for (query, level, capacity) in [
        ("", "system", 10),
        ("?resource=gpt-4", "resource", 20),
        ("?entity=user-1", "entity_default", 30),
        ("?entity=user-1&resource=gpt-4", "entity", 40),
    ] {
        let path = format!("/v1/limits{query}");
        let before = server.get(&path).await.expect(200).json();
        assert_eq!((&before["level"], &before["limits"]), (&level.into(), &json!([])));
        assert!(before["config_version"].is_null());
        let set = server.put(&path, rpm(capacity)).await.expect(200).json();
        assert_eq!(set["limits"], json!([whole(capacity)]));
        assert_eq!(server.get(&path).await.expect(200).json(), set);
        assert_eq!(server.available("rpm").await, i64::try_from(capacity).unwrap());
    }
    let path = "/v1/limits?entity=user-1&resource=gpt-4";
    server.delete(path).await.expect(204);
    server.delete(path).await.expect(204);
    assert_eq!(server.available("rpm").await, 30);
}

#[tokio::test]
async fn setting_limits_replaces_what_the_level_stores() {
    let server = empty().await;
    let path = "/v1/limits?resource=gpt-4";
    let limit = json!({ "name": "jobs", "capacity": 10, "burst": 20, "refill_amount": 5, "refill_period_seconds": 90 });
    let first = server
        .put(path, json!({ "limits": [limit], "on_unavailable": "allow" }))
        .await
        .expect(200)
        .json();
    assert_eq!(
        (&first["limits"][0], &first["on_unavailable"]),
        (&limit, &"allow".into())
    );
    let second = server
        .put(path, json!({ "limits": [{ "name": "rpm", "capacity": 1 }] }))
        .await
        .expect(200)
        .json();
    assert!(second["on_unavailable"].is_null(), "{second}");
    assert_eq!(second["config_version"], 2);
}

#[tokio::test]
async fn invalid_limits_are_refused() {
    let server = empty().await;
    let limit = |limit: Value| json!({ "limits": [limit] });
    for (path, body, detail) in [
        (
            "/v1/limits",
            limit(json!({ "name": "rpm", "capacity": 0 })),
            "capacity 0 of limit rpm is invalid",
        ),
        (
            "/v1/limits",
            limit(json!({ "name": "r m", "capacity": 1 })),
            "limit name",
        ),
        (
            "/v1/limits",
            limit(json!({ "name": "rpm", "capacity": 5, "burst": 4 })),
            "burst 4 of limit rpm",
        ),
        (
            "/v1/limits",
            limit(json!({ "name": "rpm", "capacity": 5, "per": "day" })),
            "a limit has either capacity, or quota and per, or concurrency",
        ),
        (
            "/v1/limits",
            json!({ "limits": [], "on_unavailable": "maybe" }),
            "unknown variant `maybe`",
        ),
        ("/v1/limits?entity=a%23b", json!({ "limits": [] }), "entity id"),
        (
            "/v1/limits?level=system",
            json!({ "limits": [] }),
            "unknown field `level`",
        ),
    ] {
        let problem = server.put(path, body).await.problem(400, "invalid-request");
        assert!(problem["detail"].as_str().unwrap().contains(detail), "{problem}");
    }
}

#[tokio::test]
async fn changes_are_in_the_audit_trail_with_the_name_of_the_token() {
    let tokens = "ops admin admin-token-12345678";
    let limiter = RateLimiter::embedded();
    let server = TestServer::on(limiter, Settings::default(), Some(tokens.parse().unwrap())).await;
    let headers = [
        ("content-type", "application/json"),
        ("authorization", "Bearer admin-token-12345678"),
    ];
    let body = json!({ "entity_id": "user-1" }).to_string();
    server
        .send(Method::POST, "/v1/entities", &headers, body)
        .await
        .expect(201);
    let limits = json!({ "limits": [{ "name": "rpm", "capacity": 5 }] }).to_string();
    for query in ["", "?resource=gpt-4", "?entity=user-1"] {
        server
            .send(
                Method::PUT,
                &format!("/v1/limits{query}"),
                &headers,
                limits.clone(),
            )
            .await
            .expect(200);
    }
    for (query, actions) in [
        ("", vec!["limits_set"]),
        ("?resource=gpt-4", vec!["limits_set"]),
        ("?entity=user-1", vec!["limits_set", "entity_created"]),
    ] {
        let page = server
            .send(Method::GET, &format!("/v1/audit{query}"), &headers, "")
            .await
            .expect(200)
            .json();
        let events = page["items"].as_array().unwrap();
        let found: Vec<_> = events
            .iter()
            .map(|event| event["action"].as_str().unwrap())
            .collect();
        assert_eq!(found, actions, "{page}");
        assert!(events.iter().all(|event| event["principal"] == "ops"), "{page}");
    }
    let both = server
        .send(Method::GET, "/v1/audit?entity=a&resource=b", &headers, "")
        .await;
    both.problem(400, "invalid-request");
    server.get("/v1/audit").await.problem(401, "unauthorized");
}

#[tokio::test]
async fn usage_is_listed_by_entity_or_resource() {
    let server = empty().await;
    let none = json!({ "items": [], "next": null });
    for query in [
        "entity=user-1",
        "resource=gpt-4&window=hourly",
        "entity=user-1&resource=gpt-4&from=2026-01-01T00:00:00Z&until=2026-02-01T00:00:00Z",
    ] {
        assert_eq!(
            server.get(&format!("/v1/usage?{query}")).await.expect(200).json(),
            none
        );
    }
    for wrong in [
        "",
        "entity=a%23b",
        "entity=a&window=weekly",
        "entity=a&from=today",
        "entity=a&day=1",
    ] {
        server
            .get(&format!("/v1/usage?{wrong}"))
            .await
            .problem(400, "invalid-request");
    }
}

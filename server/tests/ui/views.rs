//! Every view is served, safely.

use zae_limiter_server::UiOptions;

use crate::ui::stage::{Stage, text};

/// Every view, and what its page must say.
pub(crate) const VIEWS: [(&str, &str); 14] = [
    ("/ui", "Busiest resources"),
    ("/ui/entities", "user@example.com"),
    ("/ui/entities?from=records", "Search team"),
    ("/ui/entities/key-1", "Limits"),
    ("/ui/entities/project-1", "key-2"),
    ("/ui/entities/project-1/children", "key-1"),
    ("/ui/entities/key-1/buckets/gpt-4", "of 600 tokens"),
    ("/ui/resources", "openai/embeddings"),
    ("/ui/resources/gpt-4", "Busiest entities"),
    ("/ui/limits", "rpm:600/min"),
    ("/ui/limits?resource=gpt-4", "rpm:30/min"),
    ("/ui/usage", "openai/embeddings"),
    ("/ui/usage?resource=gpt-4&window=daily", "tokens per day"),
    ("/ui/audit", "limits_set"),
];

#[tokio::test]
async fn every_view_has_no_inline_code_and_loads_nothing_from_elsewhere() {
    let stage = Stage::filled(UiOptions::default()).await;
    for (path, expected) in VIEWS {
        let response = stage.server.get(path).await.expect(200);
        let policy = response.header("content-security-policy").unwrap();
        assert!(
            policy.starts_with("default-src 'none'") && !policy.contains("unsafe"),
            "{policy}"
        );
        assert_eq!(response.header("cache-control"), Some("no-store"));
        assert_eq!(response.header("x-content-type-options"), Some("nosniff"));
        let page = text(&response);
        assert!(page.contains(expected), "{path} has no {expected}: {page}");
        assert!(!page.contains("class=\"alert\""), "{path}: {page}");
        for forbidden in [
            " style=",
            "<style",
            "onclick=",
            "javascript:",
            "http://",
            "https://",
        ] {
            assert!(!page.contains(forbidden), "{path} has {forbidden}");
        }
        assert_eq!(page.matches("<script").count(), 1, "{path}");
        assert!(page.contains("<script src=\"/ui/assets/script.js?v="), "{path}");
        assert!(!page.contains("/ui/limits/edit"), "{path} is read-only");
    }
}

#[tokio::test]
async fn assets_are_embedded_and_named_by_their_content() {
    let stage = Stage::empty(UiOptions::default(), None).await;
    let page = stage.page("/ui").await;
    for start in [
        "/ui/assets/style.css?v=",
        "/ui/assets/script.js?v=",
        "/ui/assets/icon.svg?v=",
    ] {
        let at = page.find(start).unwrap();
        let address = page[at..].split('"').next().unwrap();
        let response = stage.server.get(address).await.expect(200);
        assert!(response.header("cache-control").unwrap().contains("immutable"));
        assert!(!response.body.is_empty());
    }
    stage.server.get("/ui/assets/other.js").await.expect(404);
}

#[tokio::test]
async fn times_are_in_utc_until_the_script_knows_the_zone() {
    let stage = Stage::filled(UiOptions::default()).await;
    let page = stage.page("/ui/entities/project-1").await;
    let time = "<time datetime=\"2026-01-31T12:00:00Z\" title=\"2026-01-31 12:00:00 UTC\">2026-01-31 12:00:00 UTC</time>";
    assert!(page.contains(time), "{page}");
}

#[tokio::test]
async fn entities_are_found_by_the_beginning_of_their_id_and_come_in_pages() {
    let stage = Stage::filled(UiOptions::default()).await;
    let ids = |rows: &[serde_json::Value]| -> Vec<String> {
        rows.iter()
            .map(|row| row["entity_id"].as_str().unwrap().to_owned())
            .collect()
    };
    let all = stage.rows("/ui/entities", "entities").await;
    assert_eq!(ids(&all), ["key-1", "key-2", "project-1", "user@example.com"]);
    let keys = stage.rows("/ui/entities?prefix=key", "entities").await;
    assert_eq!(ids(&keys), ["key-1", "key-2"]);
    let later = stage
        .rows("/ui/entities?prefix=key&after=key-1", "entities")
        .await;
    assert_eq!(ids(&later), ["key-2"]);
    let here = stage
        .rows("/ui/entities?resource=openai%2Fembeddings", "entities")
        .await;
    assert_eq!(ids(&here), ["key-1", "project-1"], "the project is charged too");
    let whole = stage.server.get("/ui/entities?prefix=key-2").await.expect(303);
    assert_eq!(whole.header("location"), Some("/ui/entities/key-2"));
}

#[tokio::test]
async fn an_unknown_page_and_an_unknown_export_are_named() {
    let stage = Stage::empty(UiOptions::default(), None).await;
    let missing = stage.server.get("/ui/nowhere").await.expect(404);
    assert!(text(&missing).contains("There is no such page"));
    let missing = stage.server.get("/ui?export=other.csv").await.expect(404);
    assert!(text(&missing).contains("There is no such export"));
}

#[tokio::test]
async fn the_overview_says_how_the_stack_is_doing_or_why_that_is_not_known() {
    use zae_limiter_server::StackHealth;

    let facts = || vec![("Release".to_owned(), "1.2.3".to_owned())];
    let failed = UiOptions::default().stack_health(move || async move {
        Ok(StackHealth::new("UPDATE_ROLLBACK_COMPLETE", false, facts()))
    });
    let denied = UiOptions::default().stack_health(|| async { Err("access was denied".to_owned()) });
    for (options, expected) in [
        (
            UiOptions::default(),
            &["dot none", "Not checked by this server"][..],
        ),
        (
            UiOptions::default().without_stack(),
            &["dot none", "None: embedded file"],
        ),
        (
            failed,
            &["dot bad", "UPDATE_ROLLBACK_COMPLETE", "Release", "1.2.3"],
        ),
        (denied, &["dot bad", "access was denied"]),
    ] {
        let stage = Stage::empty(options, None).await;
        let page = stage.page("/ui").await;
        for text in expected {
            assert!(page.contains(text), "no {text}: {page}");
        }
    }
}

#[tokio::test]
async fn the_overview_asks_about_the_stack_once_in_ten_seconds() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let options = UiOptions::default().stack_health(move || {
        let number = count.fetch_add(1, Ordering::Relaxed) + 1;
        async move { Err(format!("report {number}")) }
    });
    let stage = Stage::empty(options, None).await;
    let views = futures::future::join_all((0..5).map(|_| stage.page("/ui"))).await;
    assert!(views.iter().all(|page| page.contains("report 1")), "{views:?}");
    stage.server.clock.advance(std::time::Duration::from_secs(10));
    assert!(stage.page("/ui").await.contains("report 2"));
    assert_eq!(asked.load(Ordering::Relaxed), 2);
}

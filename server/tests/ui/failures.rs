//! What goes wrong is shown where the data would be, with the cause.

use zae_limiter_server::UiOptions;
use zae_limiter_testing::connection::Fault;

use crate::ui::stage::{Stage, text};
use crate::ui::views::VIEWS;

#[tokio::test]
async fn denied_access_is_shown_in_place_on_every_view() {
    let stage = Stage::filled(UiOptions::default()).await;
    stage.limiter.repository().invalidate_config_cache();
    stage.connection.always(Fault::Denied);
    for (path, _) in VIEWS {
        let page = stage.page(path).await;
        assert!(page.contains("Access was denied"), "{path}: {page}");
        assert!(page.contains("on table limiter was denied"), "{path}: {page}");
        assert!(page.contains("zae-limiter policy"), "{path}");
        assert!(page.contains("<nav"), "{path} can still be left");
    }
}

#[tokio::test]
async fn what_was_not_looked_at_is_not_said_to_be_missing() {
    let stage = Stage::filled(UiOptions::default()).await;
    let page = stage.page("/ui?window=hourly").await;
    assert!(page.contains("No refusals were counted"), "{page}");
    assert!(page.contains("Not checked by this server"), "{page}");
    stage.limiter.repository().invalidate_config_cache();
    stage.connection.always(Fault::Denied);
    let page = stage.page("/ui?window=hourly").await;
    assert!(!page.contains("No refusals were counted"), "{page}");
}

#[tokio::test]
async fn an_export_that_cannot_be_loaded_is_no_missing_page() {
    let stage = Stage::filled(UiOptions::default()).await;
    stage.limiter.repository().invalidate_config_cache();
    stage.connection.always(Fault::Denied);
    for path in [
        "/ui?export=busiest.csv",
        "/ui/limits?export=levels.json",
        "/ui/audit?export=audit.json",
        "/ui/entities/key-1?export=limits.csv",
    ] {
        let response = stage.server.get(path).await.expect(503);
        assert!(text(&response).contains("Access was denied"), "{path}");
    }
}

#[tokio::test]
async fn a_part_that_fails_leaves_the_others_alone() {
    let stage = Stage::filled(UiOptions::default()).await;
    stage.connection.plan("Query", [Fault::Denied]);
    let page = stage.page("/ui/entities/key-2").await;
    assert_eq!(page.matches("class=\"alert\"").count(), 1, "{page}");
    assert!(page.contains("limits_set") || page.contains("rpm"), "{page}");
}

#[tokio::test]
async fn invalid_values_name_field_value_and_rule() {
    let stage = Stage::empty(UiOptions::default(), None).await;
    for (path, cause) in [
        ("/ui/entities/a%23b", "entity id"),
        ("/ui/resources/_default_", "resource"),
        ("/ui/usage?resource=gpt-4&from=noon", "it must be a time such as"),
        (
            "/ui/usage?resource=gpt-4&from=2026-01-31T12:00&until=2026-01-31T11:00",
            "it must not be after until",
        ),
        ("/ui?window=weekly", "it must be hourly, daily or monthly"),
    ] {
        let response = stage.server.get(path).await.expect(400);
        let page = text(&response);
        assert!(
            page.contains(cause) && page.contains("role=\"alert\""),
            "{path}: {page}"
        );
    }
    let page = stage.page("/ui/audit?entity=a&resource=b").await;
    assert!(
        page.contains("choose an entity or a resource, not both"),
        "{page}"
    );
}

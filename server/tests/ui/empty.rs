//! An empty table says what to do next.

use zae_limiter_server::UiOptions;

use crate::ui::stage::Stage;

#[tokio::test]
async fn every_empty_view_says_what_to_do_next() {
    let stage = Stage::empty(UiOptions::default(), None).await;
    for (path, advice) in [
        ("/ui", "zae-limiter resource set-defaults"),
        ("/ui", "or the aggregator of this table does not count refusals"),
        ("/ui/entities", "zae-limiter entity create"),
        ("/ui/entities?prefix=nobody", "No entity begins with nobody."),
        ("/ui/entities/nobody", "zae-limiter entity set-limits nobody"),
        (
            "/ui/entities/nobody/buckets/gpt-4",
            "zae-limiter entity set-limits nobody -r gpt-4",
        ),
        ("/ui/resources", "zae-limiter resource set-defaults"),
        ("/ui/resources/gpt-4", "zae-limiter resource set-defaults gpt-4"),
        ("/ui/limits", "zae-limiter system set-defaults"),
        ("/ui/usage", "zae-limiter resource set-defaults"),
        (
            "/ui/usage?resource=gpt-4",
            "Usage is counted a few seconds after the calls",
        ),
        ("/ui/audit", "Changes to entities and limits appear here"),
    ] {
        let page = stage.page(path).await;
        assert!(page.contains(advice), "{path} has no {advice}: {page}");
        assert!(page.contains("class=\"empty\""), "{path}");
    }
}

//! The page on an embedded table whose usage the process counts.

use zae_limiter::{Limit, RateLimiter};
use zae_limiter_server::{Server, UiOptions};
use zae_limiter_testing::Chromium;

use crate::client::{TestServer, noon};
use crate::ui::browser::keep;
use crate::ui::stage::text;

/// A server on a table in memory, after some calls and refusals. The engine stamps changes with the time of the machine, and
/// the page shows the last hours.
async fn used() -> TestServer {
    let limits = [
        Limit::custom("rpm", 1_000, 1_000, 1, 86_400).unwrap(),
        Limit::custom("tpm", 100_000, 100_000, 1, 86_400).unwrap(),
    ];
    let limiter = RateLimiter::embedded().count_usage(true).await.unwrap();
    limiter
        .repository()
        .set_resource_defaults("gpt-4", limits)
        .await
        .unwrap();
    for (user, calls, tokens) in [("ada", 5, 700), ("bob", 3, 2_000), ("eve", 2, 9_000)] {
        for _ in 0..calls {
            let call = limiter
                .acquire(user, "gpt-4")
                .consume("rpm", 1)
                .consume("tpm", tokens);
            call.commit().await.unwrap();
        }
    }
    limiter.repository().catch_up_usage().await.unwrap();
    let options = UiOptions::default().without_stack();
    let server = Server::builder(limiter).ui(options);
    let server = server.bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    TestServer::running(server, noon())
}

const USAGE: &str = "/ui/usage?resource=gpt-4&window=hourly";

#[tokio::test]
async fn the_page_shows_usage_without_a_stack() {
    let server = used().await;
    let page = text(&server.get(USAGE).await.expect(200));
    for shown in ["Everyone on gpt-4", "<svg", "tpm"] {
        assert!(page.contains(shown), "{shown} is missing: {page}");
    }
    let overview = text(&server.get("/ui").await.expect(200));
    assert!(overview.contains("This process counts its usage."), "{overview}");
    // Of one hour, or of two if one ends during the test.
    let usage = server
        .get("/v1/usage?resource=gpt-4&window=hourly")
        .await
        .expect(200)
        .json();
    let tokens = usage["items"].as_array().unwrap().iter();
    let tokens: i64 = tokens.map(|item| item["counters"]["tpm"].as_i64().unwrap()).sum();
    assert_eq!(tokens, 27_500, "{usage}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_charts_of_an_embedded_table_are_drawn() {
    let server = used().await;
    let address = format!("http://{}{USAGE}", server.address);
    let driven = tokio::task::spawn_blocking(move || {
        let Some(mut browser) = Chromium::start() else {
            return;
        };
        browser.width(1200, false);
        browser.open(&address);
        let bars = browser.evaluate("document.querySelectorAll('.charts svg').length");
        assert!(bars.as_u64().unwrap() >= 2, "{bars}");
        if let Some(folder) = std::env::var_os("ZAE_SCREENSHOTS") {
            let file = std::path::Path::new(&folder).join("embedded.png");
            keep(&browser.screenshot(), &file);
        }
    });
    driven.await.unwrap();
}

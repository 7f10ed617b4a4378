//! The UI in a headless Chromium. Skipped with a message where there is none.
//!
//! With `ZAE_SCREENSHOTS=FOLDER`, the pictures of the documentation are written there (`make screenshots`).

use serde_json::Value;
use zae_limiter_server::{StackHealth, UiOptions};
use zae_limiter_testing::Chromium;

use crate::ui::stage::{Stage, fill_kinds};

const AXE: &str = include_str!("vendor/axe.min.js");

/// The views of the pictures, and their names.
const PICTURES: [(&str, &str); 12] = [
    ("overview", "/ui"),
    ("entities", "/ui/entities"),
    ("entity", "/ui/entities/key-1"),
    ("bucket", "/ui/entities/key-2/buckets/gpt-4"),
    ("resource", "/ui/resources/gpt-4"),
    ("limits", "/ui/limits"),
    ("usage", "/ui/usage?resource=gpt-4&window=daily"),
    ("audit", "/ui/audit"),
    ("edit", "/ui/limits/edit?resource=gpt-4"),
    ("budget", "/ui/entities/team-1/buckets/claude"),
    ("model", "/ui/resources/claude"),
    ("edit-budget", "/ui/limits/edit?resource=claude"),
];

/// Runs a test that drives a browser, with the address of a server on a filled table.
async fn with_browser(test: impl FnOnce(&mut Chromium, &str) + Send + 'static) {
    let stack = || {
        let facts = [("Release", "0.1.0"), ("Updated", "2026-01-30T09:12:00Z")];
        let facts = facts.map(|(name, value)| (name.to_owned(), value.to_owned()));
        StackHealth::new("UPDATE_COMPLETE", true, facts.into())
    };
    let options = UiOptions::default()
        .edit(true)
        .stack_health(move || async move { Ok(stack()) });
    let stage = Stage::filled(options).await;
    let _holds_permits = fill_kinds(&stage.limiter).await;
    let base = format!("http://{}", stage.server.address);
    let driven = tokio::task::spawn_blocking(move || {
        if let Some(mut browser) = Chromium::start() {
            test(&mut browser, &base);
        }
    });
    driven.await.unwrap();
}

/// What axe finds wrong with the page.
fn violations(browser: &mut Chromium) -> Vec<String> {
    browser.evaluate(&format!("{AXE}; 0"));
    let found = browser.evaluate("axe.run(document).then((result) => result.violations)");
    let found = found.as_array().unwrap().iter();
    found
        .map(|violation| {
            let nodes = violation["nodes"].as_array().unwrap().iter();
            let nodes: Vec<_> = nodes
                .map(|node| node["html"].to_string() + &node["any"].to_string())
                .collect();
            format!(
                "{}: {}\n  {}",
                violation["id"],
                violation["help"],
                nodes.join("\n  ")
            )
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_view_is_accessible_in_both_themes_and_fits_a_phone() {
    with_browser(|browser, base| {
        for (name, path) in PICTURES {
            for (theme, width, mobile) in [
                ("light", 1200, false),
                ("dark", 1200, false),
                ("light", 390, true),
            ] {
                browser.theme(theme);
                browser.width(width, mobile);
                browser.open(&format!("{base}{path}"));
                let picture = browser.screenshot();
                // The documentation has every view in light, and one in dark and on a phone.
                let shown = name == "overview" || (theme == "light" && !mobile);
                if let Some(folder) = std::env::var_os("ZAE_SCREENSHOTS").filter(|_| shown) {
                    let suffix = match (theme, mobile) {
                        (_, true) => "-phone",
                        ("dark", _) => "-dark",
                        _ => "",
                    };
                    keep(
                        &picture,
                        &std::path::Path::new(&folder).join(format!("{name}{suffix}.png")),
                    );
                }
                let found = violations(browser);
                assert!(found.is_empty(), "{name}, {theme}, {width}: {}", found.join("\n"));
                let wide = browser.evaluate("document.documentElement.scrollWidth");
                assert!(
                    wide.as_u64().unwrap() <= width.into(),
                    "{name} is {wide} wide on {width}"
                );
                // No table has to be scrolled sideways either.
                let cut = browser.evaluate(
                    "[...document.querySelectorAll('.table-frame')].filter((frame) => frame.scrollWidth > frame.clientWidth) \
                     .map((frame) => frame.getAttribute('aria-label'))",
                );
                assert_eq!(cut, Value::from(Vec::<Value>::new()), "{name}, {theme}, {width}");
            }
        }
    })
    .await;
}

pub(crate) fn keep(base64: &str, file: &std::path::Path) {
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits: Vec<u32> = base64
        .bytes()
        .filter_map(|byte| alphabet.iter().position(|digit| *digit == byte))
        .map(|digit| u32::try_from(digit).unwrap())
        .collect();
    let mut bytes = vec![];
    for group in digits.chunks(4) {
        let bits = group.iter().fold(0, |bits, digit| bits << 6 | digit) << (6 * (4 - group.len()));
        bytes.extend(&bits.to_be_bytes()[1..group.len()]);
    }
    std::fs::write(file, bytes).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_view_is_reached_by_clicking() {
    with_browser(|browser, base| {
        browser.open(&format!("{base}/ui"));
        let title = |browser: &mut Chromium| browser.evaluate("document.querySelector('h1').textContent");
        for view in ["Entities", "Resources", "Limits", "Usage", "Audit", "Overview"] {
            browser.click("nav a", view);
            let current = browser.evaluate("document.querySelector('nav [aria-current=page]').textContent");
            assert_eq!(current, view);
        }
        browser.click("#busiest a", "gpt-4");
        assert_eq!(title(browser), "gpt-4");
        browser.click("#busiest a", "key-1");
        assert_eq!(title(browser), "key-1 on gpt-4");
        browser.click("nav a", "Entities");
        browser.click("#entities a", "key-2");
        assert_eq!(title(browser), "key-2");
        browser.click(".about a", "project-1");
        assert_eq!(title(browser), "project-1");
        browser.click("#children a", "key-1");
        assert_eq!(title(browser), "key-1");
        browser.click(".choice a", "Days");
        let axis = browser.evaluate("document.querySelector('.chart .unit').textContent");
        assert_eq!(axis, " acquires per day");
        browser.click("nav a", "Limits");
        browser.click(".tree a", "Show the limits of entities on gpt-4");
        assert!(
            browser
                .evaluate("document.body.textContent")
                .as_str()
                .unwrap()
                .contains("rpm:30/min")
        );
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_keyboard_reaches_the_content_the_views_and_the_search_in_that_order() {
    with_browser(|browser, base| {
        browser.width(1200, false);
        browser.open(&format!("{base}/ui/limits"));
        let mut order = vec![];
        for _ in 0..9 {
            browser.press("Tab", 9);
            order.push(browser.evaluate("document.activeElement.textContent || document.activeElement.id"));
        }
        let expected = [
            "Skip to content",
            "zae-limiterlimiter",
            "Overview",
            "Entities",
            "Resources",
            "Limits",
            "Usage",
            "Audit",
            "search",
        ];
        assert_eq!(order, expected.map(Value::from));
        browser.evaluate("document.activeElement.blur()");
        browser.press("/", 191);
        assert_eq!(browser.evaluate("document.activeElement.id"), "search");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn times_are_in_the_viewers_zone_with_utc_on_hover() {
    with_browser(|browser, base| {
        browser.open(&format!("{base}/ui/entities/project-1"));
        let text = browser.evaluate("document.querySelector('.about time').textContent");
        // Browsers differ in the space before PM.
        let text = text.as_str().unwrap().replace('\u{202f}', " ");
        assert_eq!(
            text, "Jan 31, 2026, 1:00:00 PM",
            "noon in UTC is one o'clock in Berlin"
        );
        let title = browser.evaluate("document.querySelector('.about time').title");
        assert_eq!(title, "2026-01-31 12:00:00 UTC");
        let zone = browser.evaluate("document.querySelector('[data-zone]').textContent");
        assert_eq!(zone, "Times are in Europe/Berlin; hover for UTC");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_live_view_follows_the_bucket_and_can_be_paused() {
    with_browser(|browser, base| {
        browser.open(&format!("{base}/ui/entities/key-1/buckets/gpt-4"));
        let state = "new Promise((done) => { const state = document.querySelector('[data-live-state]'); \
                     const look = () => state.dataset.state === 'live' ? done(state.textContent) : setTimeout(look, 20); \
                     look(); })";
        assert_eq!(browser.evaluate(state), "Live, once a second");
        assert_eq!(browser.evaluate("document.querySelector('.gauge .big').textContent"), "599");
        browser.evaluate("document.querySelector('[data-live-pause]').click()");
        assert_eq!(browser.evaluate("document.querySelector('[data-live-state]').textContent"), "Paused");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_is_changed_in_the_browser_after_a_confirmation() {
    with_browser(|browser, base| {
        browser.open(&format!("{base}/ui/limits/edit?resource=gpt-4"));
        browser.evaluate("document.querySelector('[name=capacity]').value = '750'");
        browser.click("button", "Review the change");
        let page = browser.evaluate("document.querySelector('.compare').textContent");
        assert!(page.as_str().unwrap().contains("rpm:750/min"), "{page}");
        browser.click("button", "Change the limits");
        assert_eq!(
            browser.evaluate("document.querySelector('[role=status]').textContent"),
            "The change is stored. Live buckets follow within a minute."
        );
        let tree = browser.evaluate("document.querySelector('.tree').textContent");
        assert!(tree.as_str().unwrap().contains("rpm:750/min"), "{tree}");
    })
    .await;
}

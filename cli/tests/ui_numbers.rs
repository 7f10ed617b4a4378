//! The numbers that a browser shows are those of the command's JSON.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use zae_limiter::usage::{Window, WindowKind};
use zae_limiter::{Limit, Timestamp};
use zae_limiter_testing::Chromium;

use crate::table::{put, snapshot};
use crate::tool::Bench;
use crate::ui::Looking;

const NOON: &str = "2026-01-31T12:00:00Z";

/// What an aggregator has counted in a window: entity, acquires, tokens and refusals.
const COUNTED: [(&str, i64, i64, i64); 2] = [("user-1", 1_234, 56_789, 0), ("user-2", 7, 800, 41)];

fn this_month() -> Window {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    WindowKind::Monthly.window_at(Timestamp::from_seconds(i64::try_from(now.as_secs()).unwrap()))
}

/// The windows that are counted: an hour of the past, and months so that the test may run into the next one.
fn windows() -> [Window; 3] {
    let month = this_month();
    let hour = WindowKind::Hourly.window_at(Timestamp::parse(NOON).unwrap());
    [hour, month, WindowKind::Monthly.window_at(month.end())]
}

fn count(bench: &Bench) {
    let counted = |window: Window| {
        COUNTED.map(|(entity, acquires, tokens, refusals)| {
            let by_limit = [("rpd", acquires), ("tpd", tokens)];
            snapshot(entity, &window, acquires, &by_limit, refusals)
        })
    };
    put(bench, windows().into_iter().flat_map(counted));
}

/// A table with limits that gain a token a day, so that numbers do not change while the test runs.
fn filled() -> Bench {
    let bench = Bench::new();
    for arguments in [
        &["system", "set-defaults", "-l", "rpd:1/day:1000"][..],
        &[
            "resource",
            "set-defaults",
            "gpt-4",
            "-l",
            "rpd:1/day:500",
            "-l",
            "tpd:1/day:90000",
        ],
        &["entity", "create", "org"],
        &["entity", "create", "user-1", "--parent", "org"],
        &[
            "entity",
            "set-limits",
            "user-2",
            "-r",
            "gpt-4",
            "-l",
            "rpd:1/day:30",
            "-l",
            "tpd:1/day:7000",
        ],
        &[
            "entity",
            "set-limits",
            "user-2",
            "-r",
            "gpt-4",
            "-l",
            "rpd:1/day:40",
            "-l",
            "tpd:1/day:7000",
        ],
        &["acquire", "user-1", "gpt-4", "-c", "rpd:120", "-c", "tpd:40000"],
    ] {
        bench.ok(arguments);
    }
    count(&bench);
    bench
}

/// The rows of a table as the browser shows it: the text of each cell by the title of its column.
fn rows(browser: &mut Chromium, id: &str) -> Vec<Value> {
    let script = format!(
        "(() => {{ const heads = [...document.querySelectorAll('#{id} thead th')].map((e) => e.textContent); \
         return [...document.querySelectorAll('#{id} tbody tr')].map((row) => Object.fromEntries( \
         [...row.children].map((cell, index) => [heads[index], cell.innerText.trim()]))); }})()"
    );
    let rows = browser.evaluate(&script);
    rows.as_array().unwrap().clone()
}

/// The number that a cell shows.
fn number(cell: &Value) -> i64 {
    let digits = cell.as_str().unwrap().replace(',', "").replace('\u{2212}', "-");
    digits
        .parse()
        .unwrap_or_else(|_| panic!("{cell} is not a number"))
}

fn limits_text(config: &Value) -> String {
    let limits = config["limits"].as_array().unwrap().iter();
    let texts = limits.map(|limit| {
        let number = |field: &str| limit[field].as_u64().unwrap();
        let limit = Limit::custom(
            limit["name"].as_str().unwrap(),
            number("capacity"),
            number("burst"),
            number("refill_amount"),
            number("refill_period_seconds"),
        );
        limit.unwrap().to_string()
    });
    texts.collect::<Vec<_>>().join(" ")
}

#[test]
fn every_view_shows_the_numbers_of_the_command() {
    let bench = filled();
    // Only one process at a time may hold the file, so that the command comes first.
    let available = bench.json(&["available", "user-1", "gpt-4"]);
    let system = bench.json(&["system", "get-defaults"]);
    let resource = bench.json(&["resource", "get-defaults", "gpt-4"]);
    let own = bench.json(&["entity", "get-limits", "user-2", "-r", "gpt-4"]);
    let month = bench.json(&["usage", "list", "-r", "gpt-4", "-w", "monthly"]);
    let hour = bench.json(&["usage", "list", "-r", "gpt-4", "-w", "hourly"]);
    let audit = bench.json(&["audit", "list", "-e", "user-2"]);
    let page = Looking::start(&bench, &[], &[]);
    let Some(mut browser) = Chromium::start() else {
        return;
    };
    let browser = &mut browser;
    let url = page.listening["url"].as_str().unwrap();
    let base = url.split("/ui").next().unwrap();
    browser.width(1_200, false);
    browser.open(url);

    // The overview.
    browser.open(&format!("{base}/ui?window=monthly"));
    let snapshots: Vec<_> = month["snapshots"]
        .as_array()
        .unwrap()
        .iter()
        .take(COUNTED.len())
        .collect();
    let sum = |field: &str| -> i64 { snapshots.iter().map(|of| of[field].as_i64().unwrap()).sum() };
    let busiest = rows(browser, "busiest");
    assert_eq!(busiest[0]["Resource"], "gpt-4");
    assert_eq!(number(&busiest[0]["Acquires"]), sum("total_events"));
    assert_eq!(number(&busiest[0]["Entities"]), 2);
    let refused = rows(browser, "refused");
    assert_eq!(refused.len(), 1);
    assert_eq!(number(&refused[0]["Refused"]), sum("refusals"));

    // An entity, and its bucket.
    let levels = available["levels"].as_array().unwrap();
    browser.open(&format!("{base}/ui/entities/user-1"));
    let shown = rows(browser, "limits");
    assert_eq!(shown.len(), levels.len());
    for (row, level) in shown.iter().zip(levels) {
        assert_eq!(row["Limit"], level["limit_name"]);
        for (title, field) in [
            ("Available", "available"),
            ("Burst", "burst"),
            ("Capacity", "capacity"),
        ] {
            assert_eq!(
                number(&row[title]),
                level[field].as_i64().unwrap(),
                "{row} {level}"
            );
        }
    }
    browser.open(&format!("{base}/ui/entities/user-1/buckets/gpt-4"));
    let gauges = browser.evaluate("[...document.querySelectorAll('.gauge .big')].map((e) => e.textContent)");
    let gauges: Vec<_> = gauges.as_array().unwrap().iter().map(number).collect();
    let expected: Vec<_> = levels
        .iter()
        .map(|level| level["available"].as_i64().unwrap())
        .collect();
    assert_eq!(gauges, expected);

    // Limits at three levels.
    browser.open(&format!("{base}/ui/limits?resource=gpt-4"));
    let levels = rows(browser, "levels");
    let limits: Vec<_> = levels.iter().map(|row| row["Limits"].clone()).collect();
    assert_eq!(
        limits,
        [&system, &resource, &own].map(|config| json!(limits_text(config)))
    );
    let versions: Vec<_> = levels.iter().map(|row| number(&row["Version"])).collect();
    let expected = [&system, &resource, &own].map(|config| config["config_version"].as_i64().unwrap());
    assert_eq!(versions, expected);

    // A resource, and its usage.
    browser.open(&format!("{base}/ui/resources/gpt-4?window=monthly"));
    assert_eq!(
        number(&rows(browser, "usage")[0]["Acquires"]),
        sum("total_events")
    );
    browser.open(&format!(
        "{base}/ui/usage?resource=gpt-4&window=hourly&entity=user-1&from=2026-01-31T12:00&until=2026-01-31T13:00"
    ));
    let of_user = hour["snapshots"]
        .as_array()
        .unwrap()
        .iter()
        .find(|of| of["entity_id"] == "user-1" && of["window_start"] == NOON);
    let usage = rows(browser, "usage");
    assert_eq!(usage.len(), 1);
    assert_eq!(number(&usage[0]["Acquires"]), of_user.unwrap()["total_events"]);
    for limit in ["rpd", "tpd"] {
        let shown = number(&usage[0][format!("{limit} tokens")]);
        assert_eq!(shown, of_user.unwrap()["counters"][limit], "{limit}");
    }

    // The audit log, with what was changed.
    browser.open(&format!("{base}/ui/audit?entity=user-2"));
    let ids = browser.evaluate("[...document.querySelectorAll('.event summary')].map((e) => e.title)");
    let listed = audit["events"].as_array().unwrap().iter();
    assert_eq!(
        ids,
        listed.map(|event| event["event_id"].clone()).collect::<Value>()
    );
    let changed = &rows(browser, "audit")[0]["What changed"];
    assert_eq!(changed, "rpd 1/day:30 → 1/day:40");
}

//! The cost page: its units are measured, and its dollars are computed from its one table of prices.

use std::collections::BTreeMap;
use std::process::Command;

use crate::book::{markdown, pages, tables};

/// The units of each path, measured by the example.
#[path = "../../../limiter/examples/costs/meter.rs"]
mod meter;
#[allow(dead_code, reason = "the example prints the rest")]
#[path = "../../../limiter/examples/costs/paths.rs"]
mod paths;

fn page() -> String {
    pages::read("docs/operate/cost.md")
}

/// The price of something, in dollars.
fn price(what: &str) -> f64 {
    let page = page();
    let rows = pages::rows(pages::section(&page, "Prices"));
    let row = rows.iter().find(|row| row[0] == what);
    let row = row.unwrap_or_else(|| panic!("there is no price of {what}"));
    row[1].parse().unwrap()
}

fn read() -> f64 {
    price("a million read request units")
}

fn write() -> f64 {
    price("a million write request units")
}

#[tokio::test(start_paused = true)]
async fn the_cost_page_says_what_is_measured() {
    let measured: BTreeMap<_, _> = paths::measure()
        .await
        .unwrap()
        .into_iter()
        .map(|cost| {
            let (reads, writes) = (cost.bill.read_units, cost.bill.write_units);
            let dollars = reads * read() + writes * write();
            (
                cost.path.to_owned(),
                [
                    format!("{reads:.1}"),
                    format!("{writes:.1}"),
                    format!("{dollars:.4}"),
                ],
            )
        })
        .collect();
    let page = page();
    let rows = pages::rows(pages::section(&page, "A million calls"));
    assert!(rows.len() > 10);
    for row in &rows[1..] {
        assert_eq!(
            measured.get(&row[0]).map(|cost| &cost[..]),
            Some(&row[1..]),
            "{}",
            row[0]
        );
    }
}

#[test]
fn dashboard_and_readme_have_the_prices_of_the_page() {
    let panels = pages::read("template/src/resources/dashboard/panels.rs");
    for (name, price) in [("READ_PRICE", read()), ("WRITE_PRICE", write())] {
        let constant = format!("const {name}: f64 = {price}e-6;");
        assert!(panels.contains(&constant), "the dashboard lacks {constant}");
    }
    let readme = pages::read("README.md");
    assert!(readme.contains(&format!("${} per million", write())), "README.md");
}

#[test]
fn the_parts_of_a_month_are_computed_from_the_prices() {
    let page = page();
    let month = pages::section(&page, "Per month");
    let alarms = tables::alarms().len();
    let is_metric = |name: &String| !tables::NOT_METRICS.contains(&name.as_str());
    let of_resources = ["Acquires", "Resource"];
    let metrics = [tables::aggregator_fields(), tables::archiver_fields()]
        .iter()
        .flatten()
        .filter(|name| is_metric(name) && !of_resources.contains(&name.as_str()))
        .count();
    // A batch of 5 seconds, and 30 days.
    let invocations = 30 * 24 * 3600 / 5;
    let count = |number: usize| u32::try_from(number).unwrap();
    let seconds = f64::from(count(invocations)) * 0.030 * 0.25;
    for figure in [
        format!(
            "{alarms} alarms: ${:.2}",
            f64::from(count(alarms)) * price("an alarm, per month")
        ),
        format!(
            "{metrics} metrics while they run: ${:.2}",
            f64::from(count(metrics)) * price("a custom metric, per month")
        ),
        format!(
            "a million buckets are ${:.2}",
            price("a GB of storage, per month")
        ),
        format!(
            "${:.2} per million buckets",
            price("a GB with point-in-time recovery, per month")
        ),
        format!(
            "518,400 invocations are ${:.2}",
            0.518_4 * price("a million invocations of Lambda")
        ),
        format!(
            "30 ms at 256 MB each are ${:.2}",
            seconds * price("a GB-second of Lambda")
        ),
    ] {
        assert!(month.contains(&figure), "{figure} is not in\n{month}");
    }
    assert_eq!(invocations, 518_400);
}

/// What the calculator prints, with other traffic if given.
fn calculated(call: Option<&str>) -> String {
    let page = page();
    let blocks = markdown::blocks(pages::section(&page, "Calculator"));
    let program = &blocks[0].text;
    let (function, example) = program.split_once("\nprint(").unwrap();
    let call = call.map_or_else(|| format!("print({example}"), |call| format!("print({call})"));
    let output = Command::new("python3")
        .args(["-c", &format!("{function}\n{call}\n")])
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_calculator_prints_what_the_page_says_with_the_prices_of_the_page() {
    let page = page();
    let blocks = markdown::blocks(pages::section(&page, "Calculator"));
    assert_eq!(calculated(None).trim(), blocks[1].text);
    let program = &blocks[0].text;
    for price in [
        format!("{}e-6 * writes", write()),
        format!("{}e-6 * (3", read()),
        format!("24 * {:.2}", price("an alarm, per month")),
        format!("(17 + resources) * {:.2}", price("a custom metric, per month")),
    ] {
        assert!(program.contains(&price), "{price}");
    }
}

#[test]
fn the_worked_examples_are_calculated() {
    let page = page();
    let examples = pages::section(&page, "Worked examples");
    let gateway = "acquires=10e6, corrections=10e6, pair_minutes=500 * 480 * 22, resources=2";
    for (call, parts) in [
        (
            format!("month({gateway})"),
            &["acquires", "reads", "usage", "stack", "together"][..],
        ),
        (format!("month({gateway}, levels=2)"), &["acquires"]),
        // 100 a minute, and a read a second, for 30 days.
        (
            "month(acquires=100 * 60 * 24 * 30, refusal_reads=3600 * 24 * 30)".to_owned(),
            &["acquires", "reads"],
        ),
    ] {
        for part in parts {
            let figure = calculated(Some(&format!("'$%.2f' % {call}['{part}']")));
            let figure = format!("**{}**", figure.trim());
            assert!(examples.contains(&figure), "{call}: {part} is {figure}");
        }
    }
}

//! Tables that repeat what the code says.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use zae_limiter::LimiterStats;
use zae_limiter_aggregator::{Aggregator, DynamoDb};
use zae_limiter_archiver::{Archiver, S3};
use zae_limiter_function::{Function, Level, Queue, Report};
use zae_limiter_template::{Accepts, StackOptions};

use crate::pages;

/// The units of each path, measured by the example.
#[path = "../../../limiter/examples/costs/meter.rs"]
mod meter;
#[allow(dead_code, reason = "the example prints the rest")]
#[path = "../../../limiter/examples/costs/paths.rs"]
mod paths;

/// On-demand prices of the cost page, in dollars per million units.
const READ: f64 = 0.125;
const WRITE: f64 = 0.625;

#[tokio::test(start_paused = true)]
async fn the_cost_page_says_what_is_measured() {
    let measured: BTreeMap<_, _> = paths::measure()
        .await
        .unwrap()
        .into_iter()
        .map(|cost| {
            let (read, write) = (cost.bill.read_units, cost.bill.write_units);
            let dollars = read * READ + write * WRITE;
            (
                cost.path.to_owned(),
                [
                    format!("{read:.1}"),
                    format!("{write:.1}"),
                    format!("{dollars:.4}"),
                ],
            )
        })
        .collect();
    let page = pages::read("docs/operate/cost.md");
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
    assert!(
        page.contains(&format!("${WRITE} per million write"))
            && page.contains(&format!("${READ} per million read"))
    );
    let panels = pages::read("template/src/resources/dashboard/panels.rs");
    assert!(
        panels.contains("0.125e-6") && panels.contains("0.625e-6"),
        "the dashboard has other prices"
    );
}

#[test]
fn the_options_page_has_every_option() {
    let mut table = String::from("| Option | Default | Accepts | Meaning |\n|---|---|---|---|\n");
    for field in StackOptions::fields() {
        let default = match &field.default {
            Value::Null => "not set".to_owned(),
            Value::String(text) => format!("`{text}`"),
            Value::Object(map) if map.is_empty() => "none".to_owned(),
            other => format!("`{other}`"),
        };
        let meaning = field.description.split(" Default: ").next().unwrap();
        let row = format!(
            "| `{}` | {default} | {} | {meaning} |\n",
            field.name,
            accepted(field.accepts)
        );
        table.push_str(&row);
    }
    let page = pages::read("docs/reference/options.md");
    assert!(
        page.ends_with(&table),
        "docs/reference/options.md must end with this table:\n{table}"
    );
}

fn accepted(accepts: Accepts) -> String {
    match accepts {
        Accepts::Anything => "true, false".to_owned(),
        Accepts::Range { least, most } => format!("{least} to {most}"),
        Accepts::Numbers(numbers) => {
            let numbers: Vec<_> = numbers.iter().map(ToString::to_string).collect();
            numbers.join(", ")
        }
        Accepts::OneOf(words) => words
            .iter()
            .map(|word| format!("`{word}`"))
            .collect::<Vec<_>>()
            .join(", "),
        Accepts::Text { .. } => "text".to_owned(),
        Accepts::Windows => "`hourly`, `daily`, `monthly`".to_owned(),
        Accepts::Tags => "tags by key".to_owned(),
    }
}

#[test]
fn the_errors_page_has_every_variant() {
    let source = pages::read("limiter/src/error.rs");
    let variants = source
        .split("pub enum Error {")
        .nth(1)
        .unwrap()
        .split("\n}\n")
        .next()
        .unwrap();
    let variants: BTreeSet<String> = variants
        .lines()
        .filter_map(|line| line.strip_prefix("    "))
        .filter(|line| line.starts_with(|first: char| first.is_ascii_uppercase()))
        .map(|line| {
            line.split(|c: char| !c.is_alphanumeric())
                .next()
                .unwrap()
                .to_owned()
        })
        .collect();
    let page = pages::read("docs/reference/errors.md");
    let listed: BTreeSet<String> = pages::rows(&page)[1..]
        .iter()
        .map(|row| row[0].trim_matches('`').to_owned())
        .collect();
    assert_eq!(listed, variants);
    assert!(variants.len() > 20, "{variants:?}");
}

/// Alarm name to threshold and number of periods, of the default template.
fn alarms() -> BTreeMap<String, (f64, u64)> {
    let template: Value =
        serde_json::from_str(&pages::read("template/rendered/cloudformation/zae-limiter.json")).unwrap();
    let resources = template["Resources"].as_object().unwrap().values();
    let alarms = resources.filter(|resource| resource["Type"] == "AWS::CloudWatch::Alarm");
    alarms
        .map(|alarm| {
            let properties = &alarm["Properties"];
            let name = properties["AlarmName"]["Fn::Sub"].as_str().unwrap();
            let name = name.strip_prefix("${AWS::StackName}-").unwrap().to_owned();
            let threshold = properties["Threshold"].as_f64().unwrap();
            assert_eq!(properties["Period"], 300, "{name}");
            (
                name,
                (threshold, properties["EvaluationPeriods"].as_u64().unwrap()),
            )
        })
        .collect()
}

#[test]
fn the_alarms_page_has_every_alarm_with_its_threshold() {
    let alarms = alarms();
    let page = pages::read("docs/operate/alarms.md");
    let table = page.split("## Runbooks").next().unwrap();
    let mut listed = BTreeSet::new();
    for row in &pages::rows(table)[1..] {
        for name in pages::code_spans(&row[0]) {
            let (threshold, periods) = alarms
                .get(&name)
                .unwrap_or_else(|| panic!("there is no alarm {name}"));
            assert_eq!(row[3], periods.to_string(), "{name}");
            let number = row[2]
                .split_whitespace()
                .find_map(|word| word.parse::<f64>().ok());
            // Only missing data raises these; their threshold is a value that never occurs.
            let expected = (row[2] != "missing").then_some(*threshold);
            assert_eq!(number, expected, "{name}");
            listed.insert(name);
        }
    }
    assert_eq!(listed, alarms.into_keys().collect());
}

/// The fields of the lines that a function prints.
fn printed(mut report: Report) -> BTreeSet<String> {
    report.made_at(zae_limiter::Timestamp::from_millis(0));
    let lines = report.lines(
        "f",
        "r",
        std::time::SystemTime::UNIX_EPOCH,
        std::time::Duration::ZERO,
    );
    let fields = lines.iter().flat_map(|line| {
        let line: Value = serde_json::from_str(line).unwrap();
        line.as_object().unwrap().keys().cloned().collect::<Vec<_>>()
    });
    fields.collect()
}

fn aggregator_fields() -> BTreeSet<String> {
    let mut report = Report::new(Level::Info, <Aggregator<DynamoDb, Queue> as Function>::METRICS);
    report.acquired("gpt-4", 1);
    printed(report)
}

fn archiver_fields() -> BTreeSet<String> {
    printed(Report::new(
        Level::Info,
        <Archiver<S3, Queue> as Function>::METRICS,
    ))
}

#[test]
fn the_metrics_page_has_every_metric_of_the_facade() {
    let mut table = String::from("| Name | Kind | Labels | Meaning |\n|---|---|---|---|\n");
    for metric in zae_limiter::metrics::METRICS {
        let kind = format!("{:?}", metric.kind).to_lowercase();
        let labels: Vec<_> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
        let labels = if labels.is_empty() {
            "none".to_owned()
        } else {
            labels.join(", ")
        };
        let row = format!("| `{}` | {kind} | {labels} | {} |\n", metric.name, metric.help);
        table.push_str(&row);
    }
    let page = pages::read("docs/reference/metrics.md");
    let section = pages::section(&page, "The client through the `metrics` facade");
    assert!(
        section.contains(&table),
        "docs/reference/metrics.md should have\n{table}"
    );
}

#[test]
fn the_metrics_page_has_every_metric() {
    let page = pages::read("docs/reference/metrics.md");
    let client = serde_json::to_value(LimiterStats::default()).unwrap();
    let stats: BTreeSet<_> = client.as_object().unwrap().keys().cloned().collect();
    let rows = pages::rows(pages::section(&page, "The client"));
    let listed: BTreeSet<_> = rows[1..]
        .iter()
        .map(|row| row[0].trim_matches('`').to_owned())
        .collect();
    assert_eq!(listed, stats);

    let rows = pages::rows(pages::section(&page, "The functions"));
    let not_metrics = [
        "timestamp",
        "level",
        "message",
        "requestId",
        "_aws",
        "FunctionName",
    ];
    for (row, fields) in rows[1..].iter().zip([aggregator_fields(), archiver_fields()]) {
        let metrics: BTreeSet<_> = fields
            .into_iter()
            .filter(|name| !not_metrics.contains(&name.as_str()))
            .collect();
        assert_eq!(
            pages::code_spans(&row[1]).into_iter().collect::<BTreeSet<_>>(),
            metrics,
            "{}",
            row[0]
        );
    }
}

#[test]
fn the_upgrade_page_has_every_migration() {
    let page = pages::read("docs/operate/upgrade.md");
    let listed: BTreeSet<_> = pages::rows(&page)[1..]
        .iter()
        .map(|row| row[0].trim_matches('`').to_owned())
        .collect();
    let names = ["configs", "buckets"].map(|file| {
        let source = pages::read(&format!("limiter/src/admin/migrations/{file}.rs"));
        let name = source.split("name: ").nth(1).unwrap();
        name.split('"').nth(1).unwrap().to_owned()
    });
    assert_eq!(listed, names.into_iter().collect());
}

#[test]
fn the_policies_page_has_every_policy_of_the_command() {
    let page = pages::read("docs/operate/security.md");
    let source = pages::read("docs/cli.md");
    let row = source
        .lines()
        .find(|line| line.contains("`zae-limiter policy POLICY"))
        .unwrap();
    for policy in [
        "deployer",
        "provisioning",
        "purge",
        "plan",
        "ensure",
        "acquire",
        "full",
        "read",
    ] {
        let span = format!("`{policy}`");
        assert!(row.contains(&span) && page.contains(&span), "{policy}");
    }
}

//! Tables that repeat what the code says.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use zae_limiter::LimiterStats;
use zae_limiter_aggregator::{Aggregator, DynamoDb};
use zae_limiter_archiver::{Archiver, S3};
use zae_limiter_function::{Function, Level, Queue, Report};
use zae_limiter_template::{Accepts, StackOptions};

use crate::book::{links, pages};

#[test]
fn the_options_page_has_every_option() {
    let mut table = String::from("| Option | Default | Accepts | Meaning |\n|---|---|---|---|\n");
    for field in StackOptions::fields() {
        let default = match &field.default {
            Value::Null => "not set".to_owned(),
            Value::String(text) => format!("`{text}`"),
            Value::Object(map) if map.is_empty() => "none".to_owned(),
            Value::Array(list) if list.is_empty() => "none".to_owned(),
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
        Accepts::List { .. } => "a list".to_owned(),
        Accepts::Tags => "tags by key".to_owned(),
    }
}

#[test]
fn the_errors_page_has_every_variant() {
    let source = pages::read("limiter/src/error.rs");
    let variants_of = |name: &str| -> BTreeSet<String> {
        let body = source.split(&format!("pub enum {name} {{")).nth(1);
        let body = body.map_or("", |rest| rest.split("\n}\n").next().unwrap());
        body.lines()
            .filter_map(|line| line.strip_prefix("    "))
            .filter(|line| line.starts_with(|first: char| first.is_ascii_uppercase()))
            .map(|line| {
                line.split(|c: char| !c.is_alphanumeric())
                    .next()
                    .unwrap()
                    .to_owned()
            })
            .collect()
    };
    let mut errors = BTreeSet::new();
    for group in variants_of("Error") {
        let details = variants_of(&group);
        let has_none = details.is_empty();
        errors.extend(details.into_iter().map(|detail| (group.clone(), detail)));
        if has_none {
            let detail = if group == "Refused" { "Refusal" } else { "–" };
            errors.insert((group, detail.to_owned()));
        }
    }
    let page = pages::read("docs/reference/errors.md");
    let name = |cell: &String| cell.trim_matches('`').to_owned();
    let listed: BTreeSet<(String, String)> = pages::rows(&page)[1..]
        .iter()
        .map(|row| (name(&row[0]), name(&row[1])))
        .collect();
    assert_eq!(listed, errors);
    assert!(errors.len() > 20, "{errors:?}");
}

/// Alarm name to threshold and number of periods, of the default template.
pub(crate) fn alarms() -> BTreeMap<String, (f64, u64)> {
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

/// The last column of the table links to the runbook of each alarm.
#[test]
fn every_alarm_has_a_runbook_and_every_runbook_an_alarm() {
    let page = pages::read("docs/operate/alarms.md");
    let (table, runbooks) = page.split_once("## Runbooks").unwrap();
    let titles: BTreeSet<_> = links::anchors(runbooks).into_iter().collect();
    let mut used = BTreeSet::new();
    for row in &pages::rows(table)[1..] {
        let link = row.last().unwrap().split("](#").nth(1);
        let anchor = link.and_then(|rest| rest.split(')').next());
        let anchor = anchor.unwrap_or_else(|| panic!("{} has no runbook", row[0]));
        used.insert(anchor.to_owned());
    }
    assert_eq!(used, titles);
    for runbook in runbooks.split("\n### ").skip(1) {
        let (title, steps) = runbook.split_once('\n').unwrap();
        assert!(steps.trim().len() > 100, "{title}: says too little");
    }
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

/// Fields that are no metrics.
pub(crate) const NOT_METRICS: [&str; 6] = [
    "timestamp",
    "level",
    "message",
    "requestId",
    "_aws",
    "FunctionName",
];

pub(crate) fn aggregator_fields() -> BTreeSet<String> {
    let mut report = Report::new(Level::Info, <Aggregator<DynamoDb, Queue> as Function>::METRICS);
    report.acquired("gpt-4", 1);
    printed(report)
}

pub(crate) fn archiver_fields() -> BTreeSet<String> {
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
    for (row, fields) in rows[1..].iter().zip([aggregator_fields(), archiver_fields()]) {
        let metrics: BTreeSet<_> = fields
            .into_iter()
            .filter(|name| !NOT_METRICS.contains(&name.as_str()))
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
        "terraform",
        "purge",
        "redrive",
        "plan",
        "ensure",
        "aggregator",
        "archiver",
        "acquire",
        "full",
        "read",
    ] {
        let span = format!("`{policy}`");
        assert!(row.contains(&span) && page.contains(&span), "{policy}");
    }
}

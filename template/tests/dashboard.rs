//! The dashboards of CloudWatch and Grafana: layout, titles, units, and the same panels in both.

use std::collections::BTreeSet;

use serde_json::Value;
use zae_limiter_template::{FunctionCode, StackName, StackOptions, StackOptionsBuilder, export, render};

fn options() -> StackOptionsBuilder {
    StackOptions::builder()
        .enable_dashboard(true)
        .code_bucket("code")
        .aggregator_code_key("a.zip")
        .archiver_code_key("b.zip")
}

/// The widgets, with the whole path of each metric in place of dots.
fn cloudwatch(options: StackOptionsBuilder) -> Vec<Value> {
    let options = options.build().unwrap();
    let name = StackName::parse("limiter").unwrap();
    let template = render(&name, &options, &FunctionCode::of(&options)).unwrap();
    let body = &template.to_value()["Resources"]["Dashboard"]["Properties"]["DashboardBody"]["Fn::Sub"];
    let body: Value = serde_json::from_str(body.as_str().unwrap()).unwrap();
    let mut widgets = body["widgets"].as_array().unwrap().clone();
    for widget in &mut widgets {
        let mut above: Vec<Value> = Vec::new();
        for metric in widget["properties"]["metrics"].as_array_mut().unwrap() {
            let metric = metric.as_array_mut().unwrap();
            for (place, part) in metric.iter_mut().enumerate().filter(|(_, part)| **part == ".") {
                *part = above[place].clone();
            }
            above.clone_from(metric);
        }
    }
    widgets
}

fn grafana() -> Vec<Value> {
    let dashboard: Value = serde_json::from_str(&export::grafana()).unwrap();
    dashboard["panels"].as_array().unwrap().clone()
}

struct Rectangle {
    x: u64,
    y: u64,
    width: u64,
    height: u64,
}

impl Rectangle {
    fn of(place: &Value, width: &str, height: &str) -> Self {
        let number = |name: &str| place[name].as_u64().unwrap();
        Self {
            x: number("x"),
            y: number("y"),
            width: number(width),
            height: number(height),
        }
    }

    fn overlaps(&self, other: &Self) -> bool {
        let apart = |start: u64, length: u64, other: u64, its_length: u64| {
            start + length <= other || other + its_length <= start
        };
        !apart(self.x, self.width, other.x, other.width) && !apart(self.y, self.height, other.y, other.height)
    }
}

/// No overlaps, nothing beyond the 24 columns, no empty row.
fn assert_layout(rectangles: &[Rectangle]) {
    for (place, one) in rectangles.iter().enumerate() {
        assert!(one.width > 0 && one.height > 0 && one.x + one.width <= 24);
        let others = &rectangles[place + 1..];
        assert!(others.iter().all(|other| !one.overlaps(other)), "panel {place}");
        let rests = one.y == 0
            || rectangles
                .iter()
                .any(|above| above.y + above.height == one.y && above.x == one.x);
        assert!(rests, "panel {place} has nothing above it");
    }
}

#[test]
fn panels_lie_beside_and_below_each_other() {
    for options in [
        options(),
        options().enable_aggregator(false),
        options().enable_audit_archival(false),
        options().enable_aggregator(false).enable_audit_archival(false),
    ] {
        let widgets = cloudwatch(options);
        let places: Vec<_> = widgets
            .iter()
            .map(|widget| Rectangle::of(widget, "width", "height"))
            .collect();
        assert_layout(&places);
    }
    let places: Vec<_> = grafana()
        .iter()
        .map(|panel| Rectangle::of(&panel["gridPos"], "w", "h"))
        .collect();
    assert_layout(&places);
}

#[test]
fn every_panel_has_a_title_of_its_own_labels_and_units() {
    let widgets = cloudwatch(options());
    let titles: BTreeSet<_> = widgets
        .iter()
        .map(|widget| widget["properties"]["title"].to_string())
        .collect();
    assert_eq!(titles.len(), widgets.len());
    for widget in &widgets {
        let properties = &widget["properties"];
        let title = properties["title"].as_str().unwrap();
        assert!(!title.is_empty());
        let milliseconds = title.starts_with("Latency") || title.starts_with("Lag");
        // An axis without a label counts.
        let unit = milliseconds.then_some("ms");
        assert_eq!(properties["yAxis"]["left"]["label"].as_str(), unit, "{title}");
        let metrics = properties["metrics"].as_array().unwrap();
        assert!(!metrics.is_empty(), "{title}");
        let options = |metric: &Value| metric.as_array().unwrap().last().unwrap().clone();
        // A search labels its series by what it finds.
        let searches = |metric: &Value| options(metric)["expression"].to_string().contains("SEARCH(");
        let labels: Vec<_> = metrics
            .iter()
            .filter(|metric| !searches(metric))
            .map(options)
            .collect();
        let distinct: BTreeSet<_> = labels
            .iter()
            .map(|options| options["label"].as_str().unwrap())
            .collect();
        assert_eq!(distinct.len(), labels.len(), "{title}");
        // The cost is far below the units it is made of, so it has an axis of its own.
        let right: Vec<_> = labels
            .iter()
            .filter(|options| options["yAxis"] == "right")
            .map(|options| options["label"].as_str().unwrap())
            .collect();
        let cost: &[&str] = if title.contains("cost") {
            &["US dollars"]
        } else {
            &[]
        };
        assert_eq!(right, cost, "{title}");
    }
    for panel in grafana() {
        let title = panel["title"].as_str().unwrap();
        let milliseconds = title.starts_with("Latency") || title.starts_with("Lag");
        let unit = if milliseconds { "ms" } else { "short" };
        assert_eq!(panel["fieldConfig"]["defaults"]["unit"], unit, "{title}");
    }
}

/// What a chart shows, whichever tool shows it: namespace, metric, statistic and label; or an expression.
fn series_of_widget(widget: &Value) -> BTreeSet<String> {
    let properties = &widget["properties"];
    let metrics = properties["metrics"].as_array().unwrap().iter();
    let series = metrics.map(|metric| {
        let options = metric.as_array().unwrap().last().unwrap();
        if let Some(expression) = options["expression"].as_str() {
            return without_names(expression);
        }
        let statistic = options.get("stat").unwrap_or(&properties["stat"]);
        format!("{} {} {statistic} {}", metric[0], metric[1], options["label"])
    });
    series.collect()
}

fn series_of_panel(panel: &Value) -> BTreeSet<String> {
    let targets = panel["targets"].as_array().unwrap().iter();
    let series = targets.map(|target| {
        assert!(target.get("hide").is_none(), "{target}");
        if let Some(expression) = target["expression"].as_str() {
            return without_names(expression);
        }
        format!(
            "{} {} {} {}",
            target["namespace"], target["metricName"], target["statistic"], target["label"]
        )
    });
    series.collect()
}

/// The name of a function is a reference in one tool and a variable in the other.
fn without_names(expression: &str) -> String {
    expression
        .replace("${AggregatorFunction}", "NAME")
        .replace("$stack-aggregator", "NAME")
}

#[test]
fn grafana_has_the_panels_of_cloudwatch() {
    let (widgets, panels) = (cloudwatch(options()), grafana());
    assert_eq!(widgets.len(), panels.len());
    for (widget, panel) in widgets.iter().zip(&panels) {
        assert_eq!(widget["properties"]["title"], panel["title"]);
        assert_eq!(
            series_of_widget(widget),
            series_of_panel(panel),
            "{}",
            panel["title"]
        );
    }
}

/// Each subject that the dashboard is for.
#[test]
fn capacity_throttling_latency_lag_dead_letters_errors_usage_and_cost_are_shown() {
    let shown: Vec<_> = cloudwatch(options()).iter().flat_map(series_of_widget).collect();
    for subject in [
        "ConsumedReadCapacityUnits",
        "ConsumedWriteCapacityUnits",
        "ReadThrottleEvents",
        "WriteThrottleEvents",
        "SuccessfulRequestLatency",
        "IteratorAge",
        "ApproximateNumberOfMessagesVisible",
        "DeadLetters",
        "Errors",
        "Throttles",
        "Acquires",
        ")*0.000000625",
    ] {
        assert!(shown.iter().any(|series| series.contains(subject)), "{subject}");
    }
}

//! The panels as the body of a CloudWatch dashboard.

use serde_json::{Value, json};

use super::panels::{Panel, Series, Unit};
use crate::model::{Pseudo, Text};

/// Widgets per row. A dashboard is 24 units wide.
const COLUMNS: usize = 3;
const WIDTH: usize = 8;
const HEIGHT: usize = 6;
/// Stands around the number of a reference while the body is JSON.
const MARK: &str = "@@";

/// The body: JSON text with references to the resources in it.
pub(super) fn body(panels: &[Panel]) -> Text {
    let mut references = vec![Text::from(Pseudo::Region)];
    let widgets: Vec<_> = panels
        .iter()
        .enumerate()
        .map(|(place, panel)| widget(place, panel, &mut references))
        .collect();
    let text = json!({ "widgets": widgets }).to_string();
    text.split(MARK)
        .enumerate()
        .fold(Text::default(), |body, (place, part)| {
            // Every second part stands between two marks.
            match part.parse::<usize>().ok().filter(|_| place % 2 == 1) {
                Some(number) => body.then(references[number].clone()),
                None => body.then(part),
            }
        })
}

fn widget(place: usize, panel: &Panel, references: &mut Vec<Text>) -> Value {
    let mut metrics: Vec<Value> = Vec::new();
    if let Some(search) = &panel.search {
        let value = text(&search.given.1, references);
        // Without a label, CloudWatch shows what differs between the series: the value of the searched dimension.
        metrics.push(json!([{ "expression": search.expression(&value), "id": "e1" }]));
    }
    if let Some(total) = &panel.total {
        metrics.push(json!([{ "expression": total.expression(), "label": total.label, "yAxis": "right" }]));
    }
    let statistics = panel.series.iter().map(|series| series.statistic);
    let searched = panel.search.iter().map(|search| search.statistic);
    let common = statistics.chain(searched).next().unwrap_or_default();
    let mut above: Vec<String> = Vec::new();
    for (number, series) in panel.series.iter().enumerate() {
        let path = path(series, references);
        let mut options = json!({ "label": series.label });
        if series.statistic != common {
            options["stat"] = json!(series.statistic);
        }
        if panel.total.is_some() {
            options["id"] = json!(format!("m{number}"));
        }
        let mut metric = shortened(&path, &above);
        metric.push(options);
        metrics.push(metric.into());
        above = path;
    }
    let mut widget = json!({
        "type": "metric",
        "x": place % COLUMNS * WIDTH,
        "y": place / COLUMNS * HEIGHT,
        "width": WIDTH,
        "height": HEIGHT,
        "properties": {
            "title": panel.title,
            "region": format!("{MARK}0{MARK}"),
            "stat": common,
            "metrics": metrics,
        },
    });
    // Counts have no label, and the right axis has that of its series: the template has a limit.
    if panel.unit == Unit::Milliseconds {
        widget["properties"]["yAxis"] = json!({ "left": { "label": "ms" } });
    }
    widget
}

/// Namespace, name and dimensions of a metric.
fn path(series: &Series, references: &mut Vec<Text>) -> Vec<String> {
    let mut path = vec![series.namespace.to_owned(), series.metric.to_owned()];
    for (name, value) in &series.dimensions {
        path.push((*name).to_owned());
        path.push(text(value, references));
    }
    path
}

/// A text as the JSON of the body has it.
fn text(value: &Text, references: &mut Vec<Text>) -> String {
    match value.as_plain() {
        Some(plain) => plain.to_owned(),
        None => marked(value, references),
    }
}

/// The path with a dot for what is the same in the metric above, so that the template stays within its limit.
fn shortened(path: &[String], above: &[String]) -> Vec<Value> {
    let same = |place: usize, part: &String| above.len() == path.len() && above.get(place) == Some(part);
    let parts = path.iter().enumerate();
    parts
        .map(|(place, part)| json!(if same(place, part) { "." } else { part }))
        .collect()
}

/// The reference by its number, so that it survives as JSON.
fn marked(value: &Text, references: &mut Vec<Text>) -> String {
    let known = references.iter().position(|known| known == value);
    let number = known.unwrap_or_else(|| {
        references.push(value.clone());
        references.len() - 1
    });
    format!("{MARK}{number}{MARK}")
}

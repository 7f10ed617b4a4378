//! The panels as a Grafana dashboard on the CloudWatch data source.

use serde_json::{Value, json};

use super::panels::{self, Names, Panel, ReaderNames, Series, Unit};
use crate::resources::LambdaFunction;

/// Panels per row. A dashboard is 24 units wide.
const COLUMNS: usize = 3;
const WIDTH: usize = 8;
const HEIGHT: usize = 8;

/// A dashboard for any stack: its name, and the ids of its event source mappings, are variables.
pub(crate) fn grafana() -> Value {
    let readers = LambdaFunction::ALL.map(|which| ReaderNames {
        which,
        function: format!("$stack-{which}").into(),
        queue: format!("$stack-{which}-dlq").into(),
        mapping: format!("${which}_mapping").into(),
    });
    let names = Names {
        table: "$stack".into(),
        readers: readers.into(),
    };
    let panels: Vec<_> = panels::all(&names).iter().enumerate().map(panel).collect();
    let mut variables = vec![
        json!({ "name": "datasource", "label": "Data source", "type": "datasource", "query": "cloudwatch" }),
        json!({ "name": "region", "label": "Region", "type": "textbox", "query": "us-east-1" }),
        json!({ "name": "stack", "label": "Stack", "type": "textbox", "query": "limiter" }),
    ];
    variables.extend(LambdaFunction::ALL.map(|which| {
        json!({ "name": format!("{which}_mapping"), "label": format!("Mapping of the {which}"), "type": "textbox", "query": "" })
    }));
    json!({
        "title": "zae-limiter",
        "uid": "zae-limiter",
        "schemaVersion": 39,
        "time": { "from": "now-3h", "to": "now" },
        "templating": { "list": variables },
        "panels": panels,
    })
}

fn panel((place, panel): (usize, &Panel)) -> Value {
    let mut targets: Vec<_> = panel
        .series
        .iter()
        .enumerate()
        .map(|(number, series)| target(series, number))
        .collect();
    if let Some(total) = &panel.total {
        targets.push(json!({
            "refId": "Total",
            "id": "total",
            "label": total.label,
            "expression": total.expression(),
            "queryMode": "Metrics",
            "metricQueryType": 0,
            "metricEditorMode": 1,
            "region": "$region",
        }));
    }
    if let Some(search) = &panel.search {
        targets.push(json!({
            "refId": "Search",
            "id": "search",
            "label": format!("${{PROP('Dim.{}')}}", search.searched),
            "expression": search.expression(search.given.1.as_plain().unwrap_or_default()),
            "queryMode": "Metrics",
            "metricQueryType": 0,
            "metricEditorMode": 1,
            "region": "$region",
        }));
    }
    json!({
        "id": place + 1,
        "type": "timeseries",
        "title": panel.title,
        "datasource": { "type": "cloudwatch", "uid": "${datasource}" },
        "gridPos": { "x": place % COLUMNS * WIDTH, "y": place / COLUMNS * HEIGHT, "w": WIDTH, "h": HEIGHT },
        "fieldConfig": fields(panel),
        "targets": targets,
    })
}

/// The units of the axes. What the series are combined to has the right one.
fn fields(panel: &Panel) -> Value {
    let unit = match panel.unit {
        Unit::Count => "short",
        Unit::Milliseconds => "ms",
    };
    let right = panel.total.iter().map(|total| {
        json!({
            "matcher": { "id": "byName", "options": total.label },
            "properties": [
                { "id": "unit", "value": "currencyUSD" },
                { "id": "custom.axisPlacement", "value": "right" },
            ],
        })
    });
    let defaults = json!({ "unit": unit, "min": 0 });
    json!({ "defaults": defaults, "overrides": right.collect::<Vec<_>>() })
}

fn target(series: &Series, number: usize) -> Value {
    let dimensions = series
        .dimensions
        .iter()
        .map(|(name, value)| ((*name).to_owned(), json!([value.as_plain().unwrap_or_default()])));
    json!({
        "refId": format!("M{number}"),
        "id": format!("m{number}"),
        "namespace": series.namespace,
        "metricName": series.metric,
        "statistic": series.statistic,
        "label": series.label,
        "dimensions": dimensions.collect::<serde_json::Map<_, _>>(),
        "matchExact": true,
        "period": "300",
        "queryMode": "Metrics",
        "metricQueryType": 0,
        "metricEditorMode": 0,
        "region": "$region",
    })
}

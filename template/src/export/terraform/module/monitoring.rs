//! Alarms, and the dashboard.

use serde_json::Value;

use super::super::text::snake_case;
use super::print::Part;
use super::source::Source;
use crate::Error;
use crate::export::{self, File};
use crate::model::{LogicalId, ids};
use crate::options::StackOptions;
use crate::resources::LambdaFunction;

pub(super) fn alarms(source: &Source) -> Vec<Part> {
    source
        .alarms()
        .map(|(id, function)| Part::new(alarm(source, &id, function)))
        .collect()
}

fn alarm(source: &Source, id: &LogicalId, function: Option<LambdaFunction>) -> String {
    let properties = source.properties(id);
    let plain = |name: &str| source.expression(&properties[name]);
    let created = match function {
        Some(function) => format!("var.enable_alarms && local.has_{function}"),
        None => "var.enable_alarms".to_owned(),
    };
    let dimensions = properties["Dimensions"].as_array().into_iter().flatten();
    let dimensions: Vec<_> = dimensions
        .map(|dimension| {
            let name = dimension["Name"].as_str().unwrap_or_default();
            format!("{name} = {}", source.expression(&dimension["Value"]))
        })
        .collect();
    format!(
        "resource \"aws_cloudwatch_metric_alarm\" \"{name}\" {{
           count = {created} ? 1 : 0
           alarm_name = {alarm_name}
           alarm_description = {description}
           namespace = {namespace}
           metric_name = {metric}
           dimensions = {{ {dimensions} }}
           statistic = {statistic}
           period = {period}
           evaluation_periods = {evaluation}
           comparison_operator = {comparison}
           threshold = {threshold}
           treat_missing_data = {missing}
           alarm_actions = local.alarm_actions
           ok_actions = local.alarm_actions
           tags = local.tags
         }}",
        name = snake_case(id.as_str()),
        alarm_name = plain("AlarmName"),
        description = plain("AlarmDescription"),
        namespace = plain("Namespace"),
        metric = plain("MetricName"),
        dimensions = dimensions.join(", "),
        statistic = plain("Statistic"),
        period = plain("Period"),
        evaluation = plain("EvaluationPeriods"),
        comparison = plain("ComparisonOperator"),
        threshold = threshold(id, function).map_or_else(|| plain("Threshold"), str::to_owned),
        missing = plain("TreatMissingData"),
    )
}

/// The threshold of an alarm that an option sets.
fn threshold(id: &LogicalId, function: Option<LambdaFunction>) -> Option<&'static str> {
    let Some(ids) = function.map(LambdaFunction::ids) else {
        return Some("var.alarm_throttled_requests");
    };
    if *id == ids.error_alarm {
        Some("var.alarm_error_rate_pct / 100")
    } else if *id == ids.duration_alarm {
        Some("floor(var.lambda_timeout * 1000 * var.lambda_duration_threshold_pct / 100)")
    } else if *id == ids.age_alarm {
        Some("var.alarm_iterator_age_seconds * 1000")
    } else if *id == ids.throttle_alarm {
        Some("var.alarm_throttled_requests")
    } else {
        None
    }
}

/// The dashboard, whose body depends on which functions there are.
pub(super) fn dashboard(source: &Source) -> Part {
    let name = snake_case(ids::DASHBOARD.as_str());
    let body = &source.properties(&ids::DASHBOARD)["DashboardBody"]["Fn::Sub"];
    let references = references(body.as_str().unwrap_or_default());
    let variables = references.iter().map(|reference| {
        let value = match reference.split_once('.') {
            Some((id, attribute)) => serde_json::json!({ "Fn::GetAtt": [id, attribute] }),
            None => serde_json::json!({ "Ref": reference }),
        };
        format!(
            "{} = {}",
            placeholder(reference),
            source.expression_or_null(&value)
        )
    });
    let variables: Vec<_> = variables.collect();
    Part::new(format!(
        "locals {{
           dashboard = join(\"-\", concat([\"dashboard\"], local.has_aggregator ? [\"aggregator\"] : [], local.has_archiver ? [\"archiver\"] : []))
         }}
         resource \"aws_cloudwatch_dashboard\" \"{name}\" {{
           count = var.enable_dashboard ? 1 : 0
           dashboard_name = {}
           dashboard_body = templatefile(\"${{path.module}}/dashboards/${{local.dashboard}}.json.tftpl\", {{ {} }})
         }}",
        source.expression(&source.properties(&ids::DASHBOARD)["DashboardName"]),
        variables.join(", "),
    ))
}

/// The bodies of the dashboard, as templates: one for each set of functions.
pub(super) fn dashboards() -> Result<Vec<File>, Error> {
    let mut files = Vec::new();
    for (aggregator, archiver, name) in [
        (true, true, "dashboard-aggregator-archiver"),
        (true, false, "dashboard-aggregator"),
        (false, true, "dashboard-archiver"),
        (false, false, "dashboard"),
    ] {
        let options = StackOptions::builder()
            .enable_dashboard(true)
            .enable_aggregator(aggregator)
            .enable_audit_archival(archiver)
            .build()?;
        let template = export::cloudformation(&options)?;
        let body = template
            .resource(&ids::DASHBOARD)
            .and_then(|dashboard| dashboard["Properties"]["DashboardBody"]["Fn::Sub"].as_str())
            .unwrap_or_default();
        let mut text = pretty(body);
        for reference in references(body) {
            text = text.replace(
                &format!("${{{reference}}}"),
                &format!("${{{}}}", placeholder(&reference)),
            );
        }
        files.push(File::new(&format!("dashboards/{name}.json.tftpl"), text + "\n"));
    }
    Ok(files)
}

/// References stand in strings, so the body is JSON.
fn pretty(body: &str) -> String {
    let value: Option<Value> = serde_json::from_str(body).ok();
    value.map_or_else(|| body.to_owned(), |value| format!("{value:#}"))
}

/// What a text with substitutions refers to, each once.
fn references(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for rest in text.split("${").skip(1) {
        if let Some((name, _)) = rest.split_once('}')
            && !found.iter().any(|known| known == name)
        {
            found.push(name.to_owned());
        }
    }
    found
}

fn placeholder(reference: &str) -> String {
    snake_case(&reference.replace("AWS::", "").replace('.', ""))
}

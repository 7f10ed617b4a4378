//! Rules for alarms.

use serde_json::Value;

use super::properties::{list, of_type, target};
use super::{Facts, Findings, Rule};
use crate::Template;
use crate::model::ids;

pub(super) fn check(template: &Template, facts: &Facts, findings: &mut Findings) {
    for (id, alarm) in of_type(template, "AWS::CloudWatch::Alarm") {
        let properties = &alarm["Properties"];
        let tells = !facts.alarm_topic || !list(&properties["AlarmActions"]).is_empty();
        findings.require(
            tells,
            Rule::AlarmAction,
            id,
            "must have an AlarmAction, since the options have a topic",
        );
        let said = !properties["TreatMissingData"].is_null();
        findings.require(
            said,
            Rule::AlarmSilence,
            id,
            "must say what missing data means (TreatMissingData)",
        );
    }
    // A stack without alarms, by its options, has nothing to cover.
    if of_type(template, "AWS::CloudWatch::Alarm").next().is_some() {
        throttles(template, findings);
    }
}

fn throttles(template: &Template, findings: &mut Findings) {
    let Some(table) = template.resource(&ids::TABLE) else {
        return;
    };
    let indexes = list(&table["Properties"]["GlobalSecondaryIndexes"]).iter();
    let indexes = indexes.filter_map(|index| index["IndexName"].as_str());
    for what in std::iter::once(None).chain(indexes.map(Some)) {
        for metric in ["ReadThrottleEvents", "WriteThrottleEvents"] {
            let watched =
                of_type(template, "AWS::CloudWatch::Alarm").any(|(_, alarm)| watches(alarm, metric, what));
            let problem = format!(
                "must have an alarm on {metric} of {}",
                what.unwrap_or("the table")
            );
            findings.require(watched, Rule::ThrottlesWatched, ids::TABLE.as_str(), problem);
        }
    }
}

fn watches(alarm: &Value, name: &str, index: Option<&str>) -> bool {
    let properties = &alarm["Properties"];
    let computed = list(&properties["Metrics"])
        .iter()
        .map(|query| &query["MetricStat"]["Metric"]);
    std::iter::once(properties).chain(computed).any(|metric| {
        let dimension = |name: &str| {
            let found = list(&metric["Dimensions"])
                .iter()
                .find(|dimension| dimension["Name"] == name);
            found.map(|dimension| &dimension["Value"])
        };
        metric["MetricName"] == name
            && dimension("TableName").and_then(target) == Some(ids::TABLE.as_str())
            && dimension("GlobalSecondaryIndexName").and_then(Value::as_str) == index
    })
}

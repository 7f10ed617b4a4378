//! Alarms and dashboards.

use serde::Serialize;
use serde_json::Number;

use super::{Construct, Handle, Text};

/// An alarm on one metric.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Alarm {
    /// The alarm's name.
    pub alarm_name: Text,
    /// What it means and what to check.
    pub alarm_description: &'static str,
    /// The metric.
    #[serde(flatten)]
    pub metric: Metric,
    /// How the values of a period are combined.
    pub statistic: Statistic,
    /// Length of a period, in seconds.
    pub period: u32,
    /// Consecutive periods that must breach.
    pub evaluation_periods: u32,
    /// How to compare with the threshold.
    pub comparison_operator: Comparison,
    /// The threshold.
    pub threshold: Number,
    /// What missing data means.
    pub treat_missing_data: &'static str,
    /// ARNs of the topics to notify when the alarm starts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub alarm_actions: Vec<Text>,
    /// ARNs of the topics to notify when the alarm ends.
    #[serde(rename = "OKActions", skip_serializing_if = "Vec::is_empty")]
    pub ok_actions: Vec<Text>,
}

impl Construct for Alarm {
    const TYPE: &'static str = "AWS::CloudWatch::Alarm";
}

impl Handle<Alarm> {
    /// The alarm's name.
    pub fn name(&self) -> Text {
        self.reference()
    }
}

/// A dashboard.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Dashboard {
    /// The dashboard's name.
    pub dashboard_name: Text,
    /// Its widgets, as JSON text.
    pub dashboard_body: Text,
}

impl Construct for Dashboard {
    const TYPE: &'static str = "AWS::CloudWatch::Dashboard";
}

impl Handle<Dashboard> {
    /// The dashboard's name.
    pub fn name(&self) -> Text {
        self.reference()
    }
}

/// How a value is compared with the threshold.
#[derive(Debug, Clone, Copy, Serialize)]
pub enum Comparison {
    /// More than the threshold.
    GreaterThanThreshold,
    /// At least the threshold.
    GreaterThanOrEqualToThreshold,
    /// Less than the threshold.
    LessThanThreshold,
}

/// A CloudWatch metric.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Metric {
    /// The namespace, such as `AWS/Lambda`.
    pub namespace: &'static str,
    /// The metric's name.
    pub metric_name: &'static str,
    /// What it is measured for.
    pub dimensions: Vec<Dimension>,
}

/// How the values of a period are combined.
#[derive(Debug, Clone, Copy, Serialize)]
pub enum Statistic {
    /// Their sum.
    Sum,
    /// Their average.
    Average,
    /// The largest.
    Maximum,
}

/// What a metric is measured for.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Dimension {
    /// The dimension's name.
    pub name: &'static str,
    /// The dimension's value.
    pub value: Text,
}

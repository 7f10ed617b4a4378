//! Alarms.

use serde::Serialize;

use super::{Construct, Handle, Text};

/// Rings when a number leaves its bounds.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Alarm {
    /// Its name.
    pub alarm_name: Text,
    /// What it means and what to look at.
    pub alarm_description: &'static str,
    /// What is watched.
    #[serde(flatten)]
    pub watched: Watched,
    /// Periods in a row.
    pub evaluation_periods: u32,
    /// How to compare.
    pub comparison_operator: Comparison,
    /// With what.
    pub threshold: u32,
    /// What silence means.
    pub treat_missing_data: &'static str,
    /// ARNs of topics that are told.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub alarm_actions: Vec<Text>,
    /// ARNs of topics that are told when it is over.
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

/// What an alarm watches.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum Watched {
    /// One metric.
    One(MetricOverTime),
    /// Something computed from several.
    Computed {
        /// The metrics, and the expression that makes one number of them.
        #[serde(rename = "Metrics")]
        metrics: Vec<MetricQuery>,
    },
}

/// How a number is compared with the threshold.
#[derive(Debug, Clone, Copy, Serialize)]
pub enum Comparison {
    /// Too many.
    GreaterThanThreshold,
    /// As many, or more.
    GreaterThanOrEqualToThreshold,
}

/// A metric of AWS.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Metric {
    /// `AWS/Lambda` and so on.
    pub namespace: &'static str,
    /// What is counted.
    pub metric_name: &'static str,
    /// Of what.
    pub dimensions: Vec<Dimension>,
}

/// A metric and how it is made one number per period.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct MetricOverTime {
    /// The metric.
    #[serde(flatten)]
    pub metric: Metric,
    /// Sum, average or maximum.
    pub statistic: Statistic,
    /// Seconds.
    pub period: u32,
}

/// One number of a period's many.
#[derive(Debug, Clone, Copy, Serialize)]
pub enum Statistic {
    /// All together.
    Sum,
    /// In the middle.
    Average,
    /// The greatest.
    Maximum,
}

/// Of what a metric is.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Dimension {
    /// Kind of thing.
    pub name: &'static str,
    /// Which one.
    pub value: Text,
}

/// A metric of a computed alarm, or the computation.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct MetricQuery {
    /// By what name the expression knows it.
    pub id: String,
    /// Whether the alarm compares this one.
    pub return_data: bool,
    /// What people read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<&'static str>,
    /// The computation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expression: Option<String>,
    /// The metric.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metric_stat: Option<MetricStat>,
}

/// A metric as the expressions of alarms know it.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct MetricStat {
    /// The metric.
    pub metric: Metric,
    /// Seconds.
    pub period: u32,
    /// How a period becomes one number.
    pub stat: Statistic,
}

//! Alarms.

use serde::Serialize;
use serde_json::Number;

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
    pub metric: Metric,
    /// How a period becomes one number.
    pub statistic: Statistic,
    /// Seconds.
    pub period: u32,
    /// Periods in a row.
    pub evaluation_periods: u32,
    /// How to compare.
    pub comparison_operator: Comparison,
    /// With what.
    pub threshold: Number,
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

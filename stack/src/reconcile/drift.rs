//! Drift: changes to resources that the stack did not make.

use std::collections::BTreeSet;

use aws_sdk_cloudformation::types::{StackResourceDrift, StackResourceDriftStatus};
use serde::Serialize;
use zae_limiter_template::model::ids;
use zae_limiter_template::{LambdaFunction, Template};

use crate::cloud::functions::MappingState;
use crate::events::Event;
use crate::patience::{Deadline, Pace, patiently};
use crate::{Error, Stack};

/// Whether a stack's resources match its template.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Every resource that CloudFormation can check matches.
    InSync,
    /// At least one resource differs.
    Drifted,
    /// Drift detection did not give a result.
    Unknown,
}

/// A property that differs from the template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PropertyDrift {
    /// Its path, as a JSON pointer.
    pub path: String,
    /// The value in the template.
    pub expected: String,
    /// The actual value.
    pub actual: String,
    /// `ADD`, `REMOVE` or `NOT_EQUAL`.
    pub difference: String,
}

/// A resource that differs from the template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ResourceDrift {
    /// The resource in the template.
    pub logical_id: String,
    /// Such as `AWS::DynamoDB::Table`.
    pub resource_type: String,
    /// Whether it was deleted.
    pub deleted: bool,
    /// The properties that differ.
    pub properties: Vec<PropertyDrift>,
}

/// The result of drift detection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Drift {
    /// The overall result.
    pub verdict: Verdict,
    /// Resources that differ.
    pub drifted: Vec<ResourceDrift>,
    /// Resources that could not be checked although CloudFormation supports their type.
    pub unknown: Vec<String>,
    /// Resources of types that CloudFormation does not check. The functions' event source mappings are checked with Lambda
    /// instead.
    pub unchecked: Vec<String>,
    /// Why there is no result.
    pub reason: Option<String>,
}

impl Stack {
    /// Detects drift and waits for the result.
    pub async fn drift(&self) -> Result<Drift, Error> {
        let (deadline, mut pace) = (self.deadline(), Pace::polls());
        let deployed = self.existing(&deadline).await?;
        self.check_owner(&deployed)?;
        let id = &deployed.stack.id;
        let detection = patiently(&deadline, || self.cloud.detect_drift(id)).await?;
        let detected = loop {
            let detected = patiently(&deadline, || self.cloud.detection(&detection)).await?;
            if detected.status != "DETECTION_IN_PROGRESS" {
                break detected;
            }
            self.in_time(&deadline, &detected.status)?;
            pace.pause().await;
        };
        let resources = patiently(&deadline, || self.cloud.resource_drifts(id)).await?;
        let mut drift = judge(
            &detected.status,
            detected.verdict.as_deref(),
            detected.reason,
            &resources,
        );
        if let Some(template) = &deployed.template {
            drift.unchecked = unchecked(template, &resources);
            self.mapping_drift(template, &mut drift, &deadline).await;
        }
        Ok(drift)
    }

    /// Adds the drift of event source mappings, which CloudFormation does not check: a mapping that is gone or disabled, or that
    /// reads a stream that the table no longer has.
    async fn mapping_drift(&self, template: &Template, drift: &mut Drift, deadline: &Deadline) {
        let functions = LambdaFunction::ALL.into_iter();
        let mapped: Vec<_> = functions
            .filter_map(|function| {
                let ids = function.ids();
                template.resource(&ids.mapping)?;
                let name = template
                    .resource(&ids.function)?
                    .pointer("/Properties/FunctionName")?;
                Some((ids.mapping.to_string(), name.as_str()?.to_owned()))
            })
            .collect();
        if mapped.is_empty() {
            return;
        }
        let stream = match patiently(deadline, || self.cloud.table(self.name.as_str())).await {
            Ok(table) => table.and_then(|table| table.latest_stream_arn),
            Err(failure) => {
                self.tell(&Event::NotChecked {
                    what: "the stream of the table".to_owned(),
                    reason: failure.message().to_owned(),
                });
                None
            }
        };
        for (id, function) in mapped {
            let found = match patiently(deadline, || self.cloud.mappings_of(&function)).await {
                Ok(found) => found,
                Err(failure) => {
                    self.tell(&Event::NotChecked {
                        what: id,
                        reason: failure.message().to_owned(),
                    });
                    continue;
                }
            };
            // Without the stream, only a mapping that is gone or disabled is found.
            if stream.is_some() {
                drift.unchecked.retain(|unchecked| *unchecked != id);
            }
            if let Some(drifted) = drift_of_mapping(id, &found, stream.as_deref()) {
                drift.verdict = Verdict::Drifted;
                drift.drifted.push(drifted);
            }
        }
    }

    /// Warnings about an imported table that differs from the template.
    pub(super) async fn table_drift(&self, stack: &str, deadline: &Deadline) -> Vec<String> {
        let table = ids::TABLE;
        match patiently(deadline, || self.cloud.resource_drift(stack, table.as_str())).await {
            Ok(Some(drift))
                if drift.stack_resource_drift_status() == Some(&StackResourceDriftStatus::InSync) =>
            {
                vec![]
            }
            Ok(Some(drift)) => resource(&drift).map_or_else(
                || vec![unknown_drift("CloudFormation does not say")],
                |drift| warnings(&drift),
            ),
            Ok(None) => vec![unknown_drift("CloudFormation does not say")],
            Err(failure) => vec![unknown_drift(failure.message())],
        }
    }
}

/// The resources of a template that CloudFormation has no result for.
fn unchecked(template: &Template, results: &[StackResourceDrift]) -> Vec<String> {
    let checked: BTreeSet<String> = results
        .iter()
        .filter(|drift| drift.stack_resource_drift_status() != Some(&StackResourceDriftStatus::NotChecked))
        .map(id)
        .collect();
    template
        .logical_ids()
        .filter(|id| !checked.contains(*id))
        .map(str::to_owned)
        .collect()
}

/// How a function's mappings differ from the template; `None` if they do not. `stream` is the table's, if it is known.
fn drift_of_mapping(id: String, found: &[MappingState], stream: Option<&str>) -> Option<ResourceDrift> {
    let reads = |mapping: &&MappingState| stream.is_none() || mapping.stream.as_deref() == stream;
    let mapping = found.iter().find(reads).or(found.first());
    let property = |path: &str, expected: &str, actual: &str| PropertyDrift {
        path: path.to_owned(),
        expected: expected.to_owned(),
        actual: actual.to_owned(),
        difference: "NOT_EQUAL".to_owned(),
    };
    let mut properties = Vec::new();
    if let Some(mapping) = mapping {
        if matches!(mapping.state.as_str(), "Disabled" | "Disabling") {
            properties.push(property("/Enabled", "true", "false"));
        }
        if let (Some(expected), Some(actual)) = (stream, mapping.stream.as_deref())
            && expected != actual
        {
            properties.push(property("/EventSourceArn", expected, actual));
        }
        if properties.is_empty() {
            return None;
        }
    }
    Some(ResourceDrift {
        logical_id: id,
        resource_type: "AWS::Lambda::EventSourceMapping".to_owned(),
        deleted: mapping.is_none(),
        properties,
    })
}

fn unknown_drift(why: &str) -> String {
    format!("the imported table could not be compared with the template: {why}")
}

fn warnings(drift: &ResourceDrift) -> Vec<String> {
    if drift.deleted {
        return vec!["the imported table was deleted".to_owned()];
    }
    let differing = drift.properties.iter();
    let warning = |property: &PropertyDrift| {
        format!(
            "the imported table differs at {}: it has {}, the template has {}",
            property.path, property.actual, property.expected
        )
    };
    differing.map(warning).collect()
}

fn judge(
    status: &str,
    verdict: Option<&str>,
    reason: Option<String>,
    resources: &[StackResourceDrift],
) -> Drift {
    let drifted: Vec<_> = resources.iter().filter_map(resource).collect();
    let unknown: Vec<_> = resources
        .iter()
        .filter(|resource| lost(resource))
        .map(id)
        .collect();
    let complete = status == "DETECTION_COMPLETE";
    let verdict = if !drifted.is_empty() || (complete && verdict == Some("DRIFTED")) {
        Verdict::Drifted
    } else if complete && verdict == Some("IN_SYNC") && unknown.is_empty() {
        Verdict::InSync
    } else {
        Verdict::Unknown
    };
    let reason = reason
        .or_else(|| (verdict == Verdict::Unknown).then(|| format!("drift detection ended with {status}")));
    Drift {
        verdict,
        drifted,
        unknown,
        unchecked: vec![],
        reason,
    }
}

fn id(drift: &StackResourceDrift) -> String {
    drift.logical_resource_id().unwrap_or_default().to_owned()
}

/// NOT_CHECKED does not count: it is for types that CloudFormation does not support.
fn lost(drift: &StackResourceDrift) -> bool {
    drift
        .stack_resource_drift_status()
        .is_some_and(|status| status.as_str() == "UNKNOWN")
}

fn resource(drift: &StackResourceDrift) -> Option<ResourceDrift> {
    let deleted = match drift.stack_resource_drift_status()? {
        StackResourceDriftStatus::Deleted => true,
        StackResourceDriftStatus::Modified => false,
        _ => return None,
    };
    let text = |value: Option<&str>| value.unwrap_or_default().to_owned();
    let properties = drift
        .property_differences()
        .iter()
        .map(|difference| PropertyDrift {
            path: text(difference.property_path()),
            expected: text(difference.expected_value()),
            actual: text(difference.actual_value()),
            difference: difference
                .difference_type()
                .map(|kind| kind.as_str().to_owned())
                .unwrap_or_default(),
        });
    let resource_type = text(drift.resource_type());
    Some(ResourceDrift {
        logical_id: id(drift),
        resource_type,
        deleted,
        properties: properties.collect(),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn mapping(state: &str, stream: &str) -> MappingState {
        MappingState {
            state: state.to_owned(),
            last_result: None,
            stream: Some(stream.to_owned()),
        }
    }

    fn paths(found: &[MappingState]) -> Option<Vec<String>> {
        let drift = drift_of_mapping("M".to_owned(), found, Some("arn:now"))?;
        let paths = drift.properties.into_iter().map(|property| property.path);
        Some(paths.collect())
    }

    #[test]
    fn a_mapping_drifts_if_it_is_gone_disabled_or_reads_an_old_stream() {
        assert_eq!(paths(&[mapping("Enabled", "arn:now")]), None);
        assert_eq!(paths(&[mapping("Disabled", "arn:now")]).unwrap(), ["/Enabled"]);
        assert_eq!(
            paths(&[mapping("Enabled", "arn:old")]).unwrap(),
            ["/EventSourceArn"]
        );
        // The one that reads the stream counts.
        assert_eq!(
            paths(&[mapping("Disabled", "arn:old"), mapping("Enabled", "arn:now")]),
            None
        );
        assert!(drift_of_mapping("M".to_owned(), &[], None).unwrap().deleted);
    }
}

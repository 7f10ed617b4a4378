//! Checks before a change. They find what would make it fail.
//!
//! A check that is not permitted is skipped.

mod iam;
mod names;
mod surroundings;
mod text;
mod trust;

use std::fmt;

use aws_sdk_dynamodb::types::TableDescription;
use serde::{Deserialize, Serialize};
use zae_limiter_template::deployer::Place;
use zae_limiter_template::{StackOptions, Template};

use crate::cloud::Cloud;
use crate::cloud::failure::Failure;
use crate::deployed::Deployed;
use crate::events::{Event, Observer};
use crate::patience::Deadline;
use crate::plan::{Kind, OutputChange, ResourceChange};

/// A problem that would make the change fail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The subject, such as `permission boundary arn:…`.
    pub what: String,
    /// The problem.
    pub problem: String,
    /// What to do.
    pub advice: String,
}

impl Finding {
    fn new(what: impl Into<String>, problem: impl Into<String>, advice: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            problem: problem.into(),
            advice: advice.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ({})", self.what, self.problem, self.advice)
    }
}

/// The findings of a check, and why it was not complete.
#[derive(Debug, Default)]
struct Checked {
    findings: Vec<Finding>,
    missed: Option<Failure>,
}

impl Checked {
    /// Adds findings. A call that fails does not remove the findings of others.
    fn add(&mut self, found: Result<impl IntoIterator<Item = Finding>, Failure>) {
        match found {
            Ok(findings) => self.findings.extend(findings),
            Err(failure) => self.missed = self.missed.take().or(Some(failure)),
        }
    }
}

/// The findings of a check, or why it failed.
type Found = Result<Vec<Finding>, Failure>;

impl From<Found> for Checked {
    fn from(found: Found) -> Self {
        let mut checked = Self::default();
        checked.add(found);
        checked
    }
}

/// The input of the checks.
pub(crate) struct Preflight<'a> {
    pub(crate) cloud: &'a Cloud,
    /// Until when throttled calls are repeated.
    pub(crate) deadline: &'a Deadline,
    pub(crate) observer: &'a dyn Observer,
    pub(crate) options: &'a StackOptions,
    pub(crate) place: &'a Place,
    pub(crate) template: &'a Template,
    pub(crate) changes: &'a [ResourceChange],
    pub(crate) outputs: &'a [OutputChange],
    /// The stack, if there is one.
    pub(crate) deployed: Option<&'a Deployed>,
    /// The table to import, if there is one.
    pub(crate) table: Option<&'a TableDescription>,
}

impl Preflight<'_> {
    /// Runs every check and returns all findings.
    pub(crate) async fn findings(&self) -> Vec<Finding> {
        let (boundary, roles, taken, logs) = tokio::join!(
            Box::pin(self.boundary()),
            Box::pin(self.external_roles()),
            Box::pin(self.iam_names()),
            Box::pin(self.log_groups())
        );
        let (topic, archive, code, readers, exports) = tokio::join!(
            Box::pin(self.alarm_topic()),
            Box::pin(self.archive_bucket()),
            Box::pin(self.named_archives()),
            Box::pin(self.stream_readers()),
            Box::pin(self.exports_in_use())
        );
        let checks = [
            ("the permission boundary", boundary.into()),
            ("the functions' roles", roles),
            ("names of roles and policies", taken),
            ("log groups", logs),
            ("the alarms' topic", topic.into()),
            ("the archive bucket", archive.into()),
            ("the functions' archives", code),
            ("readers of the stream", readers.into()),
            ("exports", exports),
        ];
        let mut findings = Vec::new();
        for (what, checked) in checks {
            findings.extend(checked.findings);
            if let Some(failure) = checked.missed {
                let reason = failure.message().to_owned();
                self.observer.observe(&Event::NotChecked {
                    what: what.to_owned(),
                    reason,
                });
            }
        }
        findings
    }

    /// A property of each resource of this type that the change creates or replaces because of the property, by logical
    /// id. Values that are not known before the change are left out.
    fn made(&self, resource_type: &str, property: &str) -> Vec<(String, String)> {
        let made = |change: &&ResourceChange| match change.kind {
            Kind::Add => true,
            Kind::Replace | Kind::MayReplace => {
                change.properties.iter().any(|changed| changed.path == property)
            }
            _ => false,
        };
        let added = self
            .changes
            .iter()
            .filter(|change| change.resource_type == resource_type)
            .filter(made);
        let resources: std::collections::BTreeMap<_, _> = self.template.resources().collect();
        let values = added.filter_map(|change| {
            let value = resources
                .get(change.logical_id.as_str())?
                .get("Properties")?
                .get(property)?;
            Some((change.logical_id.clone(), text::resolve(value, self.place)?))
        });
        values.collect()
    }
}

/// `None` if AWS says that it does not exist.
fn found<T>(response: Result<T, Failure>) -> Result<Option<T>, Failure> {
    match response {
        Ok(value) => Ok(Some(value)),
        Err(failure) if failure.absent() => Ok(None),
        Err(failure) => Err(failure),
    }
}

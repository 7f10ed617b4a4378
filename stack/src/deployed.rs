//! The deployed stack.

use std::collections::BTreeMap;

use serde_json::Value;
use zae_limiter_template::deployer::Place;
use zae_limiter_template::{LambdaFunction, Template};

use crate::events::timestamp;
use crate::fingerprint::CHANGE_SET_PREFIX;
use crate::owner::Owner;
use crate::situation::Situation;

/// A stack without its template.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Described {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) status: String,
    pub(crate) reason: Option<String>,
    pub(crate) tags: BTreeMap<String, String>,
    pub(crate) parameters: BTreeMap<String, String>,
    pub(crate) outputs: BTreeMap<String, String>,
    pub(crate) created: String,
    pub(crate) updated: Option<String>,
    /// Whether it has termination protection.
    pub(crate) protected: bool,
}

impl Described {
    pub(crate) fn of(stack: &aws_sdk_cloudformation::types::Stack) -> Self {
        let pair = |key: Option<&str>, value: Option<&str>| {
            Some((key?.to_owned(), value.unwrap_or_default().to_owned()))
        };
        Self {
            id: stack.stack_id().unwrap_or_default().to_owned(),
            name: stack.stack_name().unwrap_or_default().to_owned(),
            status: stack
                .stack_status()
                .map(|status| status.as_str().to_owned())
                .unwrap_or_default(),
            reason: stack
                .stack_status_reason()
                .filter(|reason| !reason.is_empty())
                .map(str::to_owned),
            tags: stack
                .tags()
                .iter()
                .filter_map(|tag| pair(tag.key(), tag.value()))
                .collect(),
            parameters: stack
                .parameters()
                .iter()
                .filter_map(|p| pair(p.parameter_key(), p.parameter_value()))
                .collect(),
            outputs: stack
                .outputs()
                .iter()
                .filter_map(|o| pair(o.output_key(), o.output_value()))
                .collect(),
            created: stack.creation_time().map(timestamp).unwrap_or_default(),
            updated: stack.last_updated_time().map(timestamp),
            protected: stack.enable_termination_protection() == Some(true),
        }
    }

    pub(crate) fn situation(&self) -> Situation {
        Situation::of(&self.status)
    }

    /// When it was last changed.
    pub(crate) fn changed_at(&self) -> &str {
        self.updated.as_deref().unwrap_or(&self.created)
    }

    /// Partition, region and account, from its ARN.
    pub(crate) fn place(&self) -> Option<Place> {
        let mut parts = self.id.split(':');
        let (Some("arn"), Some(partition), Some("cloudformation")) =
            (parts.next(), parts.next(), parts.next())
        else {
            return None;
        };
        let (region, account) = (parts.next()?, parts.next()?);
        Some(Place {
            partition: partition.into(),
            region: region.into(),
            account: account.into(),
        })
    }
}

/// A stack with its template.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Deployed {
    pub(crate) stack: Described,
    /// `None` if the template is not of this project, or not there yet. The stack's name and parameter values are filled in,
    /// so it does not matter which tool deployed it.
    pub(crate) template: Option<Template>,
    /// The names of an empty stack's change sets, if nothing else shows who owns it.
    change_sets: Vec<String>,
}

impl Deployed {
    pub(crate) fn new(stack: Described, body: &str) -> Self {
        // A template that does not parse has tags such as !Ref, so it is not one of this project.
        let template = Template::parse(body)
            .ok()
            .filter(Template::is_ours)
            .map(|template| template.resolved(&stack.name, &stack.parameters));
        Self {
            stack,
            template,
            change_sets: vec![],
        }
    }

    /// A stack of this template, for tests.
    #[cfg(test)]
    pub(crate) fn test(body: &str) -> Self {
        Self::new(tests::described("CREATE_COMPLETE", &[], &[]), body)
    }

    /// An empty stack that waits for its first change set.
    pub(crate) fn in_review(stack: Described, change_sets: Vec<String>) -> Self {
        Self {
            stack,
            template: None,
            change_sets,
        }
    }

    pub(crate) fn owner(&self) -> Owner {
        match self.template {
            Some(_) => Owner::Ours,
            // A stack gets the tags of a change set when it is executed, so an empty stack may have none.
            None if self.stack.situation() == Situation::Review && self.stack.tags.is_empty() => {
                let ours = |name: &String| name.starts_with(CHANGE_SET_PREFIX);
                if self.change_sets.iter().all(ours) {
                    Owner::Ours
                } else {
                    Owner::Foreign
                }
            }
            None if self.stack.situation() == Situation::Review => {
                Owner::by_marks(&self.stack.parameters, &self.stack.tags)
            }
            // With a mark and without a template of ours it can only be the peer's.
            None if Owner::by_marks(&self.stack.parameters, &self.stack.tags) != Owner::Foreign => {
                Owner::Peer
            }
            None => Owner::Foreign,
        }
    }

    /// Why another tool seems to deploy this stack; `None` if this project does.
    pub(crate) fn managed_elsewhere(&self) -> Option<String> {
        let stack = &self.stack;
        if !stack.parameters.is_empty() {
            let names: Vec<_> = stack.parameters.keys().map(String::as_str).collect();
            return Some(format!("it has parameters ({})", names.join(", ")));
        }
        match stack.tags.get("ManagedBy") {
            Some(by) if by == "zae-limiter" => None,
            Some(by) => Some(format!("its tag ManagedBy is {by:?}")),
            None => Some("it has no tag ManagedBy".to_owned()),
        }
    }

    /// The deployed location of a function's code.
    pub(crate) fn code_of(&self, function: LambdaFunction) -> Option<Value> {
        let resource = self.template.as_ref()?.resource(&function.ids().function)?;
        resource.get("Properties")?.get("Code").cloned()
    }

    /// The processor that a function runs on now.
    pub(crate) fn architecture_of(&self, function: LambdaFunction) -> Option<&str> {
        let resource = self.template.as_ref()?.resource(&function.ids().function)?;
        resource["Properties"]["Architectures"][0].as_str()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    pub(super) fn described(status: &str, tags: &[(&str, &str)], parameters: &[(&str, &str)]) -> Described {
        let map = |pairs: &[(&str, &str)]| {
            pairs
                .iter()
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
                .collect()
        };
        Described {
            id: "arn:aws-cn:cloudformation:cn-north-1:123456789012:stack/demo/1".into(),
            name: "demo".into(),
            status: status.into(),
            reason: None,
            tags: map(tags),
            parameters: map(parameters),
            outputs: BTreeMap::new(),
            created: "2026-01-01T00:00:00Z".into(),
            updated: None,
            protected: false,
        }
    }

    const OURS: &str = r#"{"Metadata":{"zae-limiter":{"version":"0.1.0"}},"Resources":{}}"#;
    const OTHER: &str =
        "Resources: { Table: { Type: AWS::DynamoDB::Table, Properties: { TableName: !Ref Name } } }";
    const MANAGED: &[(&str, &str)] = &[("ManagedBy", "zae-limiter")];

    #[test]
    fn c7_a_stack_is_ours_only_by_the_metadata_of_its_template() {
        let owner = |tags, parameters, body| {
            Deployed::new(described("CREATE_COMPLETE", tags, parameters), body).owner()
        };
        assert_eq!(owner(&[], &[], OURS), Owner::Ours);
        assert_eq!(owner(MANAGED, &[("SchemaVersion", "0.8.0")], OTHER), Owner::Peer);
        assert_eq!(owner(&[], &[("SchemaVersion", "0.8.0")], OTHER), Owner::Peer);
        assert_eq!(owner(MANAGED, &[], OTHER), Owner::Peer);
        assert_eq!(owner(&[], &[], OTHER), Owner::Foreign);
    }

    #[test]
    fn a_stack_without_template_yet_is_known_by_its_tags_or_else_by_its_change_sets() {
        let owner = |tags, change_sets: &[&str]| {
            let change_sets = change_sets.iter().map(|name| (*name).to_owned()).collect();
            Deployed::in_review(described("REVIEW_IN_PROGRESS", tags, &[]), change_sets).owner()
        };
        assert_eq!(owner(MANAGED, &[]), Owner::Ours);
        assert_eq!(owner(&[("team", "blue")], &["zl-1"]), Owner::Foreign);
        assert_eq!(owner(&[], &[]), Owner::Ours);
        assert_eq!(owner(&[], &["zl-1", "zl-2"]), Owner::Ours);
        assert_eq!(owner(&[], &["zl-1", "release-7"]), Owner::Foreign);
    }

    #[test]
    fn h9_the_place_is_read_from_the_arn() {
        let place = described("CREATE_COMPLETE", &[], &[]).place().unwrap();
        assert_eq!(
            (&*place.partition, &*place.region, &*place.account),
            ("aws-cn", "cn-north-1", "123456789012")
        );
    }

    #[test]
    fn deployed_code_has_the_values_of_parameters() {
        let body = r#"{"Metadata":{"zae-limiter":{}},"Resources":{"AggregatorFunction":{"Properties":
            {"Code":{"S3Bucket":{"Ref":"CodeBucket"},"S3Key":{"Fn::Sub":"${AWS::Region}/a.zip"}}}}}}"#;
        let deployed = Deployed::new(described("CREATE_COMPLETE", &[], &[("CodeBucket", "mine")]), body);
        let code = deployed.code_of(LambdaFunction::Aggregator).unwrap();
        assert_eq!(
            code,
            serde_json::json!({"S3Bucket": "mine", "S3Key": {"Fn::Sub": "${AWS::Region}/a.zip"}})
        );
        assert_eq!(deployed.code_of(LambdaFunction::Archiver), None);
    }
}

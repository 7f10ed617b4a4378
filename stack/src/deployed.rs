//! What is deployed, as CloudFormation tells it.

use std::collections::BTreeMap;

use serde_json::Value;
use zae_limiter_template::deployer::Place;
use zae_limiter_template::{LambdaFunction, Template};

use crate::events::timestamp;
use crate::owner::{Owner, tagged};
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
        }
    }

    pub(crate) fn situation(&self) -> Situation {
        Situation::of(&self.status)
    }

    /// When it last changed.
    pub(crate) fn changed_at(&self) -> &str {
        self.updated.as_deref().unwrap_or(&self.created)
    }

    /// Partition, region and account, which its ARN has: no other call is needed to know them.
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
    /// Nothing where it is not one of ours, or not there yet.
    pub(crate) template: Option<Template>,
}

impl Deployed {
    /// `body` is nothing for a stack that waits for its first change set and has no template.
    pub(crate) fn new(stack: Described, body: Option<&str>) -> Self {
        // A template that our reader refuses has tags such as !Ref, so it is not one of ours.
        let template = body
            .and_then(|body| Template::parse(body).ok())
            .filter(Template::is_ours);
        Self { stack, template }
    }

    pub(crate) fn owner(&self) -> Owner {
        match self.template {
            Some(_) => Owner::Ours,
            // Without a template the tags are all there is to go by.
            None if self.stack.situation() == Situation::Review => {
                Owner::by_marks(&self.stack.parameters, &self.stack.tags)
            }
            None if tagged(&self.stack.tags) => Owner::Peer,
            None => match Owner::by_marks(&self.stack.parameters, &self.stack.tags) {
                Owner::Ours => Owner::Foreign,
                other => other,
            },
        }
    }

    /// Where a function's code is now, with the values of parameters in it.
    pub(crate) fn code_of(&self, function: LambdaFunction) -> Option<Value> {
        let resource = self.template.as_ref()?.resource(&function.ids().function)?;
        let code = resource.get("Properties")?.get("Code")?;
        Some(with_parameters(code, &self.stack.parameters))
    }
}

/// Replaces references to parameters by their values: a template rendered for a name has no parameters.
fn with_parameters(value: &Value, parameters: &BTreeMap<String, String>) -> Value {
    match value {
        Value::Object(fields) => {
            let referenced = fields
                .get("Ref")
                .and_then(Value::as_str)
                .and_then(|name| parameters.get(name));
            if let Some(given) = referenced.filter(|_| fields.len() == 1) {
                return Value::String(given.clone());
            }
            fields
                .iter()
                .map(|(key, value)| (key.clone(), with_parameters(value, parameters)))
                .collect()
        }
        Value::Array(items) => items
            .iter()
            .map(|item| with_parameters(item, parameters))
            .collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn described(status: &str, tags: &[(&str, &str)], parameters: &[(&str, &str)]) -> Described {
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
        }
    }

    const OURS: &str = r#"{"Metadata":{"zae-limiter":{"version":"0.1.0"}},"Resources":{}}"#;
    const OTHER: &str =
        "Resources: { Table: { Type: AWS::DynamoDB::Table, Properties: { TableName: !Ref Name } } }";
    const MANAGED: &[(&str, &str)] = &[("ManagedBy", "zae-limiter")];

    #[test]
    fn c7_a_stack_is_ours_only_by_the_metadata_of_its_template() {
        let owner = |tags, parameters, body| {
            Deployed::new(described("CREATE_COMPLETE", tags, parameters), Some(body)).owner()
        };
        assert_eq!(owner(&[], &[], OURS), Owner::Ours);
        assert_eq!(owner(MANAGED, &[("SchemaVersion", "0.8.0")], OTHER), Owner::Peer);
        assert_eq!(owner(&[], &[("SchemaVersion", "0.8.0")], OTHER), Owner::Peer);
        assert_eq!(owner(MANAGED, &[], OTHER), Owner::Peer);
        assert_eq!(owner(&[], &[], OTHER), Owner::Foreign);
    }

    #[test]
    fn a_stack_without_template_yet_is_known_by_its_tags() {
        let owner = |tags| Deployed::new(described("REVIEW_IN_PROGRESS", tags, &[]), None).owner();
        assert_eq!(owner(MANAGED), Owner::Ours);
        assert_eq!(owner(&[]), Owner::Foreign);
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
        let deployed = Deployed::new(
            described("CREATE_COMPLETE", &[], &[("CodeBucket", "mine")]),
            Some(body),
        );
        let code = deployed.code_of(LambdaFunction::Aggregator).unwrap();
        assert_eq!(
            code,
            serde_json::json!({"S3Bucket": "mine", "S3Key": {"Fn::Sub": "${AWS::Region}/a.zip"}})
        );
        assert_eq!(deployed.code_of(LambdaFunction::Archiver), None);
    }
}

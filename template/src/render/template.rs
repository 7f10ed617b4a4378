//! A CloudFormation template.

use std::collections::BTreeMap;

use serde_json::Value;

use super::resolved::Values;
use super::yaml;
use crate::METADATA;
use crate::model::LogicalId;
use crate::resources::STORED_OPTIONS;
use crate::{Error, StackOptionsBuilder};

/// A CloudFormation template, in the order of the model.
///
/// Templates are equal if they have the same content, in any order.
#[derive(Debug, Clone, PartialEq)]
pub struct Template {
    value: Value,
}

impl Template {
    /// The longest template body that CloudFormation accepts in a request, in bytes.
    pub const LONGEST_BODY: usize = 51_200;

    /// The longest template that CloudFormation reads from a bucket, in bytes.
    pub const LONGEST_OBJECT: usize = 1_000_000;

    pub(crate) fn new(value: Value) -> Self {
        Self { value }
    }

    /// Parses a template, JSON or YAML, such as a deployed one. Tags such as `!Ref`, which our templates never have, are refused.
    ///
    /// ```
    /// use zae_limiter_template::Template;
    ///
    /// let template = Template::parse("Resources: { Queue: { Type: AWS::SQS::Queue } }")?;
    /// assert!(!template.is_ours());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self, serde_yaml::Error> {
        serde_yaml::from_str(text).map(Self::new)
    }

    /// A template from its JSON value.
    pub fn from_value(value: Value) -> Self {
        Self::new(value)
    }

    /// The template as a value.
    pub fn to_value(&self) -> &Value {
        &self.value
    }

    /// Compact JSON, for the API.
    pub fn to_json(&self) -> String {
        self.value.to_string()
    }

    /// Its size as compact JSON, in bytes.
    pub fn size(&self) -> usize {
        self.to_json().len()
    }

    /// Whether it is too long for a request, so that CloudFormation has to read it from a bucket.
    pub fn needs_upload(&self) -> bool {
        self.size() > Self::LONGEST_BODY
    }

    /// YAML, for people. YAML 1.1 and 1.2 read it alike.
    pub fn to_yaml(&self) -> String {
        yaml::to_string(&self.value)
    }

    /// Whether this crate rendered it.
    pub fn is_ours(&self) -> bool {
        self.own_metadata().is_some()
    }

    /// The release that rendered it, if this crate did.
    pub fn version(&self) -> Option<&str> {
        self.own_metadata()?.get("version")?.as_str()
    }

    /// The options that it was rendered from, if it has them: all but `tags`, which the stack has, and `code_directory`.
    ///
    /// ```
    /// use zae_limiter_template::{StackOptions, export};
    ///
    /// let options = StackOptions::builder().lambda_memory(512).build()?;
    /// let template = export::cloudformation(&options)?;
    /// let stored = template.options()?.map(|stored| stored.build()).transpose()?;
    /// assert_eq!(stored.map(|stored| stored.lambda_memory()), Some(512));
    /// # Ok::<(), zae_limiter_template::Error>(())
    /// ```
    pub fn options(&self) -> Result<Option<StackOptionsBuilder>, Error> {
        let stored = self
            .own_metadata()
            .and_then(|metadata| metadata.get(STORED_OPTIONS)?.as_str());
        let parsed = stored.map(serde_json::from_str).transpose();
        parsed.map_err(|source| Error::OptionsValue { source })
    }

    /// Whether both templates make the same stack. Stored options are ignored: CloudFormation changes metadata only together
    /// with something else.
    pub fn deploys_the_same_as(&self, other: &Self) -> bool {
        self.what_deploys() == other.what_deploys()
    }

    /// What makes a difference to a stack: everything but the stored options.
    pub fn what_deploys(&self) -> Value {
        let mut value = self.value.clone();
        let own = value
            .get_mut("Metadata")
            .and_then(|metadata| metadata.get_mut(METADATA)?.as_object_mut());
        if let Some(own) = own {
            own.remove(STORED_OPTIONS);
        }
        value
    }

    /// The template of a stack with this name and these parameters, which equals one rendered for the name.
    ///
    /// ```
    /// use zae_limiter_template::Template;
    ///
    /// let exported = Template::parse("Resources: { Queue: { Properties: { QueueName: { Ref: AWS::StackName } } } }")?;
    /// let deployed = exported.resolved("limiter", &Default::default());
    /// assert_eq!(deployed.to_value()["Resources"]["Queue"]["Properties"]["QueueName"], "limiter");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn resolved(&self, stack: &str, parameters: &BTreeMap<String, String>) -> Self {
        let mut value = Values { stack, parameters }.put_into(&self.value);
        if let Some(sections) = value.as_object_mut() {
            sections.remove("Parameters");
        }
        Self::new(value)
    }

    fn own_metadata(&self) -> Option<&Value> {
        self.value.get("Metadata")?.get(METADATA)
    }

    /// The logical ids of its resources, in order.
    pub fn logical_ids(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.resources().map(|(id, _)| id)
    }

    /// Its resources by logical id, in order.
    pub fn resources(&self) -> impl DoubleEndedIterator<Item = (&str, &Value)> {
        let resources = self.value.get("Resources").and_then(Value::as_object);
        resources
            .into_iter()
            .flatten()
            .map(|(id, resource)| (id.as_str(), resource))
    }

    /// A resource: its type, policies and properties.
    pub fn resource(&self, id: &LogicalId) -> Option<&Value> {
        self.value.get("Resources")?.get(id.as_str())
    }

    /// The resources with data that are retained when the stack is deleted. A bucket's policy stays with its bucket.
    pub fn retained(&self) -> impl Iterator<Item = &str> {
        let stays = |resource: &Value| {
            let policy = resource.get("DeletionPolicy").and_then(Value::as_str);
            policy.is_some_and(|policy| policy.starts_with("Retain"))
                && resource["Type"] != "AWS::S3::BucketPolicy"
        };
        self.resources()
            .filter(move |(_, resource)| stays(resource))
            .map(|(id, _)| id)
    }

    /// The names of its outputs, in order.
    pub fn output_names(&self) -> impl Iterator<Item = &str> {
        let outputs = self.value.get("Outputs").and_then(Value::as_object);
        outputs.into_iter().flatten().map(|(name, _)| name.as_str())
    }
}

//! The typed model of a stack: resources, and references between them.
//!
//! [`Model::of_stack`](crate::model::Model::of_stack) builds the stack. An application may add resources or change a property
//! before [`Model::render`]; the result is checked by the same [rules](crate::check).
//!
//! ```
//! use zae_limiter_template::model::{LogicalId, Model, Resource, ids};
//! use zae_limiter_template::{FunctionCode, StackName, StackOptions};
//!
//! let name = StackName::parse("limiter")?;
//! let options = StackOptions::builder().enable_aggregator(false).enable_audit_archival(false).build()?;
//! let mut model = Model::of_stack(&name, &options, &FunctionCode::none())?;
//! let topic = Resource::new("AWS::SNS::Topic", serde_json::json!({ "DisplayName": "limits" }));
//! model.add_resource(LogicalId::parse("Topic")?, topic)?;
//! model.patch(&ids::TABLE, "/DeletionProtectionEnabled", true.into())?;
//! let template = model.render()?;
//! assert_eq!(template.logical_ids().last(), Some("Topic"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod arn;
pub mod cloudwatch;
pub mod dynamodb;
pub mod filter;
pub mod iam;
mod id;
pub mod lambda;
pub mod logs;
mod output;
mod patch;
mod resource;
pub mod s3;
pub mod sqs;
mod tag;
mod text;

pub use crate::resources::ids;
pub use id::LogicalId;
pub use output::{Export, Output, Parameter};
pub use resource::{Construct, Handle, Keep, Resource};
pub use tag::Tag;
pub use text::{Pseudo, Text};

use serde_json::{Map, Value, json};

use crate::check::{self, Exception, Facts, Rule};
use crate::{Error, Template};

/// The resources, parameters and outputs of a stack, before they become a template.
#[derive(Debug, Clone)]
pub struct Model {
    description: String,
    metadata: Map<String, Value>,
    parameters: Vec<(LogicalId, Parameter)>,
    resources: Vec<(LogicalId, Resource)>,
    outputs: Vec<(LogicalId, Output)>,
    exceptions: Vec<Exception>,
    facts: Facts,
}

impl Model {
    /// An empty model, to be checked against these facts.
    pub(crate) fn new(description: impl Into<String>, metadata: Map<String, Value>, facts: Facts) -> Self {
        Self {
            description: description.into(),
            metadata,
            parameters: vec![],
            resources: vec![],
            outputs: vec![],
            exceptions: vec![],
            facts,
        }
    }

    /// Adds a resource and returns a handle for references.
    pub fn add<C: Construct>(&mut self, id: LogicalId, construct: &C) -> Result<Handle<C>, Error> {
        let properties = serde_json::to_value(construct).map_err(|source| Error::Construct {
            id: id.clone(),
            source,
        })?;
        self.add_resource(id.clone(), Resource::new(C::TYPE, properties).keep(C::KEEP))?;
        Ok(Handle::new(id))
    }

    /// Adds a resource of any type.
    pub fn add_resource(&mut self, id: LogicalId, resource: Resource) -> Result<(), Error> {
        if self.resource(&id).is_some() || self.parameters.iter().any(|(taken, _)| *taken == id) {
            return Err(Error::Taken { id });
        }
        self.resources.push((id, resource));
        Ok(())
    }

    /// Adds a parameter and returns a reference to its value.
    pub fn add_parameter(&mut self, id: LogicalId, parameter: Parameter) -> Result<Text, Error> {
        if self.resource(&id).is_some() || self.parameters.iter().any(|(taken, _)| *taken == id) {
            return Err(Error::Taken { id });
        }
        self.parameters.push((id.clone(), parameter));
        Ok(Text::reference(id))
    }

    /// Adds an output.
    pub fn add_output(&mut self, id: LogicalId, output: Output) -> Result<(), Error> {
        if self.outputs.iter().any(|(taken, _)| *taken == id) {
            return Err(Error::Taken { id });
        }
        self.outputs.push((id, output));
        Ok(())
    }

    /// A resource of the model.
    pub fn resource(&self, id: &LogicalId) -> Option<&Resource> {
        self.resources
            .iter()
            .find(|(known, _)| known == id)
            .map(|(_, resource)| resource)
    }

    /// Sets one property of a resource, by JSON pointer: `/MemorySize`, `/Environment/Variables/EXTRA`.
    ///
    /// Missing parent objects are created. A list element must exist; `-` appends one.
    pub fn patch(&mut self, id: &LogicalId, pointer: &str, value: Value) -> Result<(), Error> {
        patch::set(self.properties_of(id)?, pointer, value).map_err(|problem| Error::Patch {
            id: id.clone(),
            pointer: pointer.to_owned(),
            problem,
        })
    }

    /// Removes a property of a resource.
    pub fn remove_property(&mut self, id: &LogicalId, pointer: &str) -> Result<Value, Error> {
        patch::remove(self.properties_of(id)?, pointer).map_err(|problem| Error::Patch {
            id: id.clone(),
            pointer: pointer.to_owned(),
            problem,
        })
    }

    fn properties_of(&mut self, id: &LogicalId) -> Result<&mut Value, Error> {
        let found = self.resources.iter_mut().find(|(known, _)| known == id);
        found
            .map(|(_, resource)| &mut resource.properties)
            .ok_or_else(|| Error::NoSuchResource { id: id.clone() })
    }

    /// Allows a resource to break a rule, for a stated reason.
    pub fn allow(&mut self, rule: Rule, id: LogicalId, reason: impl Into<String>) {
        self.exceptions.push(Exception {
            rule,
            id,
            about: None,
            reason: reason.into(),
        });
    }

    /// Allows one part of a resource, such as an action or a variable, to break a rule, for a stated reason.
    pub fn allow_only(
        &mut self,
        rule: Rule,
        id: LogicalId,
        about: impl Into<String>,
        reason: impl Into<String>,
    ) {
        self.exceptions.push(Exception {
            rule,
            id,
            about: Some(about.into()),
            reason: reason.into(),
        });
    }

    /// The exceptions so far.
    pub fn exceptions(&self) -> &[Exception] {
        &self.exceptions
    }

    /// Renders the template, or reports every finding if a rule does not hold.
    pub fn render(&self) -> Result<Template, Error> {
        let template = Template::new(self.to_value());
        let findings = check::check(&template, &self.facts, &self.exceptions);
        if findings.is_empty() {
            Ok(template)
        } else {
            Err(Error::Rules { findings })
        }
    }

    fn to_value(&self) -> Value {
        let mut template = Map::new();
        template.insert("AWSTemplateFormatVersion".into(), json!("2010-09-09"));
        template.insert("Description".into(), json!(self.description));
        template.insert("Metadata".into(), Value::Object(self.metadata.clone()));
        if !self.parameters.is_empty() {
            template.insert(
                "Parameters".into(),
                section(&self.parameters, |parameter| json!(parameter)),
            );
        }
        template.insert("Resources".into(), section(&self.resources, Resource::to_value));
        template.insert("Outputs".into(), section(&self.outputs, |output| json!(output)));
        Value::Object(template)
    }
}

fn section<T>(entries: &[(LogicalId, T)], to_value: impl Fn(&T) -> Value) -> Value {
    entries
        .iter()
        .map(|(id, entry)| (id.to_string(), to_value(entry)))
        .collect::<Map<_, _>>()
        .into()
}

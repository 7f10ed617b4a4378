//! One resource of a template.

use std::marker::PhantomData;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{LogicalId, Text};

/// Properties of one CloudFormation resource type.
pub trait Construct: Serialize {
    /// The type's name, such as `AWS::SQS::Queue`.
    const TYPE: &'static str;
    /// What happens to the resource when it leaves the stack.
    const KEEP: Keep = Keep::Unsaid;
}

/// What happens to a resource when it is removed from the stack, replaced, or the stack is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// Nothing is said: CloudFormation deletes it.
    Unsaid,
    /// It is deleted, and the template says so.
    Delete,
    /// It stays, unless the very operation that creates it fails.
    Retain,
}

/// A resource that is in the model, for others to refer to.
#[derive(Debug)]
pub struct Handle<C> {
    id: LogicalId,
    construct: PhantomData<C>,
}

impl<C> Handle<C> {
    pub(crate) fn new(id: LogicalId) -> Self {
        Self {
            id,
            construct: PhantomData,
        }
    }

    /// The resource's logical id.
    pub fn id(&self) -> &LogicalId {
        &self.id
    }

    /// What `Ref` gives for the resource: mostly its name, for a managed policy its ARN.
    pub fn reference(&self) -> Text {
        Text::reference(self.id.clone())
    }

    /// An attribute of the resource as `Fn::GetAtt` knows it.
    pub fn attribute(&self, name: &'static str) -> Text {
        Text::attribute(self.id.clone(), name)
    }
}

impl<C> Clone for Handle<C> {
    fn clone(&self) -> Self {
        Self::new(self.id.clone())
    }
}

/// A resource as it will stand in the template.
#[derive(Debug, Clone, PartialEq)]
pub struct Resource {
    /// The CloudFormation type.
    pub kind: String,
    /// What happens to it in the end.
    pub keep: Keep,
    /// Its properties.
    pub properties: Value,
}

impl Resource {
    /// A resource of a type that has no construct here.
    ///
    /// ```
    /// use zae_limiter_template::model::Resource;
    ///
    /// let topic = Resource::new("AWS::SNS::Topic", serde_json::json!({ "DisplayName": "limits" }));
    /// assert_eq!(topic.kind, "AWS::SNS::Topic");
    /// ```
    pub fn new(kind: impl Into<String>, properties: Value) -> Self {
        Self {
            kind: kind.into(),
            keep: Keep::Unsaid,
            properties,
        }
    }

    /// The resource with another fate.
    #[must_use]
    pub fn keep(mut self, keep: Keep) -> Self {
        self.keep = keep;
        self
    }

    pub(crate) fn to_value(&self) -> Value {
        let mut value = Map::new();
        value.insert("Type".into(), json!(self.kind));
        let policies = match self.keep {
            Keep::Unsaid => None,
            Keep::Delete => Some(("Delete", "Delete")),
            Keep::Retain => Some(("RetainExceptOnCreate", "Retain")),
        };
        if let Some((deletion, replacement)) = policies {
            value.insert("DeletionPolicy".into(), json!(deletion));
            value.insert("UpdateReplacePolicy".into(), json!(replacement));
        }
        value.insert("Properties".into(), self.properties.clone());
        Value::Object(value)
    }
}

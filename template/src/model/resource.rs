//! One resource of a template.

use std::marker::PhantomData;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{LogicalId, Text};

/// The properties of a CloudFormation resource type.
pub trait Construct: Serialize {
    /// The type's name, such as `AWS::SQS::Queue`.
    const TYPE: &'static str;
    /// What happens to the resource when it is removed from the stack.
    const KEEP: Keep = Keep::Unsaid;
}

/// What happens to a resource when it is removed from the stack, replaced, or the stack is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// The template does not say: CloudFormation deletes it.
    Unsaid,
    /// It is deleted, explicitly.
    Delete,
    /// It is retained, unless the operation that creates it fails.
    Retain,
}

/// A resource of the model, to refer to.
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

    /// The value of `Ref`: usually the name, for a managed policy its ARN.
    pub fn reference(&self) -> Text {
        Text::reference(self.id.clone())
    }

    /// The value of `Fn::GetAtt` for an attribute.
    pub fn attribute(&self, name: &'static str) -> Text {
        Text::attribute(self.id.clone(), name)
    }
}

impl<C> Clone for Handle<C> {
    fn clone(&self) -> Self {
        Self::new(self.id.clone())
    }
}

/// A resource of a template.
#[derive(Debug, Clone, PartialEq)]
pub struct Resource {
    /// The CloudFormation type.
    pub kind: String,
    /// What happens to it when it is removed.
    pub keep: Keep,
    /// Its properties.
    pub properties: Value,
}

impl Resource {
    /// A resource of any type.
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

    /// The resource with another removal behavior.
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

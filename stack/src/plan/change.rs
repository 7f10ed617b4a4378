//! One change of one resource.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The kind of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The resource is created.
    Add,
    /// The resource exists and becomes part of the stack.
    Import,
    /// The resource is changed in place.
    Change,
    /// The resource is replaced by a new one.
    Replace,
    /// The resource is changed or replaced: CloudFormation decides during the update.
    MayReplace,
    /// The resource leaves the stack; [`ResourceChange::kept`] says whether it is deleted.
    Remove,
}

impl Kind {
    /// The sign in a plan's text.
    pub const fn sign(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Import => "<",
            Self::Change => "~",
            Self::Replace | Self::MayReplace => "!",
            Self::Remove => "-",
        }
    }
}

/// A property with its values before and after.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PropertyChange {
    /// Its path in the resource, such as `Environment/Variables/TTL`.
    pub path: String,
    /// Its value in the deployed template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// Its value in the new template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
    /// Whether this change makes CloudFormation replace the resource.
    #[serde(default)]
    pub replaces: bool,
}

/// A change of a resource.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResourceChange {
    /// The resource in the template.
    pub logical_id: String,
    /// Such as `AWS::Lambda::Function`.
    pub resource_type: String,
    /// The resource in the account, if it exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub physical_id: Option<String>,
    /// The kind of change.
    pub kind: Kind,
    /// Whether the old one stays in the account when it leaves the stack.
    #[serde(default)]
    pub kept: bool,
    /// Whether only tags change.
    #[serde(default)]
    pub tags_only: bool,
    /// Whether it changes only because it refers to another resource that changes.
    #[serde(default)]
    pub follows: bool,
    /// The properties that change; of a new resource, all its properties.
    #[serde(default)]
    pub properties: Vec<PropertyChange>,
}

impl ResourceChange {
    /// Whether it changes permissions: roles, policies, and policies of queues and buckets.
    pub fn is_iam(&self) -> bool {
        self.resource_type.starts_with("AWS::IAM::")
            || self.resource_type.ends_with("Policy")
            || self.resource_type == "AWS::Lambda::Permission"
    }
}

/// A change of a tag of the stack, which its resources have as well.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TagChange {
    /// The tag's key.
    pub key: String,
    /// Its value now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// Its value afterward.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

/// A change of an output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OutputChange {
    /// The output's name.
    pub name: String,
    /// The kind of change: add, change or remove.
    pub kind: Kind,
    /// The export that this changes or removes and that other stacks may import.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub export: Option<String>,
}

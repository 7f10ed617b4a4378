//! One change of one resource.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What happens to a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// It is made.
    Add,
    /// It exists and becomes part of the stack as it is.
    Import,
    /// It is changed in place.
    Change,
    /// A new one is made and the old one goes.
    Replace,
    /// It is changed, or replaced: CloudFormation will know when it does it.
    MayReplace,
    /// It leaves the stack; whether it is deleted is told by [`ResourceChange::kept`].
    Remove,
}

impl Kind {
    /// The sign that people know from other tools.
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

/// One property with its value before and after.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PropertyChange {
    /// Where it is in the resource, such as `Environment/Variables/TTL`.
    pub path: String,
    /// Its value in the deployed template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// Its value in the new template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
    /// Whether this is what makes CloudFormation replace the resource.
    #[serde(default)]
    pub replaces: bool,
}

/// What happens to one resource.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResourceChange {
    /// The resource in the template.
    pub logical_id: String,
    /// Such as `AWS::Lambda::Function`.
    pub resource_type: String,
    /// The resource in the account, if it is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub physical_id: Option<String>,
    /// What happens.
    pub kind: Kind,
    /// Whether the old one stays in the account when it leaves the stack.
    #[serde(default)]
    pub kept: bool,
    /// Whether nothing but tags changes.
    #[serde(default)]
    pub tags_only: bool,
    /// What differs.
    #[serde(default)]
    pub properties: Vec<PropertyChange>,
}

impl ResourceChange {
    /// Whether it changes what somebody may do: roles, policies, and policies of queues and buckets.
    pub fn is_iam(&self) -> bool {
        self.resource_type.starts_with("AWS::IAM::")
            || self.resource_type.ends_with("Policy")
            || self.resource_type == "AWS::Lambda::Permission"
    }
}

/// What happens to one output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OutputChange {
    /// The output's name.
    pub name: String,
    /// What happens: add, change or remove.
    pub kind: Kind,
    /// The export that other stacks may use and that this changes or removes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub export: Option<String>,
}

//! IAM policies and roles.

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use super::{Construct, Handle, Pseudo, Text};

/// An IAM action, such as `dynamodb:GetItem`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Action(String);

impl Action {
    /// An action of a service.
    pub fn new(service: &str, operation: &str) -> Self {
        Self(format!("{service}:{operation}"))
    }

    /// The action as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Several actions of one service, in the given order.
pub fn actions(service: &str, operations: &[&str]) -> Vec<Action> {
    operations
        .iter()
        .map(|operation| Action::new(service, operation))
        .collect()
}

/// Allow or deny.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Effect {
    /// Allow.
    Allow,
    /// Deny, which overrides every allow.
    Deny,
}

/// The principal of a resource policy or a trust policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Principal {
    /// Everyone.
    Anyone,
    /// An AWS service, such as `lambda.amazonaws.com`.
    Service(&'static str),
    /// Every principal of the stack's account that its own policies allow.
    Account,
    /// The same of other accounts.
    Accounts(Vec<String>),
}

impl Serialize for Principal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        match self {
            Self::Anyone => map.serialize_entry("AWS", "*")?,
            Self::Service(name) => map.serialize_entry("Service", name)?,
            Self::Account => map.serialize_entry("AWS", &super::arn::of_account("iam", "root"))?,
            Self::Accounts(accounts) => {
                let root = |account: &String| {
                    let start = Text::from("arn:").then(Pseudo::Partition);
                    start.then(format!(":iam::{account}:root"))
                };
                match accounts.as_slice() {
                    [one] => map.serialize_entry("AWS", &root(one))?,
                    all => map.serialize_entry("AWS", &all.iter().map(root).collect::<Vec<_>>())?,
                }
            }
        }
        map.end()
    }
}

/// When a statement applies: if all of its tests hold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Condition {
    tests: Vec<Test>,
}

/// An operator, a condition key, and the values to compare with.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Test {
    operator: &'static str,
    key: &'static str,
    values: Vec<Text>,
}

impl Condition {
    /// Every value of the key matches one of the patterns. It also holds if the request has no such key.
    #[must_use]
    pub fn all_like(self, key: &'static str, patterns: &[&str]) -> Self {
        self.and(
            "ForAllValues:StringLike",
            key,
            patterns.iter().copied().map(Text::from).collect(),
        )
    }

    /// The key has exactly this value.
    #[must_use]
    pub fn equals(self, key: &'static str, value: impl Into<Text>) -> Self {
        self.and("StringEquals", key, vec![value.into()])
    }

    /// The key has this value, or the request has no such key.
    #[must_use]
    pub fn equals_if_exists(self, key: &'static str, value: impl Into<Text>) -> Self {
        self.and("StringEqualsIfExists", key, vec![value.into()])
    }

    /// The key is an ARN that matches this pattern.
    #[must_use]
    pub fn arn_like(self, key: &'static str, pattern: impl Into<Text>) -> Self {
        self.and("ArnLike", key, vec![pattern.into()])
    }

    /// The key is true or false.
    #[must_use]
    pub fn is(self, key: &'static str, value: bool) -> Self {
        self.and("Bool", key, vec![value.to_string().into()])
    }

    fn and(mut self, operator: &'static str, key: &'static str, values: Vec<Text>) -> Self {
        self.tests.push(Test {
            operator,
            key,
            values,
        });
        self
    }
}

impl Serialize for Condition {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut condition = serde_json::Map::new();
        for test in &self.tests {
            let values: Vec<_> = test.values.iter().map(Text::to_value).collect();
            let operator = condition
                .entry(test.operator)
                .or_insert_with(|| serde_json::json!({}));
            operator[test.key] = match <[_; 1]>::try_from(values) {
                Ok([value]) => value,
                Err(values) => values.into(),
            };
        }
        condition.serialize(serializer)
    }
}

/// A statement of a policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Statement {
    /// The statement's id.
    pub sid: &'static str,
    /// Allow or deny.
    pub effect: Effect,
    /// The principal, in policies that are not attached to one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub principal: Option<Principal>,
    /// The actions.
    #[serde(rename = "Action")]
    pub actions: Vec<Action>,
    /// The resources; empty in a trust policy.
    #[serde(rename = "Resource", skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<Text>,
    /// The condition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition: Option<Condition>,
}

impl Statement {
    /// Allows actions on resources.
    pub fn allow(sid: &'static str, actions: Vec<Action>, resources: Vec<Text>) -> Self {
        Self {
            sid,
            effect: Effect::Allow,
            principal: None,
            actions,
            resources,
            condition: None,
        }
    }

    /// Denies actions on resources to everyone.
    pub fn deny_anyone(sid: &'static str, actions: Vec<Action>, resources: Vec<Text>) -> Self {
        let principal = Some(Principal::Anyone);
        Self {
            sid,
            effect: Effect::Deny,
            principal,
            actions,
            resources,
            condition: None,
        }
    }

    /// Lets a principal assume the role.
    pub fn trust(sid: &'static str, principal: Principal) -> Self {
        let actions = actions("sts", &["AssumeRole"]);
        Self {
            principal: Some(principal),
            ..Self::allow(sid, actions, vec![])
        }
    }

    /// The statement with a condition. An empty one changes nothing.
    #[must_use]
    pub fn when(mut self, condition: Condition) -> Self {
        self.condition = (!condition.tests.is_empty()).then_some(condition);
        self
    }
}

/// A policy document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct PolicyDocument {
    version: &'static str,
    /// The statements.
    #[serde(rename = "Statement")]
    pub statements: Vec<Statement>,
}

impl PolicyDocument {
    /// A policy document of these statements.
    pub fn new(statements: Vec<Statement>) -> Self {
        Self {
            version: "2012-10-17",
            statements,
        }
    }

    /// Its length as IAM counts it.
    pub fn characters(&self) -> usize {
        serde_json::json!(self).to_string().chars().count()
    }

    /// The actions that it allows, sorted and without duplicates.
    pub fn allowed_actions(&self) -> Vec<Action> {
        let allowed = self
            .statements
            .iter()
            .filter(|statement| statement.effect == Effect::Allow);
        let mut actions: Vec<_> = allowed
            .flat_map(|statement| statement.actions.iter().cloned())
            .collect();
        actions.sort();
        actions.dedup();
        actions
    }
}

/// A managed policy.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct ManagedPolicy {
    /// Its name, unique in the account.
    pub managed_policy_name: Text,
    /// Its path; `/` if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<Text>,
    /// What it is for.
    pub description: &'static str,
    /// Its document.
    pub policy_document: PolicyDocument,
}

impl Construct for ManagedPolicy {
    const TYPE: &'static str = "AWS::IAM::ManagedPolicy";
}

impl Handle<ManagedPolicy> {
    /// The policy's ARN.
    pub fn arn(&self) -> Text {
        self.reference()
    }
}

/// A role.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Role {
    /// Its name, unique in the account.
    pub role_name: Text,
    /// Its path; `/` if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<Text>,
    /// What it is for.
    pub description: &'static str,
    /// Who may assume it.
    pub assume_role_policy_document: PolicyDocument,
    /// Its permissions boundary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permissions_boundary: Option<Text>,
    /// Inline policies.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub policies: Vec<InlinePolicy>,
    /// ARNs of managed policies.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub managed_policy_arns: Vec<Text>,
}

impl Construct for Role {
    const TYPE: &'static str = "AWS::IAM::Role";
}

impl Handle<Role> {
    /// The role's name.
    pub fn name(&self) -> Text {
        self.reference()
    }

    /// The role's ARN.
    pub fn arn(&self) -> Text {
        self.attribute("Arn")
    }
}

/// An inline policy of a role.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct InlinePolicy {
    /// Its name inside the role.
    pub policy_name: &'static str,
    /// Its document.
    pub policy_document: PolicyDocument,
}

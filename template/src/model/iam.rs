//! Policies and roles.

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use super::{Construct, Handle, Text};

/// One permission, such as `dynamodb:GetItem`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Action(String);

impl Action {
    /// The permission of a service.
    pub fn new(service: &str, operation: &str) -> Self {
        Self(format!("{service}:{operation}"))
    }

    /// The permission as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Several permissions of one service, in the order given.
pub fn actions(service: &str, operations: &[&str]) -> Vec<Action> {
    operations
        .iter()
        .map(|operation| Action::new(service, operation))
        .collect()
}

/// Allow or deny.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Effect {
    /// Permit.
    Allow,
    /// Forbid, whatever else permits.
    Deny,
}

/// Whom a statement of a resource's policy or of a role's trust is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Principal {
    /// Everybody.
    Anyone,
    /// An AWS service, such as `lambda.amazonaws.com`.
    Service(&'static str),
    /// Everybody in the stack's account whom the account's own policies permit it.
    Account,
}

impl Serialize for Principal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        match self {
            Self::Anyone => map.serialize_entry("AWS", "*")?,
            Self::Service(name) => map.serialize_entry("Service", name)?,
            Self::Account => map.serialize_entry("AWS", &super::arn::of_account("iam", "root"))?,
        }
        map.end()
    }
}

/// When a statement counts. All of it must hold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Condition {
    tests: Vec<Test>,
}

/// An operator, the key it looks at, and the values it compares with.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Test {
    operator: &'static str,
    key: &'static str,
    values: Vec<Text>,
}

impl Condition {
    /// Every value of the request's key is like one of the patterns; also where the request has no such key.
    #[must_use]
    pub fn all_like(self, key: &'static str, patterns: &[&str]) -> Self {
        self.and(
            "ForAllValues:StringLike",
            key,
            patterns.iter().copied().map(Text::from).collect(),
        )
    }

    /// The request's key has exactly this value.
    #[must_use]
    pub fn equals(self, key: &'static str, value: impl Into<Text>) -> Self {
        self.and("StringEquals", key, vec![value.into()])
    }

    /// The request's key is an ARN like this one.
    #[must_use]
    pub fn arn_like(self, key: &'static str, pattern: impl Into<Text>) -> Self {
        self.and("ArnLike", key, vec![pattern.into()])
    }

    /// The request's key is true or false.
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

/// Who may, or may not, do what with what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Statement {
    /// What the statement is for, in one word.
    pub sid: &'static str,
    /// Allow or deny.
    pub effect: Effect,
    /// Whom it is about, in policies that are not attached to somebody.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub principal: Option<Principal>,
    /// The permissions.
    #[serde(rename = "Action")]
    pub actions: Vec<Action>,
    /// What they are for; empty in the trust of a role.
    #[serde(rename = "Resource", skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<Text>,
    /// When.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition: Option<Condition>,
}

impl Statement {
    /// Permits actions on resources.
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

    /// Forbids actions on resources to everybody.
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

    /// Lets somebody take on the role.
    pub fn trust(sid: &'static str, principal: Principal) -> Self {
        let actions = actions("sts", &["AssumeRole"]);
        Self {
            principal: Some(principal),
            ..Self::allow(sid, actions, vec![])
        }
    }

    /// The statement with a condition.
    #[must_use]
    pub fn when(mut self, condition: Condition) -> Self {
        self.condition = Some(condition);
        self
    }
}

/// A policy's statements.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct PolicyDocument {
    version: &'static str,
    /// The statements; a denial wins.
    #[serde(rename = "Statement")]
    pub statements: Vec<Statement>,
}

impl PolicyDocument {
    /// A policy of these statements.
    pub fn new(statements: Vec<Statement>) -> Self {
        Self {
            version: "2012-10-17",
            statements,
        }
    }

    /// The permissions it gives, sorted, each once.
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

/// A policy that roles and users can be given by ARN.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct ManagedPolicy {
    /// Its name, unique in the account.
    pub managed_policy_name: Text,
    /// What it is for.
    pub description: &'static str,
    /// What it permits.
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
    /// What it is for.
    pub description: &'static str,
    /// Who may take it on.
    pub assume_role_policy_document: PolicyDocument,
    /// What it may do at most, whatever its policies say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permissions_boundary: Option<Text>,
    /// Policies of its own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub policies: Vec<InlinePolicy>,
    /// ARNs of policies it has.
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

/// A policy inside a role.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct InlinePolicy {
    /// Its name inside the role.
    pub policy_name: &'static str,
    /// What it permits.
    pub policy_document: PolicyDocument,
}

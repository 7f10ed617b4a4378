//! Parameters and outputs.

use serde::Serialize;

use super::Text;

/// A value that is given when the template is deployed.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Parameter {
    /// The CloudFormation type.
    pub r#type: &'static str,
    /// What it is for.
    pub description: String,
    /// The value of a stack that gives none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<&'static str>,
    /// The only values that are accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_values: Option<&'static [&'static str]>,
    /// A regular expression that values must match.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_pattern: Option<&'static str>,
    /// The error if the pattern does not match.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub constraint_description: Option<&'static str>,
}

/// A value that the deployed stack publishes.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Output {
    /// What it is.
    pub description: String,
    /// The value.
    pub value: Text,
    /// The export, for other stacks to import.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub export: Option<Export>,
}

/// The name of an export.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Export {
    /// The name, unique in the account and region.
    pub name: Text,
}

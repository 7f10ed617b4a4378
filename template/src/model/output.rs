//! Parameters and outputs.

use serde::Serialize;

use super::Text;

/// A value that whoever deploys the template gives.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Parameter {
    /// CloudFormation's type of the value.
    pub r#type: &'static str,
    /// What it is for.
    pub description: String,
    /// A regular expression that values must match.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_pattern: Option<&'static str>,
    /// What is said when the pattern does not match.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub constraint_description: Option<&'static str>,
}

/// A value that the deployed stack tells.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Output {
    /// What it is.
    pub description: String,
    /// The value.
    pub value: Text,
    /// The name by which other stacks import it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub export: Option<Export>,
}

/// An output's name in the region.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Export {
    /// Unique in account and region.
    pub name: Text,
}

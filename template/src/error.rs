//! Errors between options and a template.

use crate::check::Finding;
use crate::model::LogicalId;
use crate::options::InvalidOptions;
use crate::resources::LambdaFunction;

/// Why no template could be rendered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Some options are invalid; all of them are listed.
    #[error(transparent)]
    Options(#[from] InvalidOptions),

    /// The options file is neither YAML nor JSON of the known fields.
    #[error("the options file is invalid: {source}; StackOptions documents its fields")]
    OptionsFile {
        /// Where and why.
        source: serde_yaml::Error,
    },

    /// Option values have unknown names or wrong types.
    #[error("the options cannot be read: {source}; see the documentation of StackOptions for its fields")]
    OptionsValue {
        /// Which field, and why.
        source: serde_json::Error,
    },

    /// A function is enabled and has no code.
    #[error(
        "the {function} is enabled but has no code; give the location of its archive or set {} to false",
        function.switch()
    )]
    CodeMissing {
        /// Which one.
        function: LambdaFunction,
    },

    /// An invalid logical id.
    #[error("logical id {id:?} must have 1 to 255 letters and digits, and nothing else")]
    LogicalId {
        /// What was given.
        id: String,
    },

    /// A second resource, parameter or output with the same id.
    #[error("{id} is already in the model; choose another logical id, or patch the existing resource")]
    Taken {
        /// The id.
        id: LogicalId,
    },

    /// A patch for a resource that does not exist.
    #[error("the model has no resource {id}; the options may have disabled it")]
    NoSuchResource {
        /// The id.
        id: LogicalId,
    },

    /// A patch that cannot be applied.
    #[error("{id}: {pointer:?} cannot be changed: {problem}")]
    Patch {
        /// The resource.
        id: LogicalId,
        /// The property.
        pointer: String,
        /// Why.
        problem: String,
    },

    /// A construct that cannot be serialized.
    #[error("{id} cannot be rendered: {source}")]
    Construct {
        /// The resource.
        id: LogicalId,
        /// Why.
        source: serde_json::Error,
    },

    /// A statement that no managed policy has room for.
    #[error(
        "the statement {statement} has {characters} characters, and a managed policy at most 6144; shorten the stack's name, \
         role_name_format or policy_name_format"
    )]
    PolicyTooLong {
        /// The statement.
        statement: &'static str,
        /// Its length.
        characters: usize,
    },

    /// The template breaks rules; every finding is listed.
    #[error("the template has {} findings: {}", findings.len(), list(findings))]
    Rules {
        /// What and where.
        findings: Vec<Finding>,
    },
}

fn list(findings: &[Finding]) -> String {
    findings
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("; ")
}

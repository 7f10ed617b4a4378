//! What can go wrong between options and a template.

use crate::check::Finding;
use crate::model::LogicalId;
use crate::options::InvalidOptions;
use crate::resources::LambdaFunction;

/// Why there is no template.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Some options are not what they must be; all of them are listed.
    #[error(transparent)]
    Options(#[from] InvalidOptions),

    /// The options file is neither YAML nor JSON of the known fields.
    #[error(
        "the options file cannot be read: {source}; see the documentation of StackOptions for its fields"
    )]
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

    /// A function is switched on and nobody said where its code is.
    #[error(
        "the {function} is part of the stack but its code is not given; give the location of its archive or set {} to false",
        function.switch()
    )]
    CodeMissing {
        /// Which one.
        function: LambdaFunction,
    },

    /// Not a logical id.
    #[error("logical id {id:?}: 1 to 255 letters and digits, nothing else")]
    LogicalId {
        /// What was given.
        id: String,
    },

    /// A second resource, parameter or output with one id.
    #[error("{id} is in the model already; choose another logical id, or patch the one that is there")]
    Taken {
        /// The id.
        id: LogicalId,
    },

    /// A patch for nothing.
    #[error("the model has no resource {id}; it may be switched off by the options")]
    NoSuchResource {
        /// The id.
        id: LogicalId,
    },

    /// A patch that does not fit.
    #[error("{id}: {pointer:?} cannot be changed: {problem}")]
    Patch {
        /// The resource.
        id: LogicalId,
        /// The property.
        pointer: String,
        /// Why.
        problem: String,
    },

    /// A construct that is no JSON.
    #[error("{id} cannot be rendered: {source}")]
    Construct {
        /// The resource.
        id: LogicalId,
        /// Why.
        source: serde_json::Error,
    },

    /// The template breaks rules; all of them are listed.
    #[error("the template breaks {} of the rules: {}", findings.len(), list(findings))]
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

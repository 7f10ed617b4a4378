//! The zae-limiter stack: options, a typed model of its resources, and the template that they become.
//!
//! This crate makes no AWS calls. `zae-limiter-stack` deploys what it renders.
//!
//! ```
//! use zae_limiter_template::{CodeBucket, CodeLocation, FunctionCode, LambdaFunction, StackName, StackOptions, render};
//!
//! let object = |key: &str| CodeLocation::Object { bucket: CodeBucket::Artifacts, key: key.to_owned() };
//! let code = FunctionCode::none()
//!     .with(LambdaFunction::Aggregator, object("aggregator.zip"))
//!     .with(LambdaFunction::Archiver, object("archiver.zip"));
//! let template = render(&StackName::parse("limiter")?, &StackOptions::default(), &code)?;
//! assert!(template.to_yaml().starts_with("AWSTemplateFormatVersion: '2010-09-09'"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | To find | Look in |
//! |---|---|
//! | the options of a stack | [`StackOptions`] |
//! | resources, references, and how to add your own | [`model`] |
//! | the resources of a stack | [`Model::of_stack`](model::Model::of_stack) |
//! | the rules that every template must keep | [`check`] |
//! | CloudFormation and Terraform files | [`Template`], [`export`] |
//! | IAM policies for deployers and applications | [`deployer`] |

pub mod check;
pub mod deployer;
mod error;
pub mod export;
pub mod filters;
pub mod model;
mod options;
mod render;
mod resources;

pub use error::Error;
pub use options::{
    Accepts, AccountId, AcquirePolicy, Architecture, BucketName, EventBusName, Field, FieldKind, IamPath,
    IndexProjection, InvalidOptions, KeyArn, Mistake, NameFormat, ObjectKey, ObjectLockMode,
    PermissionBoundary, RoleArn, SecurityGroupId, StackOptions, StackOptionsBuilder, StreamStart, SubnetId,
    TableClass, TopicArn, Words,
};
pub use render::Template;
pub use resources::ids::{PolicyKind, RoleKind};
pub use resources::{
    AUDIT_RETENTION_DAYS, CodeBucket, CodeLocation, FunctionCode, LambdaFunction, METADATA,
    function_policy_document, policy_document, stack_tags, tags_of_user,
};
pub use zae_limiter_schema::{StackName, WindowKind};

/// The release of this crate, which templates and tags carry.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The value of the tag `ManagedBy` on resources of the Terraform module. A stack does not change such a table.
pub const MANAGED_BY_TERRAFORM: &str = "terraform";

/// The tag of a table whose deletion protection is on for an import only. It stays if the import fails, so that the next one
/// removes both.
pub const IMPORT_PROTECTION_TAG: &str = "zae-limiter:import-protection";

/// Renders the template of a stack.
pub fn render(name: &StackName, options: &StackOptions, code: &FunctionCode) -> Result<Template, Error> {
    model::Model::of_stack(name, options, code)?.render()
}

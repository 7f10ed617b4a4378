//! Files for people who deploy with other tools.
//!
//! `rendered/` of this crate has the templates for the default options; a test compares them with the code. The Terraform
//! modules are written by hand in the folder `terraform`.

mod policy;
mod terraform;

pub use policy::policy_data_source;

use crate::model::Model;
use crate::options::StackOptions;
use crate::{Error, Template};

/// An exported file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// The path, relative to the export, with `/` between names.
    pub path: String,
    /// The contents.
    pub contents: String,
}

impl File {
    fn new(path: &str, contents: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            contents: contents.into(),
        }
    }
}

/// The template for any stack name, with the functions' code as parameters.
///
/// ```
/// use zae_limiter_template::{StackOptions, export};
///
/// let template = export::cloudformation(&StackOptions::default())?;
/// assert!(template.to_value()["Parameters"].get("CodeBucket").is_some());
/// # Ok::<(), zae_limiter_template::Error>(())
/// ```
pub fn cloudformation(options: &StackOptions) -> Result<Template, Error> {
    Model::for_export(options)?.render()
}

/// The Terraform modules of the folder `terraform`: native resources with a variable for each option, and the modules for
/// limits and around the template. Options that are not the default are in `zae-limiter.auto.tfvars.json`.
pub fn terraform(options: &StackOptions) -> Result<Vec<File>, Error> {
    terraform::module(options, &cloudformation(options)?)
}

/// A Terraform module around the template: the archives as objects, the stack, its outputs, and the record of the
/// table's version.
pub fn terraform_wrapper(options: &StackOptions) -> Result<Vec<File>, Error> {
    Ok(terraform::wrapper(&cloudformation(options)?))
}

/// The dashboard for Grafana, as JSON.
pub fn grafana() -> String {
    format!("{:#}\n", crate::resources::dashboard::grafana())
}

/// The template of the provisioner, which serves limits files as resources: `Custom::ZaeLimiterLimits`. It follows the options
/// that the limiter's stack has for its own functions: the KMS key, the boundary and names of roles, logs, tracing and alarms.
///
/// ```
/// use zae_limiter_template::{StackOptions, export};
///
/// let template = export::limits_provisioner(&StackOptions::default())?;
/// assert!(template.to_value()["Parameters"].get("TableName").is_some());
/// # Ok::<(), zae_limiter_template::Error>(())
/// ```
pub fn limits_provisioner(options: &StackOptions) -> Result<Template, Error> {
    crate::resources::provisioner::model(options)?.render()
}

/// The CloudFormation templates as files: of the stack as YAML and JSON, and of the provisioner.
pub fn files(options: &StackOptions) -> Result<Vec<File>, Error> {
    let template = cloudformation(options)?;
    Ok(vec![
        File::new("cloudformation/zae-limiter.yaml", template.to_yaml()),
        File::new("cloudformation/zae-limiter.json", template.to_json() + "\n"),
        File::new(
            "cloudformation/limits-provisioner.yaml",
            limits_provisioner(options)?.to_yaml(),
        ),
    ])
}

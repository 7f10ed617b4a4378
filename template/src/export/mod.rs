//! Files for people who deploy with other tools.
//!
//! `rendered/` of this crate has these files for the default options; a test compares them with the code.

mod terraform;

pub use terraform::policy_data_source;

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

/// A Terraform module of native resources: a variable for each option, with these options as defaults.
pub fn terraform(options: &StackOptions) -> Result<Vec<File>, Error> {
    terraform::module(options)
}

/// A Terraform module around the template: the archives as objects, the stack, its outputs, and the record of the
/// table's version.
pub fn terraform_wrapper(options: &StackOptions) -> Result<Vec<File>, Error> {
    Ok(terraform::wrapper(&cloudformation(options)?, options))
}

/// The template of the provisioner, which serves limits files as resources: `Custom::ZaeLimiterLimits`.
///
/// ```
/// use zae_limiter_template::export;
///
/// let template = export::limits_provisioner()?;
/// assert!(template.to_value()["Parameters"].get("TableName").is_some());
/// # Ok::<(), zae_limiter_template::Error>(())
/// ```
pub fn limits_provisioner() -> Result<Template, Error> {
    crate::resources::provisioner::model()?.render()
}

/// The Terraform module of the provisioner: its resources, and the limits file as an invocation of it.
pub fn terraform_limits() -> Result<Vec<File>, Error> {
    terraform::limits_provisioner(&limits_provisioner()?)
}

/// Every file: the templates as YAML and JSON, a Grafana dashboard, and the Terraform modules.
pub fn files(options: &StackOptions) -> Result<Vec<File>, Error> {
    let template = cloudformation(options)?;
    let mut files = vec![
        File::new("cloudformation/zae-limiter.yaml", template.to_yaml()),
        File::new("cloudformation/zae-limiter.json", template.to_json() + "\n"),
    ];
    let provisioner = limits_provisioner()?;
    files.push(File::new(
        "cloudformation/limits-provisioner.yaml",
        provisioner.to_yaml(),
    ));
    files.push(File::new(
        "grafana/zae-limiter.json",
        format!("{:#}\n", crate::resources::dashboard::grafana()),
    ));
    let within = |folder: &'static str| {
        move |file: File| File {
            path: format!("{folder}/{}", file.path),
            ..file
        }
    };
    files.extend(terraform(options)?.into_iter().map(within("terraform")));
    let wrapper = terraform_wrapper(options)?;
    files.extend(
        wrapper
            .into_iter()
            .map(within("terraform/modules/cloudformation")),
    );
    let limits = terraform::limits_provisioner(&provisioner)?;
    files.extend(limits.into_iter().map(within("terraform/modules/limits")));
    Ok(files)
}

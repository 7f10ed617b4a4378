//! Files for people who deploy with other tools.
//!
//! The folder `rendered` of this crate holds these files for the default options; a test keeps them equal to what the code
//! renders.

mod terraform;

use crate::model::Model;
use crate::options::StackOptions;
use crate::{Error, Template};

/// A file to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Where, relative to the folder of the export, with `/` between names.
    pub path: String,
    /// What.
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

/// The template for whatever stack name it is deployed under, with the functions' code as parameters.
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

/// A Terraform module around the template: the archives as objects, the stack, its outputs, and the record of the
/// table's version.
pub fn terraform(options: &StackOptions) -> Result<Vec<File>, Error> {
    Ok(terraform::module(&cloudformation(options)?, options))
}

/// Every file: the template as YAML and JSON, and the Terraform module.
pub fn files(options: &StackOptions) -> Result<Vec<File>, Error> {
    let template = cloudformation(options)?;
    let mut files = vec![
        File::new("cloudformation/zae-limiter.yaml", template.to_yaml()),
        File::new("cloudformation/zae-limiter.json", template.to_json() + "\n"),
    ];
    let module = terraform(options)?;
    files.extend(module.into_iter().map(|file| File {
        path: format!("terraform/{}", file.path),
        ..file
    }));
    Ok(files)
}

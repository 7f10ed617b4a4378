//! The Terraform module of native resources.
//!
//! It is made from the CloudFormation template with everything on: names, descriptions, metrics and permissions come from there. Where
//! a value depends on an option, the module has an expression of its variables. `tests/terraform.rs` evaluates the module and compares
//! it with the template.

mod archive;
mod examples;
mod function;
mod iam;
mod limits;
mod locals;
mod monitoring;
mod outputs;
mod print;
mod readme;
mod source;
mod table;
mod tests;
mod variables;

use crate::Error;
use crate::export::File;
use crate::options::StackOptions;
use crate::resources::LambdaFunction;
pub(in crate::export) use limits::files as limits_provisioner;
use print::Part;
use source::Source;

/// The files of the module, with the options as defaults of its variables.
pub(in crate::export) fn files(options: &StackOptions) -> Result<Vec<File>, Error> {
    let source = Source::new()?;
    let variables = variables::all(options)?;
    let outputs = outputs::all(&source);
    let mut main = locals::parts();
    main.extend(table::parts(&source));
    let mut monitoring = monitoring::alarms(&source);
    monitoring.push(monitoring::dashboard(&source));
    let mut parts = vec![
        ("versions.tf", vec![Part::new(VERSIONS)]),
        ("variables.tf", variables::parts(&variables)),
        ("outputs.tf", outputs::parts(&outputs)),
        ("main.tf", main),
        ("iam.tf", iam::parts(&source)),
        ("archive.tf", archive::parts(&source)),
        ("monitoring.tf", monitoring),
    ];
    let [aggregator, archiver] = LambdaFunction::ALL.map(|function| function::parts(&source, function));
    parts.push(("aggregator.tf", aggregator));
    parts.push(("archiver.tf", archiver));
    let mut files = Vec::new();
    for (path, parts) in parts {
        files.push(File::new(path, print::file(&parts)?));
    }
    files.extend(monitoring::dashboards()?);
    files.extend(examples::files(&variables)?);
    files.extend(tests::files()?);
    files.push(File::new("README.md", readme::render(&variables, &outputs)));
    Ok(files)
}

const VERSIONS: &str = r#"terraform {
  required_version = ">= 1.5"
  required_providers {
    aws = {
      source = "hashicorp/aws"
      version = ">= 6.0, < 7"
    }
  }
}"#;

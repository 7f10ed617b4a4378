//! `cfn-template`: the template, for other deployment tools.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde::Serialize;
use zae_limiter_template::export;

use super::options::Wanted;
use crate::args::Output;
use crate::command_output::{CommandOutput, Text};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::output::{Format, View};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  zae-limiter cfn-template > template.yaml
  zae-limiter cfn-template options.yaml --format json --output template.json
  zae-limiter cfn-template --format terraform --output modules/zae-limiter")]
pub(crate) struct Arguments {
    #[command(flatten)]
    wanted: Wanted,
    /// The form: a template, or a Terraform module [default: yaml, or json with --output json]
    #[arg(long, help_heading = "Options")]
    format: Option<Form>,
    /// The file to write, or the directory of a Terraform module [default: standard output]
    #[arg(
        short,
        long,
        value_name = "FILE",
        default_value = "table",
        hide_default_value = true,
        help_heading = "Options"
    )]
    output: Output,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    /// CloudFormation, for people
    Yaml,
    /// CloudFormation, for programs
    Json,
    /// The Terraform modules, with a variable for each option
    Terraform,
    /// A Terraform module around the CloudFormation template
    TerraformCloudformation,
    /// CloudFormation of the function that applies limits files
    LimitsProvisioner,
}

#[derive(Debug, Serialize)]
struct Written {
    files: Vec<PathBuf>,
}

impl Text for Written {
    fn text(&self, _: &View) -> String {
        let lines = self.files.iter().map(|file| format!("wrote {}", file.display()));
        lines.collect::<Vec<_>>().join("\n")
    }
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<CommandOutput> {
    let options = arguments.wanted.options()?;
    let json = context.terminal.format == Format::Json;
    let format = match arguments.format {
        Some(format) => format,
        // As for every other command.
        None if json => Form::Json,
        None => Form::Yaml,
    };
    let text = match format {
        Form::Yaml => export::cloudformation(&options)?.to_yaml(),
        Form::Json => pretty(export::cloudformation(&options)?.to_value()),
        Form::Terraform => return module(&export::terraform(&options)?, context),
        Form::LimitsProvisioner => export::limits_provisioner(&options)?.to_yaml(),
        Form::TerraformCloudformation => return module(&export::terraform_wrapper(&options)?, context),
    };
    let Some(file) = &context.file else {
        return Ok(CommandOutput::document(text));
    };
    write(file, text.as_bytes())?;
    Ok(CommandOutput::new(Written {
        files: vec![file.clone()],
    }))
}

fn pretty(value: &serde_json::Value) -> String {
    format!("{value:#}\n")
}

fn module(files: &[export::File], context: &Context) -> Result<CommandOutput> {
    let directory = context
        .file
        .as_deref()
        .ok_or_else(|| Error::usage("a Terraform module is several files; name a directory with --output"))?;
    let mut written = vec![];
    for file in files {
        let path = directory.join(&file.path);
        write(&path, file.contents.as_bytes())?;
        written.push(path);
    }
    Ok(CommandOutput::new(Written { files: written }))
}

/// Writes a file, and the directories above it.
pub(super) fn write(path: &Path, contents: &[u8]) -> Result<()> {
    let name = path.display().to_string();
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(Error::writing(name.clone()))?;
    }
    std::fs::write(path, contents).map_err(Error::writing(name))
}

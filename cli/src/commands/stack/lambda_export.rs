//! `lambda-export`: the functions' archives for those who deploy with other tools.

use std::borrow::Cow;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde::Serialize;
use sha2::{Digest, Sha256};
use zae_limiter::stack::Code;

use super::template::write;
use crate::args::Output;
use crate::command_output::{CommandOutput, Text};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::output::{View, grouped};

/// Where a build leaves the archives.
const BUILT: &str = "target/functions";

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  zae-limiter lambda-export --output lambda.zip
  zae-limiter lambda-export --function archiver --architecture arm64
  zae-limiter lambda-export --all --output archives
  zae-limiter lambda-export --info")]
pub(crate) struct Arguments {
    /// Which function
    #[arg(long, default_value = "aggregator")]
    function: Function,
    /// Every function, into the directory of --output
    #[arg(long, conflicts_with = "function")]
    all: bool,
    /// For which processor
    #[arg(long, value_name = "x86_64|arm64", default_value = "x86_64")]
    architecture: String,
    /// Where the archives are [default: in this command if it was built with them, or target/functions]
    #[arg(long, value_name = "DIRECTORY")]
    code_directory: Option<PathBuf>,
    /// The file to write, or the directory with --all [default: the function's name and .zip]
    #[arg(
        short,
        long,
        value_name = "FILE",
        default_value = "table",
        hide_default_value = true
    )]
    output: Output,
    /// Only tell about it
    #[arg(long)]
    info: bool,
    /// Write over a file that exists
    #[arg(short, long)]
    force: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
enum Function {
    /// Counts usage
    Aggregator,
    /// Archives audit events
    Archiver,
    /// Applies limits files, for CloudFormation and Terraform
    Provisioner,
}

impl Function {
    const fn name(self) -> &'static str {
        match self {
            Self::Aggregator => "aggregator",
            Self::Archiver => "archiver",
            Self::Provisioner => "provisioner",
        }
    }
}

#[derive(Debug, Serialize)]
struct Exported {
    function: Function,
    architecture: String,
    /// The file, or `bundled` for an archive that is part of this command.
    source: String,
    bytes: usize,
    sha256: String,
    /// Where it was written; nothing with --info.
    written: Option<PathBuf>,
}

impl Text for Exported {
    fn text(&self, _: &View) -> String {
        let size = grouped(i128::try_from(self.bytes).unwrap_or(i128::MAX));
        let what = format!(
            "{} for {}: {size} bytes, sha256 {}",
            self.function.name(),
            self.architecture,
            self.sha256
        );
        match &self.written {
            Some(file) => format!("{what}\nwrote {}", file.display()),
            None => what,
        }
    }
}

/// The archives of every function.
#[derive(Debug, Serialize)]
struct AllExported {
    functions: Vec<Exported>,
}

impl Text for AllExported {
    fn text(&self, view: &View) -> String {
        let each: Vec<_> = self
            .functions
            .iter()
            .map(|exported| exported.text(view))
            .collect();
        each.join("\n")
    }
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<CommandOutput> {
    let file_name = |function: Function| format!("{}.zip", function.name());
    if arguments.all {
        let directory = context.file.clone().unwrap_or_default();
        let functions = Function::value_variants().iter().copied();
        let functions = functions
            .map(|function| export(arguments, function, directory.join(file_name(function))))
            .collect::<Result<_>>()?;
        return Ok(CommandOutput::new(AllExported { functions }));
    }
    let default = || PathBuf::from(file_name(arguments.function));
    let file = context.file.clone().unwrap_or_else(default);
    Ok(CommandOutput::new(export(arguments, arguments.function, file)?))
}

/// Writes a function's archive, unless only information was asked for.
fn export(arguments: &Arguments, function: Function, file: PathBuf) -> Result<Exported> {
    let (source, archive) = find(arguments, function)?;
    if !arguments.info {
        if file.exists() && !arguments.force {
            return Err(Error::usage(format!(
                "{} exists; pass --force to overwrite it",
                file.display()
            )));
        }
        write(&file, &archive)?;
    }
    Ok(Exported {
        function,
        architecture: arguments.architecture.clone(),
        bytes: archive.len(),
        sha256: hexadecimal(&Sha256::digest(&archive)),
        source,
        written: (!arguments.info).then_some(file),
    })
}

/// The source of the archive, and the archive.
fn find(arguments: &Arguments, function: Function) -> Result<(String, Cow<'static, [u8]>)> {
    let architecture = arguments.architecture.as_str();
    let named = arguments.code_directory.as_ref();
    if let Some(archive) = Code::compiled_in(architecture, function.name()).filter(|_| named.is_none()) {
        return Ok(("bundled".to_owned(), archive.into()));
    }
    let function = function.name();
    let directory = named.cloned().unwrap_or_else(|| PathBuf::from(BUILT));
    let file = format!("{function}.zip");
    let places = [directory.join(architecture).join(&file), directory.join(&file)];
    let Some(found) = places.iter().find(|path| path.is_file()) else {
        return Err(Error::usage(format!(
            "there is no archive of the {function} for {architecture} in {}; build it with `make functions ARCH={architecture}`, or \
             name its directory with --code-directory",
            directory.display()
        )));
    };
    let source = found.display().to_string();
    let archive = std::fs::read(found).map_err(Error::reading(source.clone()))?;
    Ok((source, archive.into()))
}

fn hexadecimal(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

//! The command line as a whole: global options and the list of commands.

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use zae_limiter::StackName;

use crate::commands::{
    acquire, audit, available, check, completions, config, entity, limits, local, man, migrate, resource,
    stack, system, usage, version,
};
use crate::output::{Color, Format};
use crate::parse;

const GLOBAL: &str = "Global options";

/// A distributed rate limiter on DynamoDB, for calls whose cost is known only afterwards
#[derive(Debug, Parser)]
#[command(
    name = "zae-limiter",
    version,
    after_help = "Examples:
  zae-limiter --embedded f.db system set-defaults -l rpm:100
  zae-limiter --embedded f.db acquire user-1 gpt-4 -c rpm:1 --output json
  zae-limiter -n my-app --region eu-west-1 available user-1 gpt-4

Exit codes: 0 done or admitted, 1 error, 2 wrong usage, 69 unavailable, 75 rate limit exceeded."
)]
struct Cli {
    #[command(flatten)]
    globals: Globals,
    #[command(subcommand)]
    command: Command,
}

/// What every command understands.
#[derive(Debug, Clone, Args)]
pub(crate) struct Globals {
    /// The stack, which is also the name of its table [default: limiter]
    #[arg(short, long, global = true, env = "ZAE_LIMITER_NAME", hide_env_values = true, help_heading = GLOBAL)]
    pub(crate) name: Option<StackName>,
    /// The AWS region [default: AWS_REGION, then the profile's]
    #[arg(long, global = true, help_heading = GLOBAL, conflicts_with = "embedded")]
    pub(crate) region: Option<String>,
    /// A profile of the AWS configuration files [default: AWS_PROFILE]
    #[arg(long, global = true, help_heading = GLOBAL, conflicts_with = "embedded")]
    pub(crate) profile: Option<String>,
    /// Another endpoint than AWS's, such as a local cloud [default: AWS_ENDPOINT_URL]
    #[arg(long, value_name = "URL", global = true, help_heading = GLOBAL, conflicts_with = "embedded",
          value_parser = parse::endpoint)]
    pub(crate) endpoint_url: Option<String>,
    /// Keep the table in a local file: no AWS, no server
    #[arg(long, value_name = "FILE", global = true, help_heading = GLOBAL)]
    pub(crate) embedded: Option<PathBuf>,
    /// Print tables for people or JSON for programs
    #[arg(long, global = true, value_name = "table|json", default_value = "table", help_heading = GLOBAL,
          value_parser = Output::format, hide_default_value = true)]
    pub(crate) output: Output,
    /// When to use colours
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", help_heading = GLOBAL, hide_default_value = true)]
    pub(crate) color: Color,
    /// Show times in this machine's zone instead of UTC
    #[arg(long, global = true, help_heading = GLOBAL)]
    pub(crate) local_time: bool,
    /// Tell what caused an error
    #[arg(short, long, global = true, action = clap::ArgAction::Count, help_heading = GLOBAL)]
    pub(crate) verbose: u8,
}

/// Where the answer goes. Commands that write documents take a file's name as well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Output {
    Format(Format),
    File(PathBuf),
}

impl Output {
    fn format(text: &str) -> Result<Self, String> {
        Format::from_str(text, false)
            .map(Self::Format)
            .map_err(|_| "it must be table or json".to_owned())
    }

    pub(crate) fn split(self) -> (Format, Option<PathBuf>) {
        match self {
            Self::Format(format) => (format, None),
            Self::File(path) => (Format::default(), Some(path)),
        }
    }
}

impl FromStr for Output {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self::format(text).unwrap_or_else(|_| Self::File(text.into())))
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Take tokens for a call, or many
    Acquire(acquire::Arguments),
    /// Show how much is left
    Available(available::Arguments),
    /// Create, show and change entities and their limits
    #[command(subcommand)]
    Entity(entity::Command),
    /// Limits for everybody on one resource
    #[command(subcommand)]
    Resource(resource::Command),
    /// Limits for everybody on everything
    #[command(subcommand)]
    System(system::Command),
    /// Read and write the configuration of any level
    #[command(subcommand)]
    Config(config::Command),
    /// Keep the limits of all levels in one file
    #[command(subcommand)]
    Limits(limits::Command),
    /// Who changed what
    #[command(subcommand)]
    Audit(audit::Command),
    /// What was used
    #[command(subcommand)]
    Usage(usage::Command),
    /// Show what deploy would do
    Plan(Box<stack::plan::Arguments>),
    /// Make the stack what it should be
    Deploy(Box<stack::deploy::Arguments>),
    /// Bring a stack of an earlier release to this one
    Upgrade(Box<stack::upgrade::Arguments>),
    /// Tell how a stack and its table are doing
    Status(stack::status::Arguments),
    /// List the stacks of the account and region
    List(stack::list::Arguments),
    /// Tell whether somebody has changed resources behind the stack's back
    Drift(stack::drift::Arguments),
    /// Delete a stack; its table and archive stay
    Delete(stack::delete::Arguments),
    /// Write the CloudFormation template, or a Terraform module
    CfnTemplate(Box<stack::template::Arguments>),
    /// Write the archive of a Lambda function
    LambdaExport(stack::lambda_export::Arguments),
    /// Show the versions of this command and of the table
    Version(version::Arguments),
    /// Tell whether this command and the table fit together
    Check(check::Arguments),
    /// Bring the table of an older version up to date
    Migrate(migrate::Arguments),
    /// AWS on this machine
    #[command(subcommand)]
    Local(local::Command),
    /// Write the completion script for a shell
    Completions(completions::Arguments),
    /// Write the manual page
    Man(man::Arguments),
}

/// What the process was asked to do.
#[derive(Debug)]
pub(crate) struct Invocation {
    pub(crate) globals: Globals,
    pub(crate) command: Command,
}

impl Invocation {
    pub(crate) fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let mut command = command();
        let matches = command.try_get_matches_from_mut(arguments)?;
        let cli = Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))?;
        Ok(Self {
            globals: cli.globals,
            command: cli.command,
        })
    }
}

pub(crate) fn command() -> clap::Command {
    Cli::command()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn global_options_may_stand_anywhere() {
        let parse = |text: &str| {
            Invocation::parse(text.split(' ').map(OsString::from)).map(|invocation| invocation.globals)
        };
        let before = parse("zae-limiter --embedded f.db --output json resource list").unwrap();
        let after = parse("zae-limiter resource list --embedded f.db --output json").unwrap();
        assert_eq!(before.embedded, after.embedded);
        assert_eq!(before.output, Output::Format(Format::Json));
        assert_eq!(after.output, Output::Format(Format::Json));
        assert!(parse("zae-limiter resource list --embedded f.db --region eu-west-1").is_err());
        assert!(parse("zae-limiter resource list --output yaml").is_err());
    }

    #[test]
    fn commands_that_errors_advise_are_commands() {
        use zae_limiter::stack::advised::{CONTINUE_ROLLBACK, RECREATE, RETAIN, RETRY, SKIP};
        let with_id = [SKIP, RETAIN].map(|command| format!("{command} AggregatorDLQ"));
        let whole = [CONTINUE_ROLLBACK, RECREATE, RETRY].map(str::to_owned);
        for advised in whole.into_iter().chain(with_id) {
            let parsed = Invocation::parse(advised.split(' ').map(OsString::from));
            assert!(parsed.is_ok(), "{advised}");
        }
    }

    /// Every command and what stands above it, in order.
    fn every_command() -> Vec<(String, clap::Command)> {
        fn below(name: &str, command: &clap::Command, found: &mut Vec<(String, clap::Command)>) {
            found.push((name.to_owned(), command.clone()));
            for child in command
                .get_subcommands()
                .filter(|child| child.get_name() != "help")
            {
                below(&format!("{name} {}", child.get_name()), child, found);
            }
        }
        let mut root = command().term_width(100);
        root.build();
        let mut found = vec![];
        below("zae-limiter", &root, &mut found);
        found
    }

    #[test]
    fn help_is_as_it_was_read_and_approved() {
        for (name, mut command) in every_command() {
            let help = command.render_long_help().to_string();
            insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
                insta::assert_snapshot!(format!("help {name}").replace(' ', "_"), help);
            });
        }
    }

    #[test]
    fn every_command_has_examples_or_children_or_nothing_to_choose() {
        for (name, command) in every_command() {
            let options = command
                .get_arguments()
                .filter(|argument| !argument.is_global_set() && !argument.is_hide_set());
            let own = options
                .filter(|argument| !["help", "version", "yes"].contains(&argument.get_id().as_str()))
                .count();
            let told = command.get_after_help().is_some() || command.has_subcommands() || own <= 2;
            assert!(told, "{name} needs an example");
        }
    }

    #[test]
    fn the_reference_has_every_command_and_every_option() {
        let reference = include_str!("../../docs/cli.md");
        for (name, command) in every_command()
            .into_iter()
            .filter(|(_, command)| !command.has_subcommands())
        {
            assert!(
                reference.contains(&format!("`{name}")),
                "docs/cli.md does not speak of `{name}`"
            );
            let options = command
                .get_arguments()
                .filter(|argument| !argument.is_global_set());
            for long in options
                .filter_map(clap::Arg::get_long)
                .filter(|long| !["help", "version"].contains(long))
            {
                assert!(
                    reference.contains(&format!("--{long}")),
                    "docs/cli.md does not speak of --{long} of {name}"
                );
            }
        }
    }
}

//! The command line: global options and the list of commands.

use std::ffi::OsString;
use std::mem::ManuallyDrop;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use zae_limiter::StackName;

use crate::commands::{
    acquire, audit, available, bucket, buckets, check, completions, config, entity, limits, local, man,
    migrate, mode, prices, resource, serve, stack, system, ui, usage, version,
};
use crate::deferred::Deferred;
use crate::output::{Color, Format};
use crate::parse;

const GLOBAL: &str = "Global options";

/// A distributed rate limiter on DynamoDB, for calls whose cost is known only after they finish
#[derive(Debug, Parser)]
#[command(
    name = "zae-limiter",
    version,
    after_help = "Examples:
  zae-limiter --embedded f.db system set-defaults -l rpm:100
  zae-limiter --embedded f.db acquire user-1 gpt-4 -c rpm:1 --output json
  zae-limiter -n my-app --region eu-west-1 available user-1 gpt-4

Exit codes: 0 success or admitted, 1 error, 2 invalid usage, 69 unavailable, 75 refused by a limit."
)]
struct Cli {
    #[command(flatten)]
    globals: Globals,
    #[command(subcommand)]
    command: Command,
}

/// Options that every command accepts.
#[derive(Debug, Clone, Args)]
pub(crate) struct Globals {
    /// Name of the stack and of its table [default: limiter]
    #[arg(short, long, global = true, env = "ZAE_LIMITER_NAME", hide_env_values = true, help_heading = GLOBAL)]
    pub(crate) name: Option<StackName>,
    /// AWS region [default: AWS_REGION, then the profile's region]
    #[arg(long, global = true, help_heading = GLOBAL, conflicts_with = "embedded")]
    pub(crate) region: Option<String>,
    /// AWS profile [default: AWS_PROFILE]
    #[arg(long, global = true, help_heading = GLOBAL, conflicts_with = "embedded")]
    pub(crate) profile: Option<String>,
    /// Send AWS calls to this endpoint, such as a local cloud [default: AWS_ENDPOINT_URL]
    #[arg(long, value_name = "URL", global = true, help_heading = GLOBAL, conflicts_with = "embedded",
          value_parser = parse::endpoint)]
    pub(crate) endpoint_url: Option<String>,
    /// Keep the table in a local file, without AWS or a server
    #[arg(long, value_name = "FILE", global = true, help_heading = GLOBAL)]
    pub(crate) embedded: Option<PathBuf>,
    /// Output format: tables for people or JSON for programs
    #[arg(long, global = true, value_name = "table|json", default_value = "table", help_heading = GLOBAL,
          value_parser = Output::format, hide_default_value = true)]
    pub(crate) output: Output,
    /// When to use colors
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", help_heading = GLOBAL, hide_default_value = true)]
    pub(crate) color: Color,
    /// Show times in the local time zone instead of UTC
    #[arg(long, global = true, help_heading = GLOBAL)]
    pub(crate) local_time: bool,
    /// Show the causes of an error
    #[arg(short, long, global = true, action = clap::ArgAction::Count, help_heading = GLOBAL)]
    pub(crate) verbose: u8,
}

/// The value of `--output`. Commands that write documents accept a file name as well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Output {
    Format(Format),
    File(PathBuf),
}

impl Output {
    fn format(text: &str) -> Result<Self, String> {
        Format::from_str(text, false)
            .map(Self::Format)
            .map_err(|_| "must be table or json".to_owned())
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
    /// Acquire tokens, once or many times
    Acquire(Deferred<acquire::Arguments>),
    /// Show how many tokens are available
    Available(Deferred<available::Arguments>),
    /// Show what an entity has used and holds now, on every resource
    Buckets(Deferred<buckets::Arguments>),
    /// Add to what is left of a limit now
    TopUp(Deferred<bucket::TopUp>),
    /// Make limits as if nothing were used
    Reset(Deferred<bucket::Reset>),
    /// Create, show, and change entities and their limits
    #[command(subcommand)]
    Entity(Deferred<entity::Command>),
    /// Manage the default limits of a resource
    #[command(subcommand)]
    Resource(Deferred<resource::Command>),
    /// Manage the system-wide default limits
    #[command(subcommand)]
    System(Deferred<system::Command>),
    /// Show and change the configuration of any level
    #[command(subcommand)]
    Config(Deferred<config::Command>),
    /// Manage the limits of all levels with one file
    #[command(subcommand)]
    Limits(Deferred<limits::Command>),
    /// Observe, bypass, disable, or enforce limits
    #[command(subcommand)]
    Mode(Deferred<mode::Command>),
    /// Manage what a resource costs
    #[command(subcommand)]
    Prices(Deferred<prices::Command>),
    /// Show and archive the audit trail
    #[command(subcommand)]
    Audit(Deferred<audit::Command>),
    /// Show usage by hour, day, or month
    #[command(subcommand)]
    Usage(Deferred<usage::Command>),
    /// Show what deploy would change
    Plan(Box<stack::plan::Arguments>),
    /// Create or update the stack
    Deploy(Box<stack::deploy::Arguments>),
    /// Upgrade a stack that an earlier release deployed
    Upgrade(Box<stack::upgrade::Arguments>),
    /// Show the status of the stack and its table
    Status(Deferred<stack::status::Arguments>),
    /// Show all outputs of the stack
    Outputs(Deferred<stack::outputs::Arguments>),
    /// List the stacks in the account and region
    List(Deferred<stack::list::Arguments>),
    /// Report drift: resources changed outside of CloudFormation
    Drift(Deferred<stack::drift::Arguments>),
    /// Delete the stack; keeps the table and the audit archive
    Delete(Deferred<stack::delete::Arguments>),
    /// Write the CloudFormation template or a Terraform module
    CfnTemplate(Box<stack::template::Arguments>),
    /// Print an IAM policy for people, pipelines or applications
    Policy(Box<stack::policy::Arguments>),
    /// Write the deployment package of a Lambda function
    LambdaExport(stack::lambda_export::Arguments),
    /// Show the versions of this command and the table
    Version(Deferred<version::Arguments>),
    /// Check that this command and the table are compatible
    Check(Deferred<check::Arguments>),
    /// Migrate the table to the current schema version
    Migrate(Deferred<migrate::Arguments>),
    /// Serve rate limiting over HTTP and JSON
    Serve(Deferred<serve::Arguments>),
    /// Show limits, levels, usage and the audit trail in the browser
    Ui(Deferred<ui::Arguments>),
    /// Run a local AWS cloud for development
    #[command(subcommand)]
    Local(Deferred<local::Command>),
    /// Print the completion script for a shell
    Completions(Deferred<completions::Arguments>),
    /// Print the manual page
    Man(Deferred<man::Arguments>),
}

/// The parsed command line.
#[derive(Debug)]
pub(crate) struct Invocation {
    pub(crate) globals: Globals,
    pub(crate) command: Command,
}

impl Invocation {
    pub(crate) fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        // Never freed: that would only take time, right before the process ends.
        let mut command = ManuallyDrop::new(command());
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

/// With the arguments of all commands, and without those commands that show help.
pub(crate) fn full_command() -> clap::Command {
    let mut command = command().disable_help_subcommand(true);
    command.build();
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn arguments_are_declared_when_their_command_runs() {
        let declared = |root: &clap::Command| {
            let entity = root.find_subcommand("entity").unwrap();
            let acquire = root.find_subcommand("acquire").unwrap();
            (
                entity.get_subcommands().count() > 0,
                acquire
                    .get_arguments()
                    .any(|argument| argument.get_id() == "entity"),
            )
        };
        let mut root = command();
        assert_eq!(declared(&root), (false, false));
        root.build();
        assert_eq!(declared(&root), (true, true));
    }

    #[test]
    fn global_options_are_accepted_before_and_after_the_command() {
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
    fn commands_suggested_by_errors_parse() {
        use zae_limiter::stack::advised::{
            CONTINUE_ROLLBACK, DELETE, RECREATE, RETAIN, RETRY, SKIP, UNPROTECT,
        };
        let with_id = [SKIP, RETAIN].map(|command| format!("{command} AggregatorDLQ"));
        let whole = [CONTINUE_ROLLBACK, DELETE, RECREATE, RETRY, UNPROTECT].map(str::to_owned);
        for advised in whole.into_iter().chain(with_id) {
            let parsed = Invocation::parse(advised.split(' ').map(OsString::from));
            assert!(parsed.is_ok(), "{advised}");
        }
    }

    /// Every command with its full name, in order.
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
    fn help_matches_the_snapshots() {
        for (name, mut command) in every_command() {
            let help = command.render_long_help().to_string();
            insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
                insta::assert_snapshot!(format!("help {name}").replace(' ', "_"), help);
            });
        }
    }

    #[test]
    fn every_command_shows_an_example_that_parses() {
        for (name, command) in every_command()
            .into_iter()
            .filter(|(_, command)| !command.has_subcommands())
        {
            let help = command
                .get_after_help()
                .map(ToString::to_string)
                .unwrap_or_default();
            let examples: Vec<&str> = help.lines().filter(|line| line.contains("zae-limiter")).collect();
            assert!(!examples.is_empty(), "{name} has no example");
            for example in examples {
                let parsed = Invocation::parse(example_arguments(example).into_iter().map(OsString::from));
                assert!(parsed.is_ok(), "{name}: {example}: {}", parsed.unwrap_err());
            }
        }
    }

    /// The arguments of an example line: from `zae-limiter` to the end of that command, without a trailing comment.
    fn example_arguments(line: &str) -> Vec<String> {
        let line = &line[line.find("zae-limiter").unwrap_or_default()..];
        let mut words = vec![String::new()];
        let mut quote = None;
        for c in line.chars() {
            match (quote, c) {
                (Some(open), _) if open == c => quote = None,
                (None, '\'' | '"') if words.last().is_some_and(String::is_empty) => quote = Some(c),
                (None, '>' | '|' | '&' | ')' | '#' | '"') => break,
                (None, ' ') if words.last().is_some_and(String::is_empty) => {}
                (None, ' ') => words.push(String::new()),
                _ => {
                    if let Some(word) = words.last_mut() {
                        word.push(c);
                    }
                }
            }
        }
        words.retain(|word| !word.is_empty());
        words
    }

    /// Lines of the book's shell blocks that run this command, with continued lines joined.
    fn lines_of_the_book() -> Vec<(String, String)> {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
        let mut folders = vec![PathBuf::from(root).join("docs")];
        let mut lines = vec![];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|extension| extension == "md") {
                    let page = std::fs::read_to_string(&path).unwrap().replace("\\\n", " ");
                    // Every other part between fences is a block.
                    let blocks = page.split("```").skip(1).step_by(2);
                    let commands = blocks
                        .filter(|block| block.starts_with("sh"))
                        .flat_map(str::lines)
                        .map(str::trim)
                        .filter(|line| line.starts_with("zae-limiter "));
                    lines.extend(commands.map(|line| (path.display().to_string(), line.to_owned())));
                }
            }
        }
        lines
    }

    #[test]
    fn commands_of_the_book_parse() {
        let lines = lines_of_the_book();
        assert!(lines.len() > 40);
        for (page, line) in lines {
            let parsed = Invocation::parse(example_arguments(&line).into_iter().map(OsString::from));
            assert!(parsed.is_ok(), "{page}: {line}: {}", parsed.unwrap_err());
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
                "docs/cli.md does not mention `{name}`"
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
                    "docs/cli.md does not mention --{long} of {name}"
                );
            }
        }
    }
}

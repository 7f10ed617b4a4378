//! The `zae-limiter` command.
//!
//! The crate is a thin layer over the libraries. A command parses its arguments into typed values (`args`), calls a
//! library, and returns a `CommandOutput`, which `output` renders as text for people or as JSON for programs. Only [`main`]
//! prints the result and sets the exit code, so no command can have a table without JSON, or exit halfway.
//!
//! - The progress of a long operation is the exception: it is drawn on standard error, or printed as JSON lines on
//!   standard output.
//! - A list is held in memory before it is printed. Lists are configuration and history, not streams.
//! - Errors are one enum. The message is one line that ends with the next step, in terms of commands. SDK debug output is
//!   removed.
//! - [`Exit`] lists the exit codes.
//! - Only commands that make network calls start an async runtime and load the AWS configuration, so help is fast.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]
#![allow(clippy::struct_field_names, reason = "fields are named as in the JSON output")]
#![allow(clippy::enum_variant_names, reason = "variants are named as the commands are")]

mod args;
mod command_output;
mod commands;
mod confirm;
mod connect;
mod context;
mod deferred;
mod error;
mod exit;
mod file_lines;
#[doc(hidden)]
pub mod hostile;
mod money;
mod output;
mod parse;

pub use exit::Exit;

use std::io::Write;
use std::process::ExitCode;

use args::Invocation;
use command_output::CommandOutput;
use context::Context;
use error::Error;

/// Runs the command given by the process arguments and returns its exit code.
pub fn main() -> ExitCode {
    std::panic::set_hook(Box::new(|panic| {
        let _ = writeln!(
            std::io::stderr(),
            "error: internal error: {panic}; this is a bug, please report it"
        );
    }));
    std::panic::catch_unwind(run).unwrap_or(Exit::Error).into()
}

/// The full command-line definition, for help, completions, and man pages.
pub fn command() -> clap::Command {
    args::full_command()
}

fn run() -> Exit {
    let invocation = match Invocation::parse(std::env::args_os()) {
        Ok(invocation) => invocation,
        Err(error) => return report_parse_error(&error),
    };
    let context = Context::new(invocation.globals);
    let result = commands::run(invocation.command, &context);
    match result.and_then(|output| print(&output, &context).map(|()| output.exit())) {
        Ok(exit) => exit,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "{}", error.render(&context.terminal));
            error.exit()
        }
    }
}

/// Prints help, the version, or a usage error. With `--output json` a usage error is a JSON object.
fn report_parse_error(error: &clap::Error) -> Exit {
    // Clap reports --help and --version as errors, but they go to stdout.
    if !error.use_stderr() {
        let _ = error.print();
        return Exit::Success;
    }
    let arguments: Vec<_> = std::env::args_os()
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    let json = arguments.iter().any(|argument| argument == "--output=json")
        || arguments.windows(2).any(|pair| pair == ["--output", "json"]);
    if json {
        let object =
            serde_json::json!({ "error": "invalid_argument", "message": summary(&error.to_string()) });
        let _ = writeln!(std::io::stderr(), "{object}");
    } else {
        let _ = error.print();
    }
    Exit::Usage
}

/// The first paragraph of a clap error, without the usage hints that follow it.
fn summary(message: &str) -> String {
    let paragraph = message.split("\n\n").next().unwrap_or_default();
    let words: Vec<&str> = paragraph.split_whitespace().collect();
    let line = words.join(" ");
    line.strip_prefix("error: ").unwrap_or(&line).to_owned()
}

fn print(output: &CommandOutput, context: &Context) -> Result<(), Error> {
    let text = output.render(&context.terminal)?;
    if text.is_empty() {
        return Ok(());
    }
    let mut stdout = std::io::stdout().lock();
    let newline = if text.ends_with('\n') { "" } else { "\n" };
    match write!(stdout, "{text}{newline}").and_then(|()| stdout.flush()) {
        // The reader, such as `head`, has closed the pipe.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(|source| Error::Io {
            what: "standard output".to_owned(),
            doing: "written",
            source,
        }),
    }
}

//! The `zae-limiter` command: what operators, scripts and newcomers touch.
//!
//! Thin over the libraries. A command [parses](args) its arguments into types that cannot be wrong, asks a library, and
//! returns an [`Answer`](answer::Answer): a value that is [shown](output) as a table for people or as JSON for programs.
//! Nothing but [`main`] prints or ends the process, and nothing but a command that needs it starts a runtime.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]
#![allow(clippy::struct_field_names, reason = "fields are named as the JSON is")]
#![allow(clippy::enum_variant_names, reason = "commands are named as users type them")]

mod answer;
mod args;
mod ask;
mod commands;
mod connect;
mod context;
mod error;
mod exit;
mod output;
mod parse;

pub use exit::Exit;

use std::io::Write;
use std::process::ExitCode;

use answer::Answer;
use args::Invocation;
use context::Context;
use error::Error;

/// Runs the command that the process's arguments ask for and tells how it went.
pub fn main() -> ExitCode {
    std::panic::set_hook(Box::new(|panic| {
        let _ = writeln!(
            std::io::stderr(),
            "error: internal error: {panic}; this is a bug, please report it"
        );
    }));
    std::panic::catch_unwind(run).unwrap_or(Exit::Error).into()
}

/// The whole command line, for help, completions and man pages.
pub fn command() -> clap::Command {
    args::command()
}

fn run() -> Exit {
    let invocation = match Invocation::parse(std::env::args_os()) {
        Ok(invocation) => invocation,
        Err(message) => return unparsed(&message),
    };
    let context = Context::new(invocation.globals);
    let answered = commands::run(invocation.command, &context);
    match answered.and_then(|answer| show(&answer, &context).map(|()| answer.exit())) {
        Ok(exit) => exit,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "{}", error.show(&context.terminal));
            error.exit()
        }
    }
}

/// Help, a version, or arguments that cannot be understood: told with their usage to people, as an object to programs.
fn unparsed(message: &clap::Error) -> Exit {
    // Help and version are no errors, and go to stdout.
    if !message.use_stderr() {
        let _ = message.print();
        return Exit::Success;
    }
    let arguments: Vec<_> = std::env::args_os()
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    let json = arguments.iter().any(|argument| argument == "--output=json")
        || arguments.windows(2).any(|pair| pair == ["--output", "json"]);
    if json {
        let told = serde_json::json!({ "error": "invalid_argument", "message": what(&message.to_string()) });
        let _ = writeln!(std::io::stderr(), "{told}");
    } else {
        let _ = message.print();
    }
    Exit::Usage
}

/// What is wrong, without the usage that follows.
fn what(message: &str) -> String {
    let told = message.split("\n\n").next().unwrap_or_default();
    let words: Vec<&str> = told.split_whitespace().collect();
    let line = words.join(" ");
    line.strip_prefix("error: ").unwrap_or(&line).to_owned()
}

fn show(answer: &Answer, context: &Context) -> Result<(), Error> {
    let text = answer.render(&context.terminal)?;
    if text.is_empty() {
        return Ok(());
    }
    let mut stdout = std::io::stdout().lock();
    let newline = if text.ends_with('\n') { "" } else { "\n" };
    match write!(stdout, "{text}{newline}").and_then(|()| stdout.flush()) {
        // Whoever reads has seen enough.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(|source| Error::Io {
            what: "standard output".to_owned(),
            doing: "written",
            source,
        }),
    }
}

//! `completions`: the completion script of a shell.

use clap::Args;
use clap_complete::Shell;

use crate::command_output::CommandOutput;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  zae-limiter completions bash > ~/.local/share/bash-completion/completions/zae-limiter
  zae-limiter completions zsh > ~/.zfunc/_zae-limiter
  zae-limiter completions fish > ~/.config/fish/completions/zae-limiter.fish")]
pub(crate) struct Arguments {
    /// Shell
    shell: Shell,
}

pub(crate) fn run(arguments: &Arguments) -> CommandOutput {
    let mut script = vec![];
    clap_complete::generate(
        arguments.shell,
        &mut crate::args::command(),
        "zae-limiter",
        &mut script,
    );
    CommandOutput::document(String::from_utf8_lossy(&script).into_owned())
}

//! `completions`: what a shell needs to complete commands and options.

use clap::Args;
use clap_complete::Shell;

use crate::answer::Answer;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  zae-limiter completions bash > ~/.local/share/bash-completion/completions/zae-limiter
  zae-limiter completions zsh > ~/.zfunc/_zae-limiter
  zae-limiter completions fish > ~/.config/fish/completions/zae-limiter.fish")]
pub(crate) struct Arguments {
    /// Which shell
    shell: Shell,
}

pub(crate) fn run(arguments: &Arguments) -> Answer {
    let mut script = vec![];
    clap_complete::generate(
        arguments.shell,
        &mut crate::args::command(),
        "zae-limiter",
        &mut script,
    );
    Answer::document(String::from_utf8_lossy(&script).into_owned())
}

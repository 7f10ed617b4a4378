//! `man`: the manual pages.

use std::path::PathBuf;

use clap::Args;
use clap_mangen::Man;
use serde::Serialize;

use crate::command_output::{CommandOutput, Text};
use crate::error::{Error, Result};
use crate::output::View;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  zae-limiter man | man -l -
  zae-limiter man --directory ~/.local/share/man/man1")]
pub(crate) struct Arguments {
    /// Write one page per command to this directory
    #[arg(long, value_name = "DIRECTORY")]
    directory: Option<PathBuf>,
}

#[derive(Debug, Serialize)]
struct PagesReport {
    directory: PathBuf,
    pages: usize,
}

impl Text for PagesReport {
    fn text(&self, _: &View) -> String {
        format!("wrote {} pages to {}", self.pages, self.directory.display())
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<CommandOutput> {
    let command = crate::args::full_command();
    let Some(directory) = &arguments.directory else {
        return Ok(CommandOutput::document(page(command)?));
    };
    std::fs::create_dir_all(directory).map_err(Error::writing(directory.display().to_string()))?;
    let pages = 1 + count(&command);
    clap_mangen::generate_to(command, directory).map_err(Error::writing(directory.display().to_string()))?;
    Ok(CommandOutput::new(PagesReport {
        directory: directory.clone(),
        pages,
    }))
}

/// The number of visible subcommands, at any depth.
fn count(command: &clap::Command) -> usize {
    let visible = command.get_subcommands().filter(|child| !child.is_hide_set());
    visible.map(|child| 1 + count(child)).sum()
}

fn page(command: clap::Command) -> Result<String> {
    let mut roff = vec![];
    Man::new(command)
        .render(&mut roff)
        .map_err(Error::writing("the manual page"))?;
    Ok(String::from_utf8_lossy(&roff).into_owned())
}

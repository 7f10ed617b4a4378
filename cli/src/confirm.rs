//! Confirmation prompts for destructive commands.

use std::io::{BufRead, IsTerminal, Write};

use crate::error::{Error, Result};

/// Asks the user to type `name` before `action` is taken. With `--yes` there is no prompt.
pub(crate) fn confirm_by_name(action: &str, name: &str, yes: bool) -> Result<()> {
    if yes {
        return Ok(());
    }
    let reply = ask(&format!("This will {action}.\nType {name:?} to continue: "))?;
    if reply == name {
        Ok(())
    } else {
        Err(Error::NotConfirmed)
    }
}

/// Asks a yes-or-no question. With `--yes` there is no prompt.
pub(crate) fn confirm(question: &str, yes: bool) -> Result<()> {
    if yes {
        return Ok(());
    }
    let reply = ask(&format!("{question} [y/N] "))?;
    if matches!(reply.to_ascii_lowercase().as_str(), "y" | "yes") {
        Ok(())
    } else {
        Err(Error::NotConfirmed)
    }
}

fn ask(question: &str) -> Result<String> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        return Err(Error::usage(
            "this command asks for confirmation, and standard input is not a terminal; pass --yes to skip the prompt",
        ));
    }
    let mut stderr = std::io::stderr();
    let _ = write!(stderr, "{question}").and_then(|()| stderr.flush());
    let mut line = String::new();
    stdin
        .lock()
        .read_line(&mut line)
        .map_err(Error::reading("the reply"))?;
    Ok(line.trim().to_owned())
}

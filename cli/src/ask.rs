//! Asking before something is lost.

use std::io::{BufRead, IsTerminal, Write};

use crate::error::{Error, Result};

/// Lets the one at the terminal type the name of what is going to be lost, unless `--yes` was given.
pub(crate) fn confirm_by_name(what: &str, name: &str, yes: bool) -> Result<()> {
    if yes {
        return Ok(());
    }
    let answer = ask(&format!("This will {what}.\nType {name:?} to go ahead: "))?;
    if answer == name {
        Ok(())
    } else {
        Err(Error::NotConfirmed)
    }
}

/// Asks a question whose answer is yes or no.
pub(crate) fn confirm(question: &str, yes: bool) -> Result<()> {
    if yes {
        return Ok(());
    }
    let answer = ask(&format!("{question} [y/N] "))?;
    if matches!(answer.to_ascii_lowercase().as_str(), "y" | "yes") {
        Ok(())
    } else {
        Err(Error::NotConfirmed)
    }
}

fn ask(question: &str) -> Result<String> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        return Err(Error::usage(
            "this needs to be confirmed and there is no terminal to ask at; pass --yes to go ahead",
        ));
    }
    let mut stderr = std::io::stderr();
    let _ = write!(stderr, "{question}").and_then(|()| stderr.flush());
    let mut line = String::new();
    stdin
        .lock()
        .read_line(&mut line)
        .map_err(Error::reading("the answer"))?;
    Ok(line.trim().to_owned())
}

//! `local logs`: the log of the local cloud.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use serde::Serialize;

use super::PortArgument;
use super::localstack;
use super::state_files::StateFiles;
use crate::command_output::{CommandOutput, Text};
use crate::error::{Error, Result};
use crate::output::View;

#[derive(Debug, Args)]
pub(crate) struct Logs {
    #[command(flatten)]
    at: PortArgument,
    /// Follow the log until the local cloud stops
    #[arg(short, long)]
    follow: bool,
    /// Show the last N lines
    #[arg(long, value_name = "N", default_value = "100")]
    tail: usize,
}

#[derive(Debug, Serialize)]
struct LogLines {
    log: PathBuf,
    lines: Vec<String>,
}

impl Text for LogLines {
    fn text(&self, _: &View) -> String {
        self.lines.join("\n")
    }
}

pub(super) fn run(arguments: &Logs) -> Result<CommandOutput> {
    let files = StateFiles::for_port(arguments.at.port)?;
    let running = files.running()?.ok_or_else(|| {
        Error::local(format!(
            "no local cloud is running on port {}; start one with `zae-limiter local up`",
            files.port
        ))
    })?;
    let Some(log) = &running.log else {
        localstack::logs(&running, arguments.tail, arguments.follow)?;
        return Ok(CommandOutput::empty());
    };
    let lines = tail(log, arguments.tail).map_err(Error::reading(log.display().to_string()))?;
    if !arguments.follow {
        return Ok(CommandOutput::new(LogLines {
            log: log.clone(),
            lines,
        }));
    }
    let alive = || {
        running
            .process
            .as_ref()
            .is_some_and(super::process::Process::is_alive)
    };
    match follow(log, &lines, alive) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Error::reading(log.display().to_string())(error))
        }
        _ => Ok(CommandOutput::empty()),
    }
}

/// The last lines of a file.
pub(super) fn tail(file: &Path, max: usize) -> std::io::Result<Vec<String>> {
    let mut last = VecDeque::new();
    for line in BufReader::new(File::open(file)?).split(b'\n') {
        last.push_back(String::from_utf8_lossy(&line?).into_owned());
        if last.len() > max {
            last.pop_front();
        }
    }
    Ok(last.into())
}

fn follow(file: &Path, seen: &[String], alive: impl Fn() -> bool) -> std::io::Result<()> {
    let mut stdout = std::io::stdout().lock();
    for line in seen {
        writeln!(stdout, "{line}")?;
    }
    let mut reader = BufReader::new(File::open(file)?);
    std::io::Seek::seek(&mut reader, std::io::SeekFrom::End(0))?;
    let mut line = vec![];
    loop {
        let running = alive();
        while reader.read_until(b'\n', &mut line)? > 0 {
            stdout.write_all(&line)?;
            line.clear();
        }
        stdout.flush()?;
        if !running {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_has_the_last_lines() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("log");
        std::fs::write(&file, "one\ntwo\nthree\n").unwrap();
        assert_eq!(tail(&file, 2).unwrap(), ["two", "three"]);
        assert_eq!(tail(&file, 9).unwrap(), ["one", "two", "three"]);
        assert!(tail(&file, 0).unwrap().is_empty());
    }
}

//! A process that can be told from another one that got its number later.

use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// How long a process may take to end before it is made to.
const PATIENCE: Duration = Duration::from_secs(10);

/// A process, known by its number and the moment it started. It leads a group of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Process {
    pub(super) pid: u32,
    started: String,
}

impl Process {
    /// The process with this number, if there is one.
    pub(super) fn of(pid: u32) -> Option<Self> {
        Some(Self {
            pid,
            started: started(pid)?,
        })
    }

    /// Whether it is still that process.
    pub(super) fn is_alive(&self) -> bool {
        started(self.pid).as_ref() == Some(&self.started)
    }

    /// Ends it with all that it started.
    pub(super) fn end(&self) -> Result<()> {
        if !self.is_alive() {
            return Ok(());
        }
        let group = i32::try_from(self.pid)
            .ok()
            .and_then(Pid::from_raw)
            .ok_or_else(|| Error::local(format!("{} is no process", self.pid)))?;
        kill_process_group(group, Signal::TERM).map_err(|error| Error::Io {
            what: format!("process {}", self.pid),
            doing: "ended",
            source: error.into(),
        })?;
        let deadline = Instant::now() + PATIENCE;
        while self.is_alive() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(50));
        }
        // Functions that did not end with it are still in its group; usually there are none.
        let _ = kill_process_group(group, Signal::KILL);
        Ok(())
    }
}

/// When a process started, in any stable form; nothing if there is none, or if it has ended and nobody has noticed.
fn started(pid: u32) -> Option<String> {
    if cfg!(target_os = "linux") {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // Behind the command's name, which may itself contain spaces and brackets.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let (state, start) = (fields.first()?, fields.get(19)?);
        return (*state != "Z").then(|| (*start).to_owned());
    }
    let listed = Command::new("ps")
        .args(["-o", "stat=,lstart=", "-p", &pid.to_string()])
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&listed.stdout);
    let (state, start) = text.trim().split_once(char::is_whitespace)?;
    (!state.starts_with('Z')).then(|| start.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_itself_and_an_impostor_is_not() {
        let own = Process::of(std::process::id()).unwrap();
        assert!(own.is_alive());
        let impostor = Process {
            started: "long ago".to_owned(),
            ..own
        };
        assert!(!impostor.is_alive());
        assert!(impostor.end().is_ok(), "what is gone need not be ended");
    }
}

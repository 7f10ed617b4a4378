//! A process, identified by its ID and start time, so that a reused process ID is not mistaken for it.

use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// How long a process may take to exit before it is killed.
const EXIT_TIMEOUT: Duration = Duration::from_secs(10);

/// A process that leads its own process group, identified by its ID and start time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Process {
    pub(super) pid: u32,
    started: String,
}

impl Process {
    /// The process with this ID, if it exists.
    pub(super) fn of(pid: u32) -> Option<Self> {
        Some(Self {
            pid,
            started: start_time(pid)?,
        })
    }

    /// Whether the process is still running.
    pub(super) fn is_alive(&self) -> bool {
        start_time(self.pid).as_ref() == Some(&self.started)
    }

    /// Terminates the process and everything in its group.
    pub(super) fn terminate(&self) -> Result<()> {
        if !self.is_alive() {
            return Ok(());
        }
        let group = i32::try_from(self.pid)
            .ok()
            .and_then(Pid::from_raw)
            .ok_or_else(|| Error::local(format!("{} is not a valid process ID", self.pid)))?;
        kill_process_group(group, Signal::TERM).map_err(|error| Error::Io {
            what: format!("process {}", self.pid),
            doing: "terminated",
            source: error.into(),
        })?;
        let deadline = Instant::now() + EXIT_TIMEOUT;
        while self.is_alive() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(50));
        }
        // Kill what is left in its group, such as functions that did not exit.
        let _ = kill_process_group(group, Signal::KILL);
        Ok(())
    }
}

/// The start time of a process in any stable format, or `None` if it does not exist or is a zombie.
fn start_time(pid: u32) -> Option<String> {
    if cfg!(target_os = "linux") {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The fields follow the command name, which may itself contain spaces and parentheses.
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
    fn a_reused_process_id_is_not_mistaken_for_the_process() {
        let own = Process::of(std::process::id()).unwrap();
        assert!(own.is_alive());
        let reused = Process {
            started: "long ago".to_owned(),
            ..own
        };
        assert!(!reused.is_alive());
        assert!(
            reused.terminate().is_ok(),
            "a process that is gone needs no signal"
        );
    }
}

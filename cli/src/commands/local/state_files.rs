//! The files of a local cloud, and the record of what is running.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::engine::Engine;
use super::localstack;
use super::process::Process;
use crate::error::{Error, Result};

/// A local cloud that `local up` started.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct RunningCloud {
    pub(super) engine: Engine,
    /// The process, for MiniStack.
    pub(super) process: Option<Process>,
    /// The container ID, for LocalStack.
    pub(super) container: Option<String>,
    /// The Docker endpoint, if it is not the default.
    pub(super) docker_host: Option<String>,
    pub(super) log: Option<PathBuf>,
}

/// The files of the local cloud on one port.
#[derive(Debug, Clone)]
pub(super) struct StateFiles {
    pub(super) port: u16,
    /// Data, temporary files, and the log; removed with the cloud.
    pub(super) directory: PathBuf,
    /// The record of what is running.
    state: PathBuf,
}

impl StateFiles {
    pub(super) fn for_port(port: u16) -> Result<Self> {
        let root = state_directory()?;
        Ok(Self {
            port,
            directory: root.join(format!("local-{port}")),
            state: root.join(format!("local-{port}.json")),
        })
    }

    pub(super) fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The cloud that `local up` started, even if it has stopped since.
    pub(super) fn recorded(&self) -> Result<Option<RunningCloud>> {
        let text = match std::fs::read_to_string(&self.state) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::reading(self.state.display().to_string())(error)),
        };
        serde_json::from_str(&text).map(Some).map_err(|error| {
            Error::local(format!(
                "{} is not valid: {error}; delete it and stop the cloud by hand",
                self.state.display()
            ))
        })
    }

    /// The cloud that `local up` started, if it is still running.
    pub(super) fn running(&self) -> Result<Option<RunningCloud>> {
        let Some(running) = self.recorded()? else {
            return Ok(None);
        };
        let alive = match (&running.process, &running.container) {
            (Some(process), _) => process.is_alive(),
            (None, Some(_)) => localstack::is_alive(&running)?,
            (None, None) => false,
        };
        Ok(alive.then_some(running))
    }

    /// Removes the files of the last cloud and creates the directories for a new one.
    pub(super) fn prepare(&self) -> Result<()> {
        self.remove()?;
        create(&self.directory.join("tmp"))
    }

    pub(super) fn save(&self, running: &RunningCloud) -> Result<()> {
        let text = serde_json::to_string_pretty(running).map_err(|error| Error::Internal {
            what: "the state of the local cloud cannot be written as JSON".to_owned(),
            source: error.into(),
        })?;
        if let Some(parent) = self.state.parent() {
            create(parent)?;
        }
        std::fs::write(&self.state, text).map_err(Error::writing(self.state.display().to_string()))
    }

    /// Removes all files.
    pub(super) fn remove(&self) -> Result<()> {
        let ignore_missing = |removed: std::io::Result<()>, path: &Path| match removed {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::Io {
                what: path.display().to_string(),
                doing: "removed",
                source: error,
            }),
            _ => Ok(()),
        };
        ignore_missing(std::fs::remove_file(&self.state), &self.state)?;
        ignore_missing(std::fs::remove_dir_all(&self.directory), &self.directory)
    }
}

fn create(directory: &Path) -> Result<()> {
    std::fs::create_dir_all(directory).map_err(Error::writing(directory.display().to_string()))
}

/// `ZAE_LIMITER_STATE_DIR`, or the user's state directory.
fn state_directory() -> Result<PathBuf> {
    let set = |name: &str| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    set("ZAE_LIMITER_STATE_DIR")
        .or_else(|| Some(set("XDG_STATE_HOME")?.join("zae-limiter")))
        .or_else(|| Some(set("HOME")?.join(".local/state/zae-limiter")))
        .ok_or_else(|| {
            Error::local("no directory for the files of the local cloud; set HOME or ZAE_LIMITER_STATE_DIR")
        })
}

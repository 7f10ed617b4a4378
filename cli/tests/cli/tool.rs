//! Running the command, on a table of its own.

use std::path::PathBuf;

use assert_cmd::Command;
use serde_json::Value;
use tempfile::TempDir;

/// A directory with a table in a file.
pub(crate) struct Bench {
    directory: TempDir,
}

/// What a command said, and how it ended.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Said {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn error(&self) -> Value {
        serde_json::from_str(&self.stderr).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    #[track_caller]
    pub(crate) fn ended(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:?}");
        self
    }
}

/// The command with an environment that has nothing of the machine's.
pub(crate) fn command() -> Command {
    let mut command = Command::cargo_bin("zae-limiter").unwrap();
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", "/nonexistent")
        .env("USER", "tester")
        .env("AWS_EC2_METADATA_DISABLED", "true")
        .env("AWS_CONFIG_FILE", "/nonexistent/config")
        .env("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent/credentials");
    command
}

pub(crate) fn said(mut command: Command) -> Said {
    let output = command.output().unwrap();
    Said {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self {
            directory: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> String {
        std::fs::write(self.path(name), text).unwrap();
        self.path(name).to_str().unwrap().to_owned()
    }

    /// The command on the table, not yet run.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = command();
        command
            .arg("--embedded")
            .arg(self.path("table.db"))
            .args(arguments);
        command
    }

    /// Runs it on the table.
    pub(crate) fn run(&self, arguments: &[&str]) -> Said {
        said(self.command(arguments))
    }

    /// Runs it and expects success.
    #[track_caller]
    pub(crate) fn ok(&self, arguments: &[&str]) -> String {
        self.run(arguments).ended(0).stdout
    }

    /// Runs it with `--output json` and expects success.
    #[track_caller]
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let mut all = arguments.to_vec();
        all.extend(["--output", "json"]);
        self.run(&all).ended(0).json()
    }
}

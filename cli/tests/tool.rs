//! Runs the command on an embedded table.

use std::path::PathBuf;

use assert_cmd::Command;
use serde_json::Value;
use tempfile::TempDir;

/// A temporary directory with an embedded table.
pub(crate) struct Bench {
    directory: TempDir,
}

/// The output and exit code of a command.
#[derive(Debug)]
pub(crate) struct RunResult {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl RunResult {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn error(&self) -> Value {
        serde_json::from_str(&self.stderr).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    #[track_caller]
    pub(crate) fn expect_exit(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:?}");
        self
    }
}

/// The command with a clean environment.
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

pub(crate) fn result(mut command: Command) -> RunResult {
    let output = command.output().unwrap();
    RunResult {
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

    /// The command on the table, before it is run.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = command();
        command
            .arg("--embedded")
            .arg(self.path("table.db"))
            .args(arguments);
        command
    }

    /// Runs the command on the table.
    pub(crate) fn run(&self, arguments: &[&str]) -> RunResult {
        result(self.command(arguments))
    }

    /// Runs the command and expects success.
    #[track_caller]
    pub(crate) fn ok(&self, arguments: &[&str]) -> String {
        self.run(arguments).expect_exit(0).stdout
    }

    /// Runs the command with `--output json` and expects success.
    #[track_caller]
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let mut all = arguments.to_vec();
        all.extend(["--output", "json"]);
        self.run(&all).expect_exit(0).json()
    }
}

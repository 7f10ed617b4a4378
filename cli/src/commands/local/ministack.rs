//! MiniStack: the whole cloud as one process, without Docker.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::engine::Engine;
use super::environment::variables;
use super::home::{Home, Running};
use super::process::Process;
use super::{logs, ready};
use crate::error::{Error, Result};

const PATIENCE: Duration = Duration::from_secs(60);
/// The release that this project works with.
const RELEASE: &str = "1.5.33";

pub(super) fn start(home: &Home, given: Option<&Path>) -> Result<Running> {
    let program = find(given)?;
    home.prepare()?;
    let log = home.directory.join("log");
    let mut child = spawn(&program, home, &log)?;
    let Some(process) = Process::of(child.id()) else {
        return Err(ended_early(&log));
    };
    let running = Running {
        engine: Engine::Ministack,
        process: Some(process.clone()),
        container: None,
        docker_host: None,
        log: Some(log.clone()),
    };
    home.remember(&running)?;
    let deadline = Instant::now() + PATIENCE;
    while !ready::answers(home.port, Engine::Ministack.ready_path()) {
        if matches!(child.try_wait(), Ok(Some(_))) {
            return Err(ended_early(&log));
        }
        if Instant::now() > deadline {
            process.end()?;
            let seconds = PATIENCE.as_secs();
            return Err(Error::local(format!(
                "MiniStack was not ready after {seconds} s; {}",
                end_of(&log)
            )));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(running)
}

fn spawn(program: &Path, home: &Home, log: &Path) -> Result<Child> {
    let file = || {
        File::options()
            .create(true)
            .append(true)
            .open(log)
            .map_err(Error::writing(log.display().to_string()))
    };
    // A clean environment: MiniStack hands its own to the functions that it runs. AWS_ENDPOINT_URL is what makes them
    // talk to it and not to AWS. A group of its own lets `down` end those functions with it.
    Command::new(program)
        .env_clear()
        .envs(variables(&home.endpoint()))
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", &home.directory)
        .env("TMPDIR", home.directory.join("tmp"))
        .env("LANG", "C.UTF-8")
        .env("GATEWAY_PORT", home.port.to_string())
        .env("BIND_HOST", "127.0.0.1")
        .stdin(Stdio::null())
        .stdout(file()?)
        .stderr(file()?)
        .process_group(0)
        .spawn()
        .map_err(|source| Error::Io {
            what: program.display().to_string(),
            doing: "started",
            source,
        })
}

pub(super) fn stop(running: &Running) -> Result<()> {
    running.process.as_ref().map_or(Ok(()), Process::end)
}

/// The command that was named, the project's own, or the one on the PATH.
fn find(given: Option<&Path>) -> Result<PathBuf> {
    if let Some(given) = given {
        return Ok(given.to_owned());
    }
    let here = std::env::current_dir().unwrap_or_default();
    let own = here
        .ancestors()
        .map(|directory| directory.join(".venv/ministack/bin/ministack"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).map(|directory| directory.join("ministack"));
    own.chain(on_path)
        .find(|candidate| candidate.is_file())
        .ok_or_else(|| {
            Error::local(format!(
                "MiniStack was not found; install it with `python3 -m venv .venv/ministack && \
             .venv/ministack/bin/pip install ministack=={RELEASE}`, or name its command with --ministack"
            ))
        })
}

fn ended_early(log: &Path) -> Error {
    Error::local(format!("MiniStack ended while it was starting; {}", end_of(log)))
}

fn end_of(log: &Path) -> String {
    let lines = logs::tail(log, 3).unwrap_or_default();
    format!("its log, {}, ends with: {}", log.display(), lines.join(" / "))
}

//! MiniStack, as one local process without Docker.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::engine::Engine;
use super::environment::variables;
use super::process::Process;
use super::state_files::{RunningCloud, StateFiles};
use super::{logs, ready};
use crate::error::{Error, Result};

const READY_TIMEOUT: Duration = Duration::from_secs(60);
/// The release that this project is tested with, and what it needs to read the requests of CloudWatch.
const PACKAGES: &str = "ministack==1.5.33 cbor2==5.7.1";

pub(super) fn start(files: &StateFiles, given: Option<&Path>) -> Result<RunningCloud> {
    let program = find(given)?;
    files.prepare()?;
    let log = files.directory.join("log");
    let mut child = spawn(&program, files, &log)?;
    let Some(process) = Process::of(child.id()) else {
        return Err(exited_early(&log));
    };
    let running = RunningCloud {
        engine: Engine::Ministack,
        process: Some(process.clone()),
        container: None,
        docker_host: None,
        log: Some(log.clone()),
    };
    files.save(&running)?;
    let deadline = Instant::now() + READY_TIMEOUT;
    while !ready::responds(files.port, Engine::Ministack.ready_path()) {
        if matches!(child.try_wait(), Ok(Some(_))) {
            return Err(exited_early(&log));
        }
        if Instant::now() > deadline {
            process.terminate()?;
            let seconds = READY_TIMEOUT.as_secs();
            return Err(Error::local(format!(
                "MiniStack was not ready after {seconds} s; {}",
                last_lines(&log)
            )));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(running)
}

fn spawn(program: &Path, files: &StateFiles, log: &Path) -> Result<Child> {
    let file = || {
        File::options()
            .create(true)
            .append(true)
            .open(log)
            .map_err(Error::writing(log.display().to_string()))
    };
    // A clean environment, because MiniStack passes its own to the functions that it runs. AWS_ENDPOINT_URL makes them
    // call MiniStack instead of AWS. The process gets its own group, so that `down` stops its functions as well.
    Command::new(program)
        .env_clear()
        .envs(variables(&files.endpoint()))
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", &files.directory)
        .env("TMPDIR", files.directory.join("tmp"))
        .env("LANG", "C.UTF-8")
        .env("GATEWAY_PORT", files.port.to_string())
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

pub(super) fn stop(running: &RunningCloud) -> Result<()> {
    running.process.as_ref().map_or(Ok(()), Process::terminate)
}

/// The given command, the one in `.venv` of this or a parent directory, or the one on the PATH.
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
             .venv/ministack/bin/pip install {PACKAGES}`, or pass its command with --ministack"
            ))
        })
}

fn exited_early(log: &Path) -> Error {
    Error::local(format!("MiniStack exited during startup; {}", last_lines(log)))
}

fn last_lines(log: &Path) -> String {
    let lines = logs::tail(log, 3).unwrap_or_default();
    format!("its log, {}, ends with: {}", log.display(), lines.join(" / "))
}

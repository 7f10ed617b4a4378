//! LocalStack, in a Docker container.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use clap::Args;

use super::engine::Engine;
use super::ready;
use super::state_files::{RunningCloud, StateFiles};
use crate::error::{Error, Result};

const READY_TIMEOUT: Duration = Duration::from_secs(120);
const SERVICES: &str = "cloudformation,cloudwatch,dynamodb,dynamodbstreams,iam,lambda,logs,s3,sns,sqs,sts";
const LABEL: &str = "zae-limiter=local";

#[derive(Debug, Clone, Args)]
pub(super) struct Options {
    /// Docker image, with --engine localstack
    #[arg(long, default_value = "localstack/localstack:4.14.0")]
    image: String,
    /// Docker endpoint, with --engine localstack [default: DOCKER_HOST]
    #[arg(long, value_name = "URL")]
    docker_host: Option<String>,
}

pub(super) fn start(files: &StateFiles, options: &Options) -> Result<RunningCloud> {
    files.prepare()?;
    let name = format!("zae-limiter-localstack-{}", files.port);
    let host = options.docker_host.as_deref();
    // A stopped container of an earlier start still has the name.
    remove(host, &name)?;
    let port = format!("127.0.0.1:{}:4566", files.port);
    let services = format!("SERVICES={SERVICES}");
    let variable = std::env::var("DOCKER_HOST").ok().filter(|host| !host.is_empty());
    let for_functions = docker_access(host.or(variable.as_deref()));
    let settings: Vec<_> = std::env::vars_os()
        .filter_map(|(name, _)| name.into_string().ok())
        .filter(|name| name.starts_with("LOCALSTACK_"))
        .collect();
    let mut run = vec![
        "run",
        "--detach",
        "--name",
        &name,
        "--label",
        LABEL,
        "--publish",
        &port,
    ];
    run.extend(for_functions.iter().map(String::as_str));
    run.extend(["--env", &services]);
    // Without a value Docker takes it from the environment, so that no token shows in the list of processes.
    run.extend(settings.iter().flat_map(|name| ["--env", name]));
    run.push(&options.image);
    let container = docker(host, &run)?;
    let running = RunningCloud {
        engine: Engine::Localstack,
        process: None,
        container: Some(container),
        docker_host: options.docker_host.clone(),
        log: None,
    };
    files.save(&running)?;
    let deadline = Instant::now() + READY_TIMEOUT;
    while !ready::responds(files.port, Engine::Localstack.ready_path()) {
        let problem = if !is_alive(&running)? {
            "LocalStack exited during startup".to_owned()
        } else if Instant::now() > deadline {
            format!("LocalStack was not ready after {} s", READY_TIMEOUT.as_secs())
        } else {
            std::thread::sleep(Duration::from_millis(500));
            continue;
        };
        let log = docker_on(&running, &["logs", "--tail", "3"]).unwrap_or_default();
        stop(&running)?;
        files.remove()?;
        return Err(Error::local(format!("{problem}; its log ends with: {log}")));
    }
    Ok(running)
}

/// Removes the container that was started, by its ID, also if it is stopped.
pub(super) fn stop(running: &RunningCloud) -> Result<()> {
    match &running.container {
        Some(container) => remove(running.docker_host.as_deref(), container),
        None => Ok(()),
    }
}

fn remove(host: Option<&str>, container: &str) -> Result<()> {
    match docker(host, &["rm", "--force", "--volumes", container]) {
        Err(error) if no_such_container(&error) => Ok(()),
        removed => removed.map(|_| ()),
    }
}

fn no_such_container(error: &Error) -> bool {
    matches!(error, Error::Local { message } if message.to_lowercase().contains("no such"))
}

/// Lets LocalStack start containers for Lambda functions, with the Docker that runs LocalStack itself.
fn docker_access(host: Option<&str>) -> [String; 2] {
    const SOCKET: &str = "/var/run/docker.sock";
    match host.map(|host| (host, host.strip_prefix("unix://"))) {
        Some((_, Some(path))) => ["--volume".to_owned(), format!("{path}:{SOCKET}")],
        Some((url, None)) => ["--env".to_owned(), format!("DOCKER_HOST={url}")],
        None => ["--volume".to_owned(), format!("{SOCKET}:{SOCKET}")],
    }
}

pub(super) fn is_alive(running: &RunningCloud) -> Result<bool> {
    let state = docker_on(running, &["inspect", "--format", "{{.State.Running}}"]);
    match state {
        Ok(state) => Ok(state == "true"),
        // The container no longer exists.
        Err(error) if no_such_container(&error) => Ok(false),
        Err(other) => Err(other),
    }
}

/// Prints the container's log to the output of this process.
pub(super) fn logs(running: &RunningCloud, tail: usize, follow: bool) -> Result<()> {
    let mut command = command(running.docker_host.as_deref());
    command.args(["logs", "--tail", &tail.to_string()]);
    if follow {
        command.arg("--follow");
    }
    command.args(&running.container);
    let status = command.status().map_err(docker_error)?;
    if status.success() {
        Ok(())
    } else {
        Err(Error::local("docker logs failed; see its message above"))
    }
}

fn docker_on(running: &RunningCloud, arguments: &[&str]) -> Result<String> {
    let mut all = arguments.to_vec();
    all.extend(running.container.as_deref());
    docker(running.docker_host.as_deref(), &all)
}

fn docker(host: Option<&str>, arguments: &[&str]) -> Result<String> {
    let output = command(host)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .map_err(docker_error)?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() {
        return Ok(text(&output.stdout));
    }
    let verb = arguments.first().copied().unwrap_or_default();
    Err(Error::local(format!(
        "docker {verb} failed: {}",
        text(&output.stderr)
    )))
}

fn command(host: Option<&str>) -> Command {
    let mut command = Command::new("docker");
    if let Some(host) = host {
        command.env("DOCKER_HOST", host);
    }
    command
}

fn docker_error(error: std::io::Error) -> Error {
    if error.kind() == std::io::ErrorKind::NotFound {
        return Error::local(
            "docker was not found; install Docker, or use --engine ministack, which does not need it",
        );
    }
    Error::Io {
        what: "docker".to_owned(),
        doing: "started",
        source: error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_run_in_the_docker_that_runs_localstack() {
        assert_eq!(
            docker_access(None),
            ["--volume", "/var/run/docker.sock:/var/run/docker.sock"]
        );
        assert_eq!(
            docker_access(Some("unix:///run/user/1000/docker.sock")),
            ["--volume", "/run/user/1000/docker.sock:/var/run/docker.sock"]
        );
        assert_eq!(
            docker_access(Some("tcp://10.0.0.2:2375")),
            ["--env", "DOCKER_HOST=tcp://10.0.0.2:2375"]
        );
    }
}

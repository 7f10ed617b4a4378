//! LocalStack: a Docker container, for those who have Docker.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use clap::Args;

use super::engine::Engine;
use super::home::{Home, Running};
use super::ready;
use crate::error::{Error, Result};

const PATIENCE: Duration = Duration::from_secs(120);
const SERVICES: &str = "cloudformation,cloudwatch,dynamodb,dynamodbstreams,iam,lambda,logs,s3,sns,sqs,sts";
const LABEL: &str = "zae-limiter=local";

#[derive(Debug, Clone, Args)]
pub(super) struct Options {
    /// The image, with --engine localstack
    #[arg(long, default_value = "localstack/localstack:4.14.0")]
    image: String,
    /// Where Docker is, with --engine localstack [default: DOCKER_HOST]
    #[arg(long, value_name = "URL")]
    docker_host: Option<String>,
}

pub(super) fn start(home: &Home, options: &Options) -> Result<Running> {
    home.prepare()?;
    let name = format!("zae-limiter-localstack-{}", home.port);
    let port = format!("127.0.0.1:{}:4566", home.port);
    let services = format!("SERVICES={SERVICES}");
    // Lambda functions run in containers of their own, which LocalStack asks Docker for.
    let socket = "/var/run/docker.sock:/var/run/docker.sock";
    let run = [
        "run",
        "--detach",
        "--name",
        &name,
        "--label",
        LABEL,
        "--publish",
        &port,
        "--volume",
        socket,
        "--env",
        &services,
        &options.image,
    ];
    let container = docker(options.docker_host.as_deref(), &run)?;
    let running = Running {
        engine: Engine::Localstack,
        process: None,
        container: Some(container),
        docker_host: options.docker_host.clone(),
        log: None,
    };
    home.remember(&running)?;
    let deadline = Instant::now() + PATIENCE;
    while !ready::answers(home.port, Engine::Localstack.ready_path()) {
        let why = if !is_alive(&running)? {
            "LocalStack ended while it was starting".to_owned()
        } else if Instant::now() > deadline {
            format!("LocalStack was not ready after {} s", PATIENCE.as_secs())
        } else {
            std::thread::sleep(Duration::from_millis(500));
            continue;
        };
        let log = docker_on(&running, &["logs", "--tail", "3"]).unwrap_or_default();
        stop(&running)?;
        home.forget()?;
        return Err(Error::local(format!("{why}; its log ends with: {log}")));
    }
    Ok(running)
}

/// Removes the container that was started, which its id names.
pub(super) fn stop(running: &Running) -> Result<()> {
    docker_on(running, &["rm", "--force", "--volumes"]).map(|_| ())
}

pub(super) fn is_alive(running: &Running) -> Result<bool> {
    let state = docker_on(running, &["inspect", "--format", "{{.State.Running}}"]);
    match state {
        Ok(state) => Ok(state == "true"),
        // A container that is gone.
        Err(Error::Local { message }) if message.to_lowercase().contains("no such") => Ok(false),
        Err(other) => Err(other),
    }
}

/// The container's log, straight to this process's output.
pub(super) fn logs(running: &Running, tail: usize, follow: bool) -> Result<()> {
    let mut command = command(running.docker_host.as_deref());
    command.args(["logs", "--tail", &tail.to_string()]);
    if follow {
        command.arg("--follow");
    }
    command.args(&running.container);
    let status = command.status().map_err(missing)?;
    if status.success() {
        Ok(())
    } else {
        Err(Error::local("docker logs failed; see its message above"))
    }
}

fn docker_on(running: &Running, arguments: &[&str]) -> Result<String> {
    let mut all = arguments.to_vec();
    all.extend(running.container.as_deref());
    docker(running.docker_host.as_deref(), &all)
}

fn docker(host: Option<&str>, arguments: &[&str]) -> Result<String> {
    let output = command(host)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .map_err(missing)?;
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

fn missing(error: std::io::Error) -> Error {
    if error.kind() == std::io::ErrorKind::NotFound {
        return Error::local(
            "docker was not found; install Docker, or use --engine ministack, which needs none",
        );
    }
    Error::Io {
        what: "docker".to_owned(),
        doing: "started",
        source: error,
    }
}

//! `local`: run a local AWS cloud for development.

mod engine;
mod environment;
mod localstack;
mod logs;
mod ministack;
mod process;
mod ready;
mod state_files;

use clap::{Args, Subcommand};
use serde::Serialize;

use engine::Engine;
use environment::Shell;
use state_files::{RunningCloud, StateFiles};

use crate::command_output::{CommandOutput, Text};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::output::View;

/// The usual port of local clouds.
const PORT: &str = "4566";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start a local cloud and wait until it is ready
    #[command(after_help = "Examples:
  zae-limiter local up && eval \"$(zae-limiter local env)\"
  zae-limiter local up --port 4570
  zae-limiter local up --name my-app            # also deploys a stack
  zae-limiter local up --engine localstack      # needs Docker")]
    Up(Up),
    /// Stop the local cloud that `local up` started
    #[command(after_help = "Example:
  zae-limiter local down")]
    Down(PortArgument),
    /// Show whether a local cloud is running; exits with 1 if not
    #[command(after_help = "Example:
  zae-limiter local status")]
    Status(PortArgument),
    /// Show the local cloud's log
    #[command(after_help = "Examples:
  zae-limiter local logs --tail 20
  zae-limiter local logs --follow")]
    Logs(logs::Logs),
    /// Print the environment variables that point AWS clients to the local cloud
    #[command(after_help = "Examples:
  eval \"$(zae-limiter local env)\"
  zae-limiter local env --format direnv > .envrc
  zae-limiter local env --format powershell | Invoke-Expression")]
    Env(Env),
}

#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct PortArgument {
    /// Port on 127.0.0.1
    #[arg(long, default_value = PORT)]
    port: u16,
}

#[derive(Debug, Args)]
pub(crate) struct Up {
    #[command(flatten)]
    at: PortArgument,
    /// Engine: MiniStack needs Python, LocalStack needs Docker
    #[arg(long, default_value = "ministack")]
    engine: Engine,
    /// MiniStack command [default: .venv/ministack in this or a parent directory, then the PATH]
    #[arg(
        long,
        value_name = "COMMAND",
        env = "ZAE_LIMITER_MINISTACK",
        hide_env_values = true
    )]
    ministack: Option<std::path::PathBuf>,
    #[command(flatten)]
    docker: localstack::Options,
}

#[derive(Debug, Args)]
pub(crate) struct Env {
    #[command(flatten)]
    at: PortArgument,
    /// Shell syntax
    #[arg(long, default_value = "eval")]
    format: Shell,
}

#[derive(Debug, Serialize)]
struct Status {
    up: bool,
    endpoint_url: String,
    engine: Option<Engine>,
    pid: Option<u32>,
    container: Option<String>,
    log: Option<std::path::PathBuf>,
    #[serde(skip)]
    message: String,
}

impl Status {
    fn new(files: &StateFiles, running: Option<&RunningCloud>, message: String) -> Self {
        Self {
            up: running.is_some(),
            endpoint_url: files.endpoint(),
            engine: running.map(|running| running.engine),
            pid: running
                .and_then(|running| running.process.as_ref())
                .map(|process| process.pid),
            container: running.and_then(|running| running.container.clone()),
            log: running.and_then(|running| running.log.clone()),
            message,
        }
    }
}

impl Text for Status {
    fn text(&self, _: &View) -> String {
        self.message.clone()
    }
}

pub(crate) fn run(command: Command, context: &Context) -> Result<CommandOutput> {
    match command {
        Command::Up(arguments) => up(&arguments, context),
        Command::Down(at) => down(at),
        Command::Status(at) => status(at),
        Command::Logs(arguments) => logs::run(&arguments),
        Command::Env(arguments) => {
            let files = StateFiles::for_port(arguments.at.port)?;
            Ok(CommandOutput::new(arguments.format.exports(&files.endpoint())))
        }
    }
}

fn up(arguments: &Up, context: &Context) -> Result<CommandOutput> {
    let files = StateFiles::for_port(arguments.at.port)?;
    let (running, verb) = match found(&files)? {
        Some(running) => (running, "is already running"),
        None => (start(arguments, &files)?, "is running"),
    };
    if context.given_name().is_some() {
        let context = context.on_local_cloud(files.endpoint());
        super::block_on(super::stack::deploy::ensure(&context))?;
    }
    let mut message = format!(
        "the local cloud ({}) {verb} at {}",
        running.engine,
        files.endpoint()
    );
    let port = arguments.at.port.to_string();
    let port = if port == PORT {
        String::new()
    } else {
        format!(" --port {port}")
    };
    message = format!("{message}\nuse it with: eval \"$(zae-limiter local env{port})\"");
    Ok(CommandOutput::new(Status::new(&files, Some(&running), message)))
}

/// The local cloud on the port: the one that `local up` started, or another one that responds.
fn found(files: &StateFiles) -> Result<Option<RunningCloud>> {
    if let Some(running) = files.running()? {
        return Ok(Some(running));
    }
    Ok(engine::responding(files.port).map(|engine| RunningCloud {
        engine,
        process: None,
        container: None,
        docker_host: None,
        log: None,
    }))
}

fn start(arguments: &Up, files: &StateFiles) -> Result<RunningCloud> {
    if ready::is_in_use(files.port) {
        return Err(Error::local(format!(
            "port {} is in use by a process that is not a local cloud; choose another with --port",
            files.port
        )));
    }
    match arguments.engine {
        Engine::Ministack => ministack::start(files, arguments.ministack.as_deref()),
        Engine::Localstack => localstack::start(files, &arguments.docker),
    }
}

fn down(PortArgument { port }: PortArgument) -> Result<CommandOutput> {
    let files = StateFiles::for_port(port)?;
    // A stopped container is removed too: it would block the next start.
    let stopped = files
        .recorded()?
        .filter(|recorded| recorded.engine == Engine::Localstack);
    let Some(running) = files.running()?.or(stopped) else {
        files.remove()?;
        let message = match engine::responding(port) {
            Some(engine) => {
                format!("{engine} on port {port} was not started by `local up`; stop it where it was started")
            }
            None => format!("no local cloud is running on port {port}"),
        };
        return Ok(CommandOutput::new(Status::new(&files, None, message)));
    };
    match running.engine {
        Engine::Ministack => ministack::stop(&running)?,
        Engine::Localstack => localstack::stop(&running)?,
    }
    files.remove()?;
    Ok(CommandOutput::new(Status::new(
        &files,
        None,
        format!("stopped the local cloud on port {port}"),
    )))
}

fn status(PortArgument { port }: PortArgument) -> Result<CommandOutput> {
    let files = StateFiles::for_port(port)?;
    let running = found(&files)?;
    let responds = running
        .as_ref()
        .is_some_and(|running| ready::responds(port, running.engine.ready_path()));
    let (message, exit) = match &running {
        Some(running) if responds => (
            format!("{} is running at {}", running.engine, files.endpoint()),
            Exit::Success,
        ),
        Some(running) => (
            format!(
                "{} is running at {} but does not respond",
                running.engine,
                files.endpoint()
            ),
            Exit::Error,
        ),
        None => (format!("no local cloud is running on port {port}"), Exit::Error),
    };
    Ok(CommandOutput::new(Status::new(
        &files,
        running.as_ref().filter(|_| responds),
        message,
    ))
    .with_exit(exit))
}

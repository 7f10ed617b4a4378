//! `local`: AWS on this machine, for trying things out.

mod engine;
mod environment;
mod home;
mod localstack;
mod logs;
mod ministack;
mod process;
mod ready;

use clap::{Args, Subcommand};
use serde::Serialize;

use engine::Engine;
use environment::Shell;
use home::{Home, Running};

use crate::answer::{Answer, Text};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::output::View;

/// The port that everybody knows.
const PORT: &str = "4566";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start a local cloud and wait until it is ready
    #[command(after_help = "Examples:
  zae-limiter local up && eval \"$(zae-limiter local env)\"
  zae-limiter local up --port 4570
  zae-limiter local up --name my-app             (and deploys a stack)
  zae-limiter local up --engine localstack      (needs Docker)")]
    Up(Up),
    /// End what `local up` started, and only that
    Down(At),
    /// Tell whether a local cloud is up; ends with 1 if not
    Status(At),
    /// Show the local cloud's log
    #[command(after_help = "Examples:
  zae-limiter local logs --tail 20
  zae-limiter local logs --follow")]
    Logs(logs::Logs),
    /// Print what a shell must export to use the local cloud
    #[command(after_help = "Examples:
  eval \"$(zae-limiter local env)\"
  zae-limiter local env --format direnv > .envrc
  zae-limiter local env --format powershell | Invoke-Expression")]
    Env(Env),
}

#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct At {
    /// The port on 127.0.0.1
    #[arg(long, default_value = PORT)]
    port: u16,
}

#[derive(Debug, Args)]
pub(crate) struct Up {
    #[command(flatten)]
    at: At,
    /// What to start: MiniStack needs Python, LocalStack needs Docker
    #[arg(long, default_value = "ministack")]
    engine: Engine,
    /// The MiniStack command [default: .venv/ministack here or above, then the PATH]
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
    at: At,
    /// For which shell
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
    sentence: String,
}

impl Status {
    fn of(home: &Home, running: Option<&Running>, sentence: String) -> Self {
        Self {
            up: running.is_some(),
            endpoint_url: home.endpoint(),
            engine: running.map(|running| running.engine),
            pid: running
                .and_then(|running| running.process.as_ref())
                .map(|process| process.pid),
            container: running.and_then(|running| running.container.clone()),
            log: running.and_then(|running| running.log.clone()),
            sentence,
        }
    }
}

impl Text for Status {
    fn text(&self, _: &View) -> String {
        self.sentence.clone()
    }
}

pub(crate) fn run(command: Command, context: &Context) -> Result<Answer> {
    match command {
        Command::Up(arguments) => up(&arguments, context),
        Command::Down(at) => down(at),
        Command::Status(at) => status(at),
        Command::Logs(arguments) => logs::run(&arguments),
        Command::Env(arguments) => {
            let home = Home::at(arguments.at.port)?;
            Ok(Answer::of(arguments.format.exports(&home.endpoint())))
        }
    }
}

fn up(arguments: &Up, context: &Context) -> Result<Answer> {
    let home = Home::at(arguments.at.port)?;
    let (running, verb) = match home.running()? {
        Some(running) => (running, "is already up"),
        None => (start(arguments, &home)?, "is up"),
    };
    if context.given_name().is_some() {
        let context = context.on_local_cloud(home.endpoint());
        super::block_on(super::stack::deploy::ensure(&context))?;
    }
    let mut sentence = format!(
        "the local cloud ({}) {verb} on {}",
        running.engine,
        home.endpoint()
    );
    let port = arguments.at.port.to_string();
    let port = if port == PORT {
        String::new()
    } else {
        format!(" --port {port}")
    };
    sentence = format!("{sentence}\nto use it: eval \"$(zae-limiter local env{port})\"");
    Ok(Answer::of(Status::of(&home, Some(&running), sentence)))
}

fn start(arguments: &Up, home: &Home) -> Result<Running> {
    if ready::is_taken(home.port) {
        return Err(Error::local(format!(
            "port {} is taken by something that `local up` did not start; choose another with --port",
            home.port
        )));
    }
    match arguments.engine {
        Engine::Ministack => ministack::start(home, arguments.ministack.as_deref()),
        Engine::Localstack => localstack::start(home, &arguments.docker),
    }
}

fn down(At { port }: At) -> Result<Answer> {
    let home = Home::at(port)?;
    let Some(running) = home.running()? else {
        home.forget()?;
        let sentence = format!("no local cloud of `local up` is running on port {port}");
        return Ok(Answer::of(Status::of(&home, None, sentence)));
    };
    match running.engine {
        Engine::Ministack => ministack::stop(&running)?,
        Engine::Localstack => localstack::stop(&running)?,
    }
    home.forget()?;
    Ok(Answer::of(Status::of(
        &home,
        None,
        format!("the local cloud on port {port} is down"),
    )))
}

fn status(At { port }: At) -> Result<Answer> {
    let home = Home::at(port)?;
    let running = home.running()?;
    let answers = running
        .as_ref()
        .is_some_and(|running| ready::answers(port, running.engine.ready_path()));
    let (sentence, exit) = match &running {
        Some(running) if answers => (
            format!("{} is up on {}", running.engine, home.endpoint()),
            Exit::Success,
        ),
        Some(running) => (
            format!(
                "{} runs on {} but does not answer",
                running.engine,
                home.endpoint()
            ),
            Exit::Error,
        ),
        None => (
            format!("no local cloud of `local up` is running on port {port}"),
            Exit::Error,
        ),
    };
    Ok(Answer::of(Status::of(&home, running.as_ref().filter(|_| answers), sentence)).with_exit(exit))
}

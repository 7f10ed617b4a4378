//! `serve`: rate limiting over HTTP and JSON.

mod log;

use std::io::Write;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use tokio::signal::unix::{SignalKind, signal};
use zae_limiter_server::{BearerTokens, Server, Settings};

use crate::command_output::{CommandOutput, Text};
use crate::connect;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::output::{Format, View, grouped};

/// Holds the same text as the file of `--tokens`.
const TOKENS_VARIABLE: &str = "ZAE_LIMITER_TOKENS";

#[derive(Debug, Args)]
#[command(
    after_help = "Runs until it gets SIGTERM or Ctrl-C. Then it lets requests finish and commits every lease.
The log is on standard error, as JSON lines with --output json; -v also logs every response.

Examples:
  zae-limiter --embedded f.db serve --listen 127.0.0.1:8080
  zae-limiter -n my-app --region eu-west-1 serve --listen 0.0.0.0:8080 --tokens tokens.txt"
)]
pub(crate) struct Arguments {
    /// Address and port to listen on; port 0 chooses a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// File with a bearer token per line: NAME SCOPES TOKEN [default: ZAE_LIMITER_TOKENS, the same text]
    #[arg(long, value_name = "FILE")]
    tokens: Option<PathBuf>,
    /// Leases that can be held at the same time [default: 100000]
    #[arg(long, value_name = "N")]
    max_leases: Option<NonZeroUsize>,
}

impl Arguments {
    fn settings(&self) -> Settings {
        let mut settings = Settings::default();
        if let Some(most) = self.max_leases {
            settings.max_leases = most.get();
        }
        settings
    }

    fn tokens(&self) -> Result<Option<BearerTokens>> {
        let (place, text) = match &self.tokens {
            Some(file) => (file.display().to_string(), read(file)?),
            None => match std::env::var(TOKENS_VARIABLE) {
                Ok(text) if !text.trim().is_empty() => (TOKENS_VARIABLE.to_owned(), text),
                _ => return Ok(None),
            },
        };
        let parsed = text.parse();
        parsed
            .map(Some)
            .map_err(|error| Error::usage(format!("{place} is invalid: {error}")))
    }
}

fn read(file: &Path) -> Result<String> {
    std::fs::read_to_string(file).map_err(Error::reading(file.display().to_string()))
}

/// The first line on standard output.
#[derive(Debug, Serialize)]
struct Listening {
    event: &'static str,
    url: String,
    /// How many bearer tokens are accepted. Without any, everybody on this machine may do everything.
    tokens: usize,
}

impl Listening {
    fn print(&self, format: Format) -> Result<()> {
        let line = match format {
            Format::Json => serde_json::to_string(self).map_err(|source| Error::Internal {
                what: "the address cannot be written as JSON".to_owned(),
                source: source.into(),
            })?,
            Format::Table if self.tokens == 0 => {
                format!(
                    "listening on {}; no tokens: everybody on this machine may use it",
                    self.url
                )
            }
            Format::Table => format!("listening on {}", self.url),
        };
        let mut stdout = std::io::stdout().lock();
        writeln!(stdout, "{line}")
            .and_then(|()| stdout.flush())
            .map_err(Error::writing("standard output"))
    }
}

#[derive(Debug, Serialize)]
struct Stopped {
    event: &'static str,
    /// Leases that were still held and were committed as taken.
    committed_leases: u64,
}

impl Text for Stopped {
    fn text(&self, _: &View) -> String {
        format!(
            "stopped; {} leases were committed",
            grouped(self.committed_leases)
        )
    }
}

pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<CommandOutput> {
    let tokens = arguments.tokens()?;
    log::start(context.terminal.format, context.terminal.verbose);
    let (limiter, meter) = connect::serving_limiter(&context.location, &context.name()?).await?;
    let count = tokens.as_ref().map_or(0, BearerTokens::len);
    let mut builder = Server::builder(limiter)
        .settings(arguments.settings())
        .meter(meter);
    if let Some(tokens) = tokens {
        builder = builder.tokens(tokens);
    }
    let server = builder.bind(arguments.listen).await?;
    // Before the address is known, nobody can ask to stop.
    let stop = stop_signal()?;
    let listening = Listening {
        event: "listening",
        url: format!("http://{}", server.address()),
        tokens: count,
    };
    listening.print(context.terminal.format)?;
    let closed = server.run(stop).await;
    if closed.unwritten > 0 {
        return Err(Error::Unwritten {
            left: closed.unwritten,
            reason: "the table was unavailable".to_owned(),
        });
    }
    Ok(CommandOutput::new(Stopped {
        event: "stopped",
        committed_leases: closed.committed,
    }))
}

/// Ready when the process is told to stop.
fn stop_signal() -> Result<impl Future<Output = ()>> {
    let signal = |kind| {
        signal(kind).map_err(|source| Error::Io {
            what: "signals".to_owned(),
            doing: "received",
            source,
        })
    };
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

//! `serve`: rate limiting over HTTP and JSON, and over gRPC for Envoy.

pub(super) mod log;

use std::io::Write;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use tokio::signal::unix::{SignalKind, signal};
use zae_limiter_server::{
    BearerTokens, EnvoyMapping, ReplicaOptions, Server, ServerHandle, Settings, TlsFiles, UiOptions,
};

use crate::command_output::{CommandOutput, Text};
use crate::commands::embedded_archive::{ArchiveArguments, EmbeddedArchive};
use crate::commands::stack_health;
use crate::connect;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::output::{Format, View, grouped};

/// Holds the same text as the file of `--tokens`.
const TOKENS_VARIABLE: &str = "ZAE_LIMITER_TOKENS";
/// Holds the same text as the file of `--replica-secret`.
const REPLICA_SECRET_VARIABLE: &str = "ZAE_LIMITER_REPLICA_SECRET";

#[derive(Debug, Args)]
#[command(
    after_help = "Runs until it gets SIGTERM or Ctrl-C. Then it lets requests finish and commits every lease. SIGHUP reads the files
of --tokens and --tls-cert again; the server also reads them every ten seconds.
The log is on standard error, as JSON lines with --output json; -v also logs every response.
Limits, usage and the audit trail are shown at /ui, read-only without --edit.

Examples:
  zae-limiter --embedded f.db serve --listen 127.0.0.1:8080
  zae-limiter -n my-app --region eu-west-1 serve --listen 0.0.0.0:8080 --tokens tokens.txt
  zae-limiter --embedded f.db serve --envoy-mapping mapping.yaml --grpc-listen 127.0.0.1:8081
  zae-limiter serve --envoy-mapping mapping.yaml --check"
)]
pub(crate) struct Arguments {
    /// Address and port to listen on; port 0 chooses a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// File with a bearer token per line: NAME SCOPES TOKEN; read again when it changes [default: ZAE_LIMITER_TOKENS, the
    /// same text]
    #[arg(long, value_name = "FILE")]
    tokens: Option<PathBuf>,
    /// Leases that can be held at the same time [default: 100000]
    #[arg(long, value_name = "N")]
    max_leases: Option<NonZeroUsize>,
    /// Certificate for TLS, followed by those that signed it, as PEM; read again when it changes
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Private key of the certificate, as PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Serve Envoy's rate limit service (RLS v3) over gRPC: which descriptor counts on what, as YAML
    #[arg(long, value_name = "FILE")]
    envoy_mapping: Option<PathBuf>,
    /// Address and port for gRPC; port 0 chooses a free one
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value = "127.0.0.1:8081",
        requires = "envoy_mapping"
    )]
    grpc_listen: SocketAddr,
    /// Host and port at which other servers on the same table reach this one over HTTP, for requests about its leases
    #[arg(long, value_name = "HOST:PORT")]
    advertise: Option<String>,
    /// File with the secret that these servers share [default: ZAE_LIMITER_REPLICA_SECRET, the same text]
    #[arg(long, value_name = "FILE", requires = "advertise")]
    replica_secret: Option<PathBuf>,
    #[command(flatten)]
    archive: ArchiveArguments,
    /// Allow changing limits on the page under /ui, each after a confirmation
    #[arg(long)]
    edit: bool,
    /// Check the files of the other options and do not serve
    #[arg(long)]
    check: bool,
}

impl Arguments {
    fn settings(&self, embedded: bool) -> Settings {
        let mut settings = if embedded {
            Settings::embedded()
        } else {
            Settings::default()
        };
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

    fn replica(&self) -> Result<Option<ReplicaOptions>> {
        let Some(advertise) = &self.advertise else {
            return Ok(None);
        };
        let secret = match &self.replica_secret {
            Some(file) => read(file)?,
            None => std::env::var(REPLICA_SECRET_VARIABLE).map_err(|_| {
                Error::usage(format!(
                    "--advertise needs a secret: set --replica-secret or {REPLICA_SECRET_VARIABLE}"
                ))
            })?,
        };
        let options = ReplicaOptions::new(advertise, &secret);
        options.map(Some).map_err(|error| Error::usage(error.to_string()))
    }

    fn tls(&self) -> Option<TlsFiles> {
        let (certificate, key) = (self.tls_cert.as_ref()?, self.tls_key.as_ref()?);
        Some(TlsFiles::new(certificate, key))
    }

    fn mapping(&self) -> Result<Option<EnvoyMapping>> {
        let Some(file) = &self.envoy_mapping else {
            return Ok(None);
        };
        let parsed: std::result::Result<EnvoyMapping, _> = read(file)?.parse();
        let invalid = |error| Error::usage(format!("{} is invalid: {error}", file.display()));
        parsed.map(Some).map_err(invalid)
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
    /// Where Envoy's rate limit service is served, if it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    grpc: Option<SocketAddr>,
    /// How many bearer tokens are accepted. Without any, everyone on this machine may do everything.
    tokens: usize,
}

impl Listening {
    fn print(&self, format: Format) -> Result<()> {
        let line = match format {
            Format::Json => serde_json::to_string(self).map_err(|source| Error::Internal {
                what: "the address cannot be written as JSON".to_owned(),
                source: source.into(),
            })?,
            Format::Table => {
                let grpc = self.grpc.map(|address| format!(", for Envoy on {address}"));
                let open = "; no tokens: everyone on this machine may use it";
                let open = if self.tokens == 0 { open } else { "" };
                format!("listening on {}{}{open}", self.url, grpc.unwrap_or_default())
            }
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
        match self.committed_leases {
            1 => "stopped; 1 lease was committed".to_owned(),
            leases => format!("stopped; {} leases were committed", grouped(leases)),
        }
    }
}

/// What `--check` has found.
#[derive(Debug, Serialize)]
struct Checked {
    tokens: usize,
    tls: bool,
    domains: Vec<String>,
    mappings: usize,
}

impl Text for Checked {
    fn text(&self, _: &View) -> String {
        let mut found = vec![];
        if self.tokens > 0 {
            found.push(format!("{} tokens", self.tokens));
        }
        if self.tls {
            found.push("a certificate with its key".to_owned());
        }
        if self.mappings > 0 {
            let domains = self.domains.join(", ");
            found.push(format!("{} mappings of {domains}", self.mappings));
        }
        if found.is_empty() {
            return "there is nothing to check".to_owned();
        }
        format!("valid: {}", found.join("; "))
    }
}

pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<CommandOutput> {
    let (tokens, tls, mapping) = (arguments.tokens()?, arguments.tls(), arguments.mapping()?);
    let replica = arguments.replica()?;
    arguments.archive.check(context)?;
    let count = tokens.as_ref().map_or(0, BearerTokens::len);
    if arguments.check {
        tls.as_ref().map(TlsFiles::check).transpose()?;
        let domains = mapping.iter().flat_map(EnvoyMapping::domains);
        return Ok(CommandOutput::new(Checked {
            tokens: count,
            tls: tls.is_some(),
            domains: domains.map(str::to_owned).collect(),
            mappings: mapping.as_ref().map_or(0, EnvoyMapping::len),
        }));
    }
    log::start(context.terminal.format, context.terminal.verbose);
    let (limiter, meter) = connect::serving_limiter(&context.location, &context.name()?).await?;
    let archive = EmbeddedArchive::start(arguments.archive.archive.as_deref(), context).await?;
    let scheme = if tls.is_some() { "https" } else { "http" };
    let options = UiOptions::default().edit(arguments.edit);
    let options = stack_health::report(options, context).await?;
    let mut builder = Server::builder(limiter)
        .settings(arguments.settings(context.location.embedded.is_some()))
        .meter(meter)
        .ui(options);
    if let Some(tokens) = tokens {
        builder = builder.tokens(tokens);
    }
    if let Some(file) = &arguments.tokens {
        builder = builder.token_file(file);
    }
    if let Some(options) = replica {
        builder = builder.replica(options);
    }
    if let Some(files) = tls {
        builder = builder.tls(files);
    }
    if let Some(mapping) = mapping {
        builder = builder.envoy(mapping, arguments.grpc_listen);
    }
    let server = builder.bind(arguments.listen).await?;
    // Before the address is printed: from then on, signals are expected.
    let stop = stop_signal()?;
    let reload = tokio::spawn(reload_on_hangup(server.handle())?);
    let listening = Listening {
        event: "listening",
        url: format!("{scheme}://{}", server.address()),
        grpc: server.grpc_address(),
        tokens: count,
    };
    listening.print(context.terminal.format)?;
    let closed = server.run(stop).await;
    reload.abort();
    if let Some(archive) = archive {
        archive.finish().await?;
    }
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

/// Reads the files of the server again on every SIGHUP.
fn reload_on_hangup(server: ServerHandle) -> Result<impl Future<Output = ()>> {
    let mut hangup = signal(SignalKind::hangup()).map_err(receiving_signals)?;
    Ok(async move {
        while hangup.recv().await.is_some() {
            let server = server.clone();
            let _ = tokio::task::spawn_blocking(move || server.reload()).await;
        }
    })
}

fn receiving_signals(source: std::io::Error) -> Error {
    Error::Io {
        what: "signals".to_owned(),
        doing: "received",
        source,
    }
}

/// Ready when the process gets a signal to stop.
pub(super) fn stop_signal() -> Result<impl Future<Output = ()>> {
    let signal = |kind| signal(kind).map_err(receiving_signals);
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

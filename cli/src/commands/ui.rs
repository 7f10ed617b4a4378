//! `ui`: limits, levels, usage and the audit trail in the browser.

mod browser;

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};

use clap::Args;
use serde::Serialize;
use zae_limiter_server::{LoginToken, Server, UiOptions};

use crate::command_output::{CommandOutput, Text};
use crate::commands::embedded_archive::{ArchiveArguments, EmbeddedArchive};
use crate::commands::serve::{log, stop_signal};
use crate::commands::stack_health;
use crate::connect;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::output::{Format, View};

#[derive(Debug, Args)]
#[command(
    after_help = "Prints an address with a token that works once, and runs until it gets SIGTERM or Ctrl-C. Nothing is
written without --edit.

Examples:
  zae-limiter --embedded f.db ui --open
  zae-limiter -n my-app --region eu-west-1 ui --edit"
)]
pub(crate) struct Arguments {
    /// Open the address in the browser
    #[arg(long)]
    open: bool,
    /// Allow changing limits, each after a confirmation
    #[arg(long)]
    edit: bool,
    #[command(flatten)]
    archive: ArchiveArguments,
    /// Port on 127.0.0.1 [default: a free one]
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    port: u16,
}

/// The first line on standard output.
#[derive(Debug, Serialize)]
struct Listening {
    event: &'static str,
    /// Works once.
    url: String,
    edit: bool,
    /// The command that forwards the port, if this is a remote host.
    ssh_forward: Option<String>,
}

impl Listening {
    fn text(&self) -> String {
        let mut lines = vec![format!("open {}", self.url)];
        if let Some(forward) = &self.ssh_forward {
            lines.push(format!(
                "from your own machine, forward the port first: {forward}"
            ));
        }
        if self.edit {
            lines.push("changes of limits are allowed and audited".to_owned());
        }
        lines.join("\n")
    }

    fn print(&self, format: Format) -> Result<()> {
        let text = match format {
            Format::Table => self.text(),
            Format::Json => serde_json::to_string(self).map_err(|source| Error::Internal {
                what: "the address cannot be written as JSON".to_owned(),
                source: source.into(),
            })?,
        };
        let mut stdout = std::io::stdout().lock();
        writeln!(stdout, "{text}")
            .and_then(|()| stdout.flush())
            .map_err(Error::writing("standard output"))
    }
}

#[derive(Debug, Serialize)]
struct Stopped {
    event: &'static str,
}

impl Text for Stopped {
    fn text(&self, _: &View) -> String {
        "stopped".to_owned()
    }
}

/// `ssh -L` for a session that came over SSH. `connection` is `SSH_CONNECTION`: client, its port, this host, its port.
fn ssh_forward(connection: Option<&str>, user: Option<&str>, port: u16) -> Option<String> {
    let mut parts = connection?.split_whitespace().skip(2);
    let host = parts.next()?;
    let ssh_port = parts.next()?;
    let user = user.map_or(String::new(), |user| format!("{user}@"));
    let at = if ssh_port == "22" {
        String::new()
    } else {
        format!("-p {ssh_port} ")
    };
    Some(format!("ssh {at}-N -L {port}:127.0.0.1:{port} {user}{host}"))
}

pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<CommandOutput> {
    arguments.archive.check(context)?;
    log::start(context.terminal.format, context.terminal.verbose);
    let (limiter, meter) = connect::serving_limiter(&context.location, &context.name()?).await?;
    let archive = EmbeddedArchive::start(arguments.archive.archive.as_deref(), context).await?;
    let token = LoginToken::random()?;
    let options = UiOptions::default()
        .edit(arguments.edit)
        .login_once(token.clone());
    let options = stack_health::report(options, context).await?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, arguments.port));
    let server = Server::builder(limiter)
        .meter(meter)
        .ui(options)
        .ui_only()
        .bind(address)
        .await?;
    let stop = stop_signal()?;
    let variable = |name| std::env::var(name).ok().filter(|text| !text.is_empty());
    let connection = variable("SSH_CONNECTION");
    let listening = Listening {
        event: "listening",
        url: token.url(&format!("http://{}", server.address())),
        edit: arguments.edit,
        ssh_forward: ssh_forward(
            connection.as_deref(),
            variable("USER").as_deref(),
            server.address().port(),
        ),
    };
    listening.print(context.terminal.format)?;
    // The page that leads there is deleted when the server ends.
    let _page = if arguments.open {
        browser::open(&listening.url)
    } else {
        None
    };
    server.run(stop).await;
    if let Some(archive) = archive {
        archive.finish().await?;
    }
    Ok(CommandOutput::new(Stopped { event: "stopped" }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_over_ssh_is_told_how_to_forward_the_port() {
        let connection = Some("198.51.100.7 51312 203.0.113.9 22");
        assert_eq!(
            ssh_forward(connection, Some("ops"), 4000).as_deref(),
            Some("ssh -N -L 4000:127.0.0.1:4000 ops@203.0.113.9")
        );
        let connection = Some("198.51.100.7 51312 203.0.113.9 2222");
        assert_eq!(
            ssh_forward(connection, None, 4000).as_deref(),
            Some("ssh -p 2222 -N -L 4000:127.0.0.1:4000 203.0.113.9")
        );
        assert_eq!(ssh_forward(None, Some("ops"), 4000), None);
    }
}

//! The log of the server, on standard error.

use tracing::Level;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::output::Format;

/// Logs warnings and what the server does, and with `verbose` every response.
pub(in crate::commands) fn start(format: Format, verbose: bool) {
    let level = if verbose { Level::DEBUG } else { Level::INFO };
    // Other crates log what only their developers need.
    let ours = tracing_subscriber::filter::Targets::new()
        .with_target("zae_limiter", level)
        .with_target("zae_limiter_server", level)
        .with_default(Level::WARN);
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let lines: Box<dyn tracing_subscriber::Layer<_> + Send + Sync> = match format {
        Format::Json => Box::new(lines.json().flatten_event(true)),
        Format::Table => Box::new(lines.with_ansi(false)),
    };
    let subscriber = tracing_subscriber::registry().with(lines).with(ours);
    // Only tests that run several commands in one process have one already.
    let _ = subscriber.try_init();
}

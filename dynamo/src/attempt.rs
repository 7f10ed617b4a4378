//! The time of one attempt. It begins when the request has a connection: looking up the name, connecting and the TLS handshake
//! have a time of their own, [`TimeoutConfig::connect_timeout`](aws_sdk_dynamodb::config::timeout::TimeoutConfig).
//!
//! An attempt that is canceled cancels its connecting. Where that takes longer than an attempt, every attempt would begin it
//! again.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use aws_sdk_dynamodb::config::interceptors::BeforeTransmitInterceptorContextRef;
use aws_sdk_dynamodb::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::connection::CaptureSmithyConnection;
use aws_smithy_runtime_api::client::interceptors::dyn_dispatch_hint;
use tokio::time::Instant;

/// How often an attempt whose time is over looks for a connection.
const LOOKS_EVERY: Duration = Duration::from_millis(10);

tokio::task_local! {
    /// The connection of the attempt that is polled.
    static CONNECTION: Arc<OnceLock<Connection>>;
}

/// What an attempt knows about its connection.
#[derive(Debug)]
struct Connection {
    capture: CaptureSmithyConnection,
    /// Whether the HTTP client has ever reported a connection.
    reports: Arc<AtomicBool>,
}

impl Connection {
    /// True if the request has one. Before that nothing is sent.
    fn exists(&self) -> bool {
        let exists = self.capture.get().is_some();
        if exists {
            self.reports.store(true, Ordering::Relaxed);
        }
        exists
    }
}

/// Shows attempts whether their request has a connection. For clients with the SDK's own HTTP client, which reports that.
#[derive(Debug, Clone, Default)]
pub struct ConnectionWatch {
    reports: Arc<AtomicBool>,
}

#[dyn_dispatch_hint]
impl Intercept for ConnectionWatch {
    fn name(&self) -> &'static str {
        "ConnectionWatch"
    }

    fn read_before_transmit(
        &self,
        _: &BeforeTransmitInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        if let Some(capture) = config.load::<CaptureSmithyConnection>() {
            let connection = Connection {
                capture: capture.clone(),
                reports: self.reports.clone(),
            };
            // Outside of an attempt nobody wants to know.
            drop(CONNECTION.try_with(|attempt| attempt.set(connection)));
        }
        Ok(())
    }
}

/// An attempt whose time is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimedOut {
    /// The request may have been sent.
    Sent,
    /// It had no connection, so nothing was sent.
    NotSent,
}

/// Carries out one attempt: `timeout` from the beginning, or from when its request has a connection if that takes longer.
/// A connection is waited for until `deadline` at most.
///
/// # Errors
///
/// If there was no response in time.
pub async fn attempt<T>(
    timeout: Duration,
    deadline: Instant,
    work: impl Future<Output = T>,
) -> Result<T, TimedOut> {
    let connection = Arc::new(OnceLock::new());
    let known = || {
        connection
            .get()
            .map(|connection: &Connection| connection.exists())
    };
    let mut work = std::pin::pin!(CONNECTION.scope(connection.clone(), work));
    let first = deadline.min(Instant::now() + timeout);
    if let Ok(done) = tokio::time::timeout_at(first, &mut work).await {
        known();
        return Ok(done);
    }
    let mut waited = false;
    while known() == Some(false) && Instant::now() < deadline {
        waited = true;
        let next = deadline.min(Instant::now() + LOOKS_EVERY);
        if let Ok(done) = tokio::time::timeout_at(next, &mut work).await {
            return Ok(done);
        }
    }
    if known() == Some(false) {
        let reports = connection
            .get()
            .is_some_and(|one| one.reports.load(Ordering::Relaxed));
        return Err(if reports {
            TimedOut::NotSent
        } else {
            TimedOut::Sent
        });
    }
    if waited {
        let response = tokio::time::timeout(timeout, &mut work).await;
        return response.map_err(|_| TimedOut::Sent);
    }
    Err(TimedOut::Sent)
}

#[cfg(test)]
mod tests;

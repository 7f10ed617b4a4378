//! Waiting for CloudFormation, with somebody at the terminal who may want to go.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use zae_limiter::stack::{Error as StackError, Event};

use super::progress::Progress;
use crate::error::{Error, Result};

/// How often the clock on the terminal is drawn anew.
const TICK: Duration = Duration::from_millis(500);

/// What came of waiting.
pub(super) enum Watched<T> {
    /// It is done.
    Done(T),
    /// The one who waited has gone; the operation goes on.
    Detached,
}

/// An observer that draws, and that says when CloudFormation has begun.
pub(super) fn observer(progress: &Progress, begun: &Arc<Notify>) -> impl Fn(&Event) + Send + Sync + 'static {
    let (progress, begun) = (progress.clone(), begun.clone());
    move |event: &Event| {
        progress.event(event);
        if matches!(event, Event::Started { .. }) {
            begun.notify_one();
        }
    }
}

/// Drives the work until it is done, until Ctrl-C, or, without `wait`, until it has begun.
pub(super) async fn watch<T>(
    work: impl Future<Output = Result<T, StackError>>,
    progress: &Progress,
    begun: &Notify,
    wait: bool,
) -> Result<Watched<T>> {
    let mut work = std::pin::pin!(work);
    let mut ticks = tokio::time::interval(TICK);
    let watched = loop {
        tokio::select! {
            done = &mut work => break done.map(Watched::Done).map_err(Error::from),
            () = begun.notified(), if !wait => break Ok(Watched::Detached),
            interrupted = tokio::signal::ctrl_c() => {
                // Without a handler the process would simply have ended.
                if interrupted.is_ok() {
                    break Ok(Watched::Detached);
                }
            }
            _ = ticks.tick() => progress.tick(),
        }
    };
    progress.finish();
    watched
}

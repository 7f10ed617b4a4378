//! Waiting for CloudFormation until the end, Ctrl-C, or the start of the operation.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::json;
use tokio::sync::Notify;
use zae_limiter::stack::{Error as StackError, Event};

use super::progress::Progress;
use crate::command_output::CommandOutput;
use crate::error::{Error, Result};
use crate::exit::Exit;

/// How often the clock on the terminal is redrawn.
const TICK: Duration = Duration::from_millis(500);

/// The result of waiting.
pub(super) enum Watched<T> {
    /// It is done.
    Done(T),
    /// The command stopped waiting. CloudFormation continues.
    Detached,
}

/// Waits for an operation on a stack.
#[derive(Clone)]
pub(super) struct Watch {
    progress: Progress,
    begun: Arc<Begun>,
    /// Until the end, and not only until it has begun.
    to_the_end: bool,
}

/// Whether CloudFormation is at work.
#[derive(Default)]
struct Begun {
    yes: AtomicBool,
    changed: Notify,
}

impl Watch {
    pub(super) fn new(progress: &Progress, to_the_end: bool) -> Self {
        Self {
            progress: progress.clone(),
            begun: Arc::default(),
            to_the_end,
        }
    }

    /// An observer that draws, and that notes when CloudFormation is at work.
    pub(super) fn observer(&self) -> impl Fn(&Event) + Send + Sync + 'static {
        let watch = self.clone();
        move |event: &Event| {
            watch.progress.event(event);
            if matches!(event, Event::Started { .. } | Event::Awaiting { .. }) {
                watch.begun.yes.store(true, Ordering::Release);
                watch.begun.changed.notify_one();
            }
        }
    }

    /// Drives the work until it is done, until Ctrl-C, or until it has begun if that is enough.
    pub(super) async fn over<T>(
        &self,
        work: impl Future<Output = Result<T, StackError>>,
    ) -> Result<Watched<T>> {
        let mut work = std::pin::pin!(work);
        let mut ticks = tokio::time::interval(TICK);
        let watched = loop {
            tokio::select! {
                done = &mut work => break done.map(Watched::Done).map_err(Error::from),
                () = self.begun.changed.notified(), if !self.to_the_end => break Ok(Watched::Detached),
                interrupted = tokio::signal::ctrl_c() => {
                    // Without a handler the process would simply have ended.
                    if interrupted.is_ok() {
                        break Ok(Watched::Detached);
                    }
                }
                _ = ticks.tick() => self.progress.tick(),
            }
        };
        self.progress.finish();
        watched
    }

    /// The output of a command that stops waiting.
    pub(super) fn detached(&self, name: &str, command: &str) -> CommandOutput {
        let begun = self.begun.yes.load(Ordering::Acquire);
        let message = if begun {
            format!(
                "detached: the operation on stack {name} continues; `zae-limiter {command} -n {name}` attaches to it again, \
                 `zae-limiter status -n {name}` shows its status"
            )
        } else {
            format!(
                "stopped before CloudFormation started: `zae-limiter {command} -n {name}` starts again, \
                 `zae-limiter status -n {name}` shows the status of the stack"
            )
        };
        let exit = if self.to_the_end {
            Exit::Interrupted
        } else {
            Exit::Success
        };
        if self.progress.is_json() {
            self.progress
                .result(&json!({ "event": "detached", "begun": begun, "message": message }));
            return CommandOutput::empty().with_exit(exit);
        }
        CommandOutput::document(message).with_exit(exit)
    }
}

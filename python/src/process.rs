//! The runtime of this process, and values that a forked child must not touch: ADR 250.

use std::mem;
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use tokio::runtime::{Builder, Handle, Runtime};

/// The runtime, with the process that started it. Locked only while attached to the interpreter, as is a fork by
/// Python: a child never inherits a locked one.
static RUNTIME: Mutex<Option<(u32, Runtime)>> = Mutex::new(None);

/// How long the end of the program waits for work in progress.
const STOPPING: Duration = Duration::from_secs(2);

/// How long a thread of the runtime that has nothing to do is kept.
const IDLE: Duration = Duration::from_millis(100);

fn runtime() -> MutexGuard<'static, Option<(u32, Runtime)>> {
    RUNTIME.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The runtime of this process, started by its first call. A child does not inherit the threads of its parent's
/// runtime, so it starts its own.
///
/// A lock that keeps its waiting threads in a table of the process, as those of `parking_lot` do, is broken in a child: the table
/// names threads that do not exist there, in memory that is used for others. The child loses wake-ups or crashes. A wheel has no such
/// lock, which a test checks. Tokio has them where another crate of the same build asks for them, so no thread waits at one
/// while nothing is called: the only worker waits for I/O, threads without work end soon, and a thread that waits for a call
/// is parked by the standard library.
pub(crate) fn handle(_attached: Python<'_>) -> PyResult<Handle> {
    let mut started = runtime();
    if let Some((owner, runtime)) = &*started
        && *owner == process::id()
    {
        return Ok(runtime.handle().clone());
    }
    let runtime = Builder::new_multi_thread()
        .worker_threads(1)
        .thread_keep_alive(IDLE)
        .thread_name("zae-limiter")
        .enable_all()
        .build()?;
    let handle = runtime.handle().clone();
    // Dropping the parent's runtime would wait for threads that are not here.
    mem::forget(started.replace((process::id(), runtime)));
    Ok(handle)
}

/// Ends the runtime of this process. Called as the interpreter exits: no thread may run Python code after that.
#[pyfunction]
pub(crate) fn stop_runtime(py: Python<'_>) {
    let started = runtime().take();
    match started {
        Some((owner, runtime)) if owner == process::id() => {
            py.detach(|| runtime.shutdown_timeout(STOPPING));
        }
        inherited => mem::forget(inherited),
    }
}

/// The process that was the first to open an embedded store; zero if none did. A forked child inherits it.
static EMBEDDED_IN: AtomicU32 = AtomicU32::new(0);

/// Called before an embedded store is opened. An error in a child that was forked after its parent had opened one:
/// SQLite keeps locks in memory, and those that the parent's threads held at the fork are never released in the child.
pub(crate) fn check_embedded_store() -> PyResult<()> {
    let current = process::id();
    match EMBEDDED_IN.compare_exchange(0, current, Ordering::Relaxed, Ordering::Relaxed) {
        Err(owner) if owner != current => Err(PyRuntimeError::new_err(format!(
            "process {owner} opened an embedded store before process {current} was forked from it, and SQLite does not \
             work across a fork; open embedded stores after the fork only, or start processes by spawn"
        ))),
        _ => Ok(()),
    }
}

/// A value of the client that belongs to the process that made it: it has connections, locks and tasks that a forked
/// child does not have.
pub(crate) struct Owned<T> {
    owner: u32,
    runtime: Handle,
    /// Always there until it is dropped.
    value: Option<T>,
}

impl<T> Owned<T> {
    pub(crate) fn new(py: Python<'_>, value: T) -> PyResult<Self> {
        Ok(Self {
            owner: process::id(),
            runtime: handle(py)?,
            value: Some(value),
        })
    }

    /// The value. An error in another process.
    pub(crate) fn get(&self) -> PyResult<&T> {
        match &self.value {
            Some(value) if self.owner == process::id() => Ok(value),
            _ => Err(PyRuntimeError::new_err(format!(
                "it belongs to process {}, and this is process {}; make a new one after a fork",
                self.owner,
                process::id()
            ))),
        }
    }
}

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        if self.owner == process::id() {
            // A lease that is dropped writes in the background.
            let _runtime = self.runtime.enter();
            drop(self.value.take());
        } else {
            mem::forget(self.value.take());
        }
    }
}

//! A call of the client, for `await` and for code without asyncio.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyRuntimeError, PyStopIteration};
use pyo3::prelude::*;
use pyo3_async_runtimes::TaskLocals;
use pyo3_async_runtimes::generic::{self, ContextExt, JoinError};
use serde_json::Value;

use crate::abandoned::{Abandoned, Acquiring, Work as Underway};
use crate::error::Failure;
use crate::{lease, limiter, process, records, repository};

/// How often a thread that waits looks for Ctrl-C.
const SIGNAL_CHECK: Duration = Duration::from_millis(50);

type Work = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// Work that has not started yet. `await` it, or `wait()` for it. Cancelling the task that awaits it cancels the work.
#[pyclass(frozen, module = "zae_limiter_rs._core")]
pub(crate) struct Call {
    work: Mutex<Option<Work>>,
    /// Set if the reply is a lease.
    acquiring: Option<Arc<Acquiring>>,
}

impl Call {
    pub(crate) fn new<E: Into<Failure>>(
        work: impl Future<Output = Result<Reply, E>> + Send + 'static,
    ) -> Self {
        let work: Work = Box::pin(async move { Outcome(work.await.map_err(Into::into)) });
        Self {
            work: Mutex::new(Some(work)),
            acquiring: None,
        }
    }

    /// Work that replies with a lease. If it is abandoned, it is counted there until the tokens are on their way back.
    pub(crate) fn acquire(
        abandoned: Arc<Abandoned>,
        work: impl Future<Output = Result<zae_limiter::Lease, Failure>> + Send + 'static,
    ) -> Self {
        let (underway, acquiring) = Underway::new(abandoned);
        let call = Self::new(async move {
            let underway = underway;
            let lease = underway.run(work).await?;
            Ok::<_, Failure>(Reply::Lease(lease, underway))
        });
        Self {
            acquiring: Some(acquiring),
            ..call
        }
    }

    fn take(&self) -> PyResult<Work> {
        let mut work = self.work.lock().unwrap_or_else(PoisonError::into_inner);
        work.take()
            .ok_or_else(|| PyRuntimeError::new_err("the call was awaited already"))
    }
}

#[pymethods]
impl Call {
    fn __await__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let mut work = self.take()?;
        let handle = process::handle(py)?;
        let _runtime = handle.enter();
        // What is decided from memory, such as most refusals, needs no turn of the event loop.
        let first = py.detach(|| work.as_mut().poll(&mut Context::from_waker(Waker::noop())));
        if let Poll::Ready(outcome) = first {
            return Done(Some(outcome.into_pyobject(py)?.unbind())).into_bound_py_any(py);
        }
        let future = generic::future_into_py::<Tokio, _, _>(py, async move { Ok(work.await) })?;
        future.call_method0("__await__")
    }

    /// The task that awaited it was cancelled. What it took, or takes, goes back.
    fn abandon(&self, py: Python<'_>) -> PyResult<()> {
        if let Some(acquiring) = &self.acquiring {
            let handle = process::handle(py)?;
            let _runtime = handle.enter();
            acquiring.give_up();
        }
        Ok(())
    }

    /// Blocks this thread until the work is done. Other threads run meanwhile, and Ctrl-C interrupts it.
    fn wait<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let mut work = self.take()?;
        let handle = process::handle(py)?;
        let _runtime = handle.enter();
        loop {
            match py.detach(|| poll_within(SIGNAL_CHECK, &mut work)) {
                Poll::Ready(outcome) => return outcome.into_pyobject(py),
                Poll::Pending => {
                    if let Err(interrupt) = py.check_signals() {
                        drop(work);
                        return Err(interrupt);
                    }
                }
            }
        }
    }
}

/// Blocks this thread until the work is done, or for this long. The thread is parked by the standard library: see
/// [`process::handle`].
fn poll_within(time: Duration, work: &mut Work) -> Poll<Outcome> {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    let started = Instant::now();
    loop {
        if let Poll::Ready(outcome) = work.as_mut().poll(&mut context) {
            return Poll::Ready(outcome);
        }
        match time.checked_sub(started.elapsed()) {
            Some(left) => thread::park_timeout(left),
            None => return Poll::Pending,
        }
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// An awaitable's iterator that ends at once, with the reply.
#[pyclass]
struct Done(Option<Py<PyAny>>);

#[pymethods]
impl Done {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&mut self) -> PyResult<Py<PyAny>> {
        // In a tuple: a reply that is one itself would become several arguments.
        Err(PyStopIteration::new_err((self.0.take(),)))
    }
}

/// What a call replies.
#[expect(clippy::large_enum_variant, reason = "a reply is moved once, to Python")]
pub(crate) enum Reply {
    Data(Value),
    Repository(zae_limiter::Repository),
    Limiter(zae_limiter::RateLimiter),
    /// Dropped in this order: the lease is returned first.
    Lease(zae_limiter::Lease, Underway),
}

/// A reply or an exception, made where the interpreter is attached.
struct Outcome(Result<Reply, Failure>);

impl<'py> IntoPyObject<'py> for Outcome {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self.0 {
            Ok(Reply::Data(value)) => records::to_python(py, &value),
            Ok(Reply::Repository(value)) => repository::Repository::new(py, value)?.into_bound_py_any(py),
            Ok(Reply::Limiter(value)) => limiter::RateLimiter::new(py, value)?.into_bound_py_any(py),
            Ok(Reply::Lease(value, underway)) => {
                lease::Lease::new(py, value, underway)?.into_bound_py_any(py)
            }
            Err(failure) => Err(failure.into_exception(py)),
        }
    }
}

/// The runtime that the caller has entered, for pyo3-async-runtimes. Nothing here calls back into asyncio, so tasks need
/// no locals.
struct Tokio;

struct TaskFailed(tokio::task::JoinError);

impl JoinError for TaskFailed {
    fn is_panic(&self) -> bool {
        self.0.is_panic()
    }

    fn into_panic(self) -> Box<dyn std::any::Any + Send + 'static> {
        self.0.into_panic()
    }
}

impl generic::Runtime for Tokio {
    type JoinError = TaskFailed;
    type JoinHandle = Pin<Box<dyn Future<Output = Result<(), TaskFailed>> + Send>>;

    fn spawn<F: Future<Output = ()> + Send + 'static>(work: F) -> Self::JoinHandle {
        let task = tokio::spawn(work);
        Box::pin(async move { task.await.map_err(TaskFailed) })
    }

    fn spawn_blocking<F: FnOnce() + Send + 'static>(work: F) -> Self::JoinHandle {
        let task = tokio::task::spawn_blocking(work);
        Box::pin(async move { task.await.map_err(TaskFailed) })
    }
}

impl ContextExt for Tokio {
    fn scope<F, R>(_: TaskLocals, work: F) -> Pin<Box<dyn Future<Output = R> + Send>>
    where
        F: Future<Output = R> + Send + 'static,
    {
        Box::pin(work)
    }

    fn get_task_locals() -> Option<TaskLocals> {
        None
    }
}

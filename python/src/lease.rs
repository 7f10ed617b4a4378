//! Tokens that a call has taken.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use serde_json::Value;
use tokio::sync::{MappedMutexGuard, Mutex, MutexGuard};
use zae_limiter::Admission;

use crate::abandoned::Work;
use crate::call::{Call, Reply};
use crate::error::Failure;
use crate::money;
use crate::process::{self, Owned};
use crate::records;

/// The lease until it is committed or rolled back. Locked while it consumes more.
pub(crate) type Shared = Arc<Mutex<Option<zae_limiter::Lease>>>;
pub(crate) type WeakShared = Weak<Mutex<Option<zae_limiter::Lease>>>;

/// A lease. Dropped before it is committed, it gives its tokens back in the background.
#[pyclass(frozen, module = "zae_limiter_rs._core")]
pub(crate) struct Lease {
    lease: Owned<Shared>,
}

impl Lease {
    pub(crate) fn new(py: Python<'_>, lease: zae_limiter::Lease, acquiring: Work) -> PyResult<Self> {
        let shared = Arc::new(Mutex::new(Some(lease)));
        let lease = Owned::new(py, shared.clone())?;
        acquiring.hand_over(&shared);
        Ok(Self { lease })
    }

    fn get(&self) -> PyResult<MappedMutexGuard<'_, zae_limiter::Lease>> {
        let lease = self.lease.get()?.try_lock().map_err(|_| busy())?;
        MutexGuard::try_map(lease, Option::as_mut).map_err(|_| over())
    }

    fn take(&self) -> PyResult<zae_limiter::Lease> {
        let mut lease = self.lease.get()?.try_lock().map_err(|_| busy())?;
        lease.take().ok_or_else(over)
    }
}

fn over() -> PyErr {
    PyRuntimeError::new_err("the lease is no longer active")
}

fn busy() -> PyErr {
    PyRuntimeError::new_err("the lease is consuming more; await that first")
}

#[pymethods]
impl Lease {
    /// The resources that it is on, in the order of the call.
    fn resources(&self) -> PyResult<Vec<String>> {
        Ok(self.get()?.resources().map(ToString::to_string).collect())
    }

    /// Tokens by limit, adjustments included: of this resource, or of the first one.
    #[pyo3(signature = (resource=None))]
    fn consumed(&self, resource: Option<&str>) -> PyResult<BTreeMap<String, i64>> {
        let lease = self.get()?;
        let consumed = match resource {
            None => lease.consumed(),
            Some(resource) => lease.consumed_on(resource).unwrap_or_default(),
        };
        Ok(consumed
            .into_iter()
            .map(|(name, tokens)| (name.to_string(), tokens))
            .collect())
    }

    /// Whether the tokens were taken from the table, and if not, why the call was admitted.
    fn admission(&self) -> PyResult<&'static str> {
        Ok(match self.get()?.admission() {
            Admission::Counted => "counted",
            Admission::PartlyCounted => "partly_counted",
            Admission::Local => "local",
            Admission::Observed => "observed",
            Admission::Bypassed => "bypassed",
            _ => "allowed_while_unavailable",
        })
    }

    /// The status of every limit that would have refused the call if it were enforced.
    fn observed_limits<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let observed: Value = self
            .get()?
            .observed_limits()
            .iter()
            .map(records::status)
            .collect();
        records::to_python(py, &observed)
    }

    /// Whether permits of a limit on calls in flight have expired.
    fn is_lost(&self) -> PyResult<bool> {
        Ok(self.get()?.is_lost())
    }

    /// The status of every limit after the tokens were taken.
    fn statuses<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let statuses: Value = self.get()?.statuses().iter().map(records::status).collect();
        records::to_python(py, &statuses)
    }

    /// Corrects what was used. Written by the commit.
    #[pyo3(signature = (limit, tokens, resource=None))]
    fn adjust(&self, limit: &str, tokens: i64, resource: Option<&str>) -> PyResult<()> {
        let mut lease = self.get()?;
        match resource {
            None => {
                lease.adjust(limit, tokens);
            }
            Some(resource) => {
                lease.on(resource).adjust(limit, tokens);
            }
        }
        Ok(())
    }

    /// Corrects what was used of the limits that count tokens and money. `usage` is JSON. Written by the commit.
    fn adjust_to_usage(&self, py: Python<'_>, usage: &str) -> PyResult<()> {
        let mut lease = self.get()?;
        let adjusted =
            money::read_usage(usage).and_then(|usage| Ok(lease.adjust_to_usage(&usage).map(drop)?));
        adjusted.map_err(|failure| failure.into_exception(py))
    }

    /// Whether it was neither committed nor rolled back.
    fn is_active(&self) -> PyResult<bool> {
        // Locked while it consumes more, and therefore active.
        let active = self.lease.get()?.try_lock().map_or(true, |lease| lease.is_some());
        Ok(active)
    }

    /// Takes more of all these limits, or of none.
    #[pyo3(signature = (amounts, resource=None))]
    fn consume(&self, amounts: BTreeMap<String, u64>, resource: Option<String>) -> PyResult<Call> {
        let lease = self.lease.get()?.clone();
        if lease.try_lock().is_ok_and(|lease| lease.is_none()) {
            return Err(over());
        }
        Ok(Call::new(async move {
            let mut lease = lease.lock().await;
            let Some(lease) = lease.as_mut() else {
                return Err(Failure::invalid("lease", "", "it is no longer active"));
            };
            let mut more = More::of(lease, resource);
            for (limit, tokens) in amounts {
                more.take(limit, tokens).await?;
            }
            more.keep();
            Ok(Reply::Data(Value::Null))
        }))
    }

    /// Keeps the tokens and writes the adjustments. Started now: cancelling the call does not stop it.
    fn commit(&self, py: Python<'_>) -> PyResult<Call> {
        let lease = self.take()?;
        finish(py, lease.commit())
    }

    /// Corrects tokens and money to what was used, and keeps them. `usage` is JSON. Without prices it keeps what was taken,
    /// which is an error. Started now: cancelling the call does not stop it.
    fn commit_usage(&self, py: Python<'_>, usage: &str) -> PyResult<Call> {
        let usage = money::read_usage(usage).map_err(|failure| failure.into_exception(py))?;
        let lease = self.take()?;
        finish(py, async move { lease.commit_usage(&usage).await })
    }

    /// Gives everything back. Started now: cancelling the call does not stop it.
    fn rollback(&self, py: Python<'_>) -> PyResult<Call> {
        let lease = self.take()?;
        finish(py, lease.rollback())
    }
}

/// Tokens of several limits that a lease consumes together. Dropped before all are taken, as when one is refused or the
/// call is cancelled, the others go back with the lease.
struct More<'a> {
    lease: &'a mut zae_limiter::Lease,
    resource: Option<String>,
    taken: Vec<(String, u64)>,
}

impl<'a> More<'a> {
    fn of(lease: &'a mut zae_limiter::Lease, resource: Option<String>) -> Self {
        Self {
            lease,
            resource,
            taken: Vec::new(),
        }
    }

    async fn take(&mut self, limit: String, tokens: u64) -> zae_limiter::Result<()> {
        match &self.resource {
            None => self.lease.consume(&limit, tokens).await?,
            Some(resource) => self.lease.on(resource).consume(&limit, tokens).await?,
        }
        self.taken.push((limit, tokens));
        Ok(())
    }

    fn keep(mut self) {
        self.taken.clear();
    }
}

impl Drop for More<'_> {
    fn drop(&mut self) {
        for (limit, tokens) in self.taken.drain(..) {
            match &self.resource {
                None => {
                    self.lease.release(limit, tokens);
                }
                Some(resource) => {
                    self.lease.on(resource).release(limit, tokens);
                }
            }
        }
    }
}

/// Starts the end of a lease. What it has to write is queued when this returns; only waiting for it is left.
fn finish(
    py: Python<'_>,
    work: impl Future<Output = zae_limiter::Result<()>> + Send + 'static,
) -> PyResult<Call> {
    let handle = process::handle(py)?;
    let _runtime = handle.enter();
    let mut work = Box::pin(work);
    let first = py.detach(|| work.as_mut().poll(&mut Context::from_waker(Waker::noop())));
    if let Poll::Ready(done) = first {
        return Ok(Call::new(async move { done.map(|()| Reply::Data(Value::Null)) }));
    }
    let task = handle.spawn(work);
    Ok(Call::new(async move {
        match task.await {
            Ok(done) => done?,
            Err(failed) => return Err(Failure::invalid("lease", "", &failed.to_string())),
        }
        Ok::<_, Failure>(Reply::Data(Value::Null))
    }))
}

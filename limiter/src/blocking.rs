//! The limiter for code without async. The types are the same, and their methods block the calling thread.
//!
//! The work is done by the async limiter on a thread of its own, which starts with the limiter and ends when the
//! limiter and all its leases are gone and what they gave back is written.
//!
//! ```
//! use zae_limiter::{Limit, RateLimiter};
//!
//! # fn main() -> zae_limiter::Result<()> {
//! let limiter = RateLimiter::embedded()
//!     .default_limits([Limit::per_minute("rpm", 100)?, Limit::per_minute("tpm", 10_000)?])
//!     .build_blocking()?;
//! let mut lease = limiter.acquire("user-1", "gpt-4").consume("rpm", 1).consume("tpm", 500).lease()?;
//! lease.adjust("tpm", 120); // the response was longer than estimated
//! lease.commit()?;
//! limiter.shutdown();
//! # Ok(()) }
//! ```
//!
//! It may be called from anywhere, also from a thread of an async runtime, which it then blocks: tasks there should use
//! the async API.

use std::collections::BTreeMap;
use std::future::{Future, IntoFuture};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::oneshot;
use zae_limiter_schema::money::{Estimate, Usage};
use zae_limiter_schema::{EntityId, Limit, LimitName, OnUnavailable, Resource};

use crate::error::{Internal, Invalid};
use crate::{
    Admission, Availability, Error, LimitStatus, LimiterStats, RateLimiterBuilder, Repository, Result,
    Shutdown,
};

/// A distributed rate limiter whose calls block. Cheap to clone; clones share everything.
#[derive(Debug, Clone)]
pub struct RateLimiter {
    limiter: crate::RateLimiter,
    background: Arc<Background>,
}

/// The thread that does the work. It ends when the last handle is dropped.
#[derive(Debug)]
struct Background {
    runtime: Handle,
    _told_by_dropping: oneshot::Sender<()>,
}

impl Background {
    /// Blocks this thread until the work is done. It is done here, which a thread of a runtime cannot do: there
    /// another thread does it.
    fn wait<T: Send>(&self, work: impl Future<Output = Result<T>> + Send) -> Result<T> {
        if Handle::try_current().is_err() {
            return self.runtime.block_on(work);
        }
        std::thread::scope(|scope| {
            let helper = std::thread::Builder::new()
                .name("zae-limiter-wait".to_owned())
                .spawn_scoped(scope, || self.runtime.block_on(work))
                .map_err(|error| no_thread(&error))?;
            helper
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Blocks this thread until the limiter's own thread has done the work. None if that thread panicked.
    fn hand_over<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> Option<T> {
        let (done, made) = mpsc::channel();
        self.runtime.spawn(async move { done.send(work.await) });
        made.recv().ok()
    }

    /// The same for work that can fail.
    fn do_work<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        self.hand_over(work)
            .unwrap_or_else(|| Err(thread_error("panicked")))
    }
}

impl RateLimiterBuilder {
    /// Checks the settings and connects, for code without async.
    pub fn build_blocking(self) -> Result<RateLimiter> {
        let (ready, made) = mpsc::channel();
        let (stop, stopped) = oneshot::channel::<()>();
        let started = std::thread::Builder::new()
            .name("zae-limiter".to_owned())
            .spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                let runtime = match runtime {
                    Ok(runtime) => runtime,
                    Err(error) => return drop(ready.send(Err(no_thread(&error)))),
                };
                runtime.block_on(async move {
                    let limiter = match Box::pin(self.build()).await {
                        Ok(limiter) => limiter,
                        Err(error) => return drop(ready.send(Err(error))),
                    };
                    limiter.keep_runtime();
                    drop(ready.send(Ok((limiter.clone(), Handle::current()))));
                    // Ends with an error, when the last one who could call is gone.
                    let _ = stopped.await;
                    limiter.settled().await;
                });
            });
        started.map_err(|error| no_thread(&error))?;
        let ended = |_| Err(thread_error("ended before the limiter was built"));
        let (limiter, runtime) = made.recv().unwrap_or_else(ended)?;
        let background = Arc::new(Background {
            runtime,
            _told_by_dropping: stop,
        });
        Ok(RateLimiter { limiter, background })
    }
}

fn no_thread(error: &std::io::Error) -> Error {
    thread_error(format!("cannot be started: {error}"))
}

fn thread_error(reason: impl Into<String>) -> Error {
    Error::Internal(Internal::BackgroundThread {
        reason: reason.into(),
    })
}

impl RateLimiter {
    /// Limits a call of an entity on a resource: say what it [consumes](Acquire::consume), then take the
    /// [lease](Acquire::lease).
    pub fn acquire(&self, entity: impl AsRef<str>, resource: impl AsRef<str>) -> Acquire {
        Acquire {
            acquire: self.limiter.acquire(entity, resource),
            background: self.background.clone(),
        }
    }

    /// The async limiter that does the work.
    pub fn as_async(&self) -> &crate::RateLimiter {
        &self.limiter
    }

    /// Blocks until work of the async API is done. Called on a thread of an async runtime it must not need that thread.
    ///
    /// ```
    /// # use zae_limiter::{Limit, RateLimiter};
    /// # fn main() -> zae_limiter::Result<()> {
    /// let limiter = RateLimiter::embedded().build_blocking()?;
    /// let limits = [Limit::per_minute("rpm", 100)?];
    /// limiter.wait(limiter.repository().set_resource_defaults("gpt-4", limits))?;
    /// # Ok(()) }
    /// ```
    pub fn wait<T: Send, W>(&self, work: W) -> Result<T>
    where
        W: IntoFuture<Output = Result<T>, IntoFuture: Send>,
    {
        self.background.wait(work.into_future())
    }

    /// Everything that is stored, through the async API: pass its futures to [`wait`](Self::wait).
    pub fn repository(&self) -> &Repository {
        self.limiter.repository()
    }

    /// Brings the stack to what was declared: see
    /// [`RateLimiter::ensure_infrastructure`](crate::RateLimiter::ensure_infrastructure).
    #[cfg(feature = "stack")]
    pub fn ensure_infrastructure(&self) -> Result<Option<crate::stack::Outcome>> {
        self.wait(Box::pin(self.limiter.ensure_infrastructure()))
    }

    /// The stacks of this project in the account and region of this limiter: see
    /// [`Repository::list_stacks`](crate::Repository::list_stacks).
    #[cfg(feature = "stack")]
    pub fn list_stacks(&self) -> Result<Vec<crate::stack::Discovered>> {
        self.wait(Box::pin(self.repository().list_stacks()))
    }

    /// Reports whether the table responds within the time budget. Never fails.
    pub fn is_available(&self) -> bool {
        let limiter = self.limiter.clone();
        let asked = self
            .background
            .hand_over(async move { limiter.is_available().await });
        asked.unwrap_or(false)
    }

    /// Counters of this limiter since it was built.
    pub fn stats(&self) -> LimiterStats {
        self.limiter.stats()
    }

    /// Shuts the limiter down and reports what could not be written: see
    /// [`RateLimiter::shutdown`](crate::RateLimiter::shutdown).
    pub fn shutdown(&self) -> Shutdown {
        let limiter = self.limiter.clone();
        let report = self.background.hand_over(async move { limiter.shutdown().await });
        report.unwrap_or_default()
    }
}

/// A call that is about to be limited. Nothing happens until its [lease](Self::lease) is taken, or it is
/// [run](Self::run) or [peeked](Self::peek).
#[derive(Debug, Clone)]
#[must_use = "an acquire does nothing until its lease is taken"]
pub struct Acquire {
    acquire: crate::Acquire,
    background: Arc<Background>,
}

impl Acquire {
    fn with(self, change: impl FnOnce(crate::Acquire) -> crate::Acquire) -> Self {
        Self {
            acquire: change(self.acquire),
            background: self.background,
        }
    }

    /// Requests tokens of a limit. A call takes the tokens of all its limits, or none.
    pub fn consume(self, limit: impl AsRef<str>, tokens: u64) -> Self {
        self.with(|acquire| acquire.consume(limit, tokens))
    }

    /// Charges another resource of the same entity in the same call: see [`Acquire::and`](crate::Acquire::and).
    pub fn and(self, resource: impl AsRef<str>) -> Self {
        self.with(|acquire| acquire.and(resource))
    }

    /// Whether the entity's parent is charged too, for this resource: see
    /// [`Acquire::cascade`](crate::Acquire::cascade).
    pub fn cascade(self, cascade: bool) -> Self {
        self.with(|acquire| acquire.cascade(cascade))
    }

    /// Requests the tokens and the money that the call will use: see
    /// [`Acquire::consume_estimate`](crate::Acquire::consume_estimate).
    pub fn consume_estimate(self, estimate: &Estimate) -> Self {
        self.with(|acquire| acquire.consume_estimate(estimate))
    }

    /// Uses these limits instead of the stored ones: see [`Acquire::limits`](crate::Acquire::limits).
    pub fn limits(self, limits: impl IntoIterator<Item = Limit>) -> Self {
        self.with(|acquire| acquire.limits(limits))
    }

    /// The policy for outages, instead of the stored one.
    pub fn on_unavailable(self, policy: OnUnavailable) -> Self {
        self.with(|acquire| acquire.on_unavailable(policy))
    }

    /// Waits for tokens up to this time instead of being refused at once.
    pub fn wait_up_to(self, time: Duration) -> Self {
        self.with(|acquire| acquire.wait_up_to(time))
    }

    /// What is left of every limit, without taking anything and without a write.
    pub fn peek(self) -> Result<Availability> {
        self.background.do_work(self.acquire.peek())
    }

    /// Takes the tokens.
    pub fn lease(self) -> Result<Lease> {
        let lease = self.background.do_work(self.acquire.into_future())?;
        Ok(Lease {
            lease,
            background: self.background,
        })
    }

    /// Takes the tokens and keeps them: see [`Acquire::commit`](crate::Acquire::commit).
    pub fn commit(self) -> Result<()> {
        self.background.do_work(self.acquire.commit())
    }

    /// Runs the body with the lease: commits if it succeeds, gives everything back if it fails. What the body has made
    /// is returned even if its adjustments cannot be written: see [`Acquire::run`](crate::Acquire::run).
    pub fn run<T, E: From<Error>>(self, body: impl FnOnce(&mut Lease) -> Result<T, E>) -> Result<T, E> {
        let mut lease = self.lease()?;
        match body(&mut lease) {
            Ok(value) => match lease.commit() {
                Err(error @ Error::Invalid(Invalid::Argument { .. })) => Err(error.into()),
                _ => Ok(value),
            },
            Err(error) => {
                // What cannot be given back now goes on in the background; the body's error is the news.
                let _ = lease.rollback();
                Err(error)
            }
        }
    }
}

/// Tokens that a call has taken. Dropped without a [commit](Self::commit) it is rolled back whole in the background:
/// see [`Lease`](crate::Lease).
#[derive(Debug)]
#[must_use = "a lease that is dropped gives its tokens back"]
pub struct Lease {
    lease: crate::Lease,
    background: Arc<Background>,
}

impl Lease {
    /// Whether the lease is really counted.
    pub fn admission(&self) -> Admission {
        self.lease.admission()
    }

    /// True if permits of a limit on calls in flight have expired: see [`Lease::is_lost`](crate::Lease::is_lost).
    pub fn is_lost(&self) -> bool {
        self.lease.is_lost()
    }

    /// The entity this lease is charged to.
    pub fn entity(&self) -> &EntityId {
        self.lease.entity()
    }

    /// The resource this lease is for; the first one of several.
    pub fn resource(&self) -> &Resource {
        self.lease.resource()
    }

    /// All resources of the lease, in the order in which the call named them.
    pub fn resources(&self) -> impl Iterator<Item = &Resource> {
        self.lease.resources()
    }

    /// One resource of the lease, by name: see [`Lease::on`](crate::Lease::on).
    pub fn on(&mut self, resource: impl AsRef<str>) -> ResourceLease<'_> {
        ResourceLease {
            lease: self.lease.on(resource),
            background: &self.background,
        }
    }

    /// The resource whose limit an adjustment by name corrects: see
    /// [`Lease::resource_of`](crate::Lease::resource_of).
    pub fn resource_of(&self, limit: impl AsRef<str>) -> Result<&Resource> {
        self.lease.resource_of(limit)
    }

    /// The tokens that the entity itself has used, adjustments included: of the first resource.
    pub fn consumed(&self) -> BTreeMap<LimitName, i64> {
        self.lease.consumed()
    }

    /// What the entity itself has used of one resource: see [`Lease::consumed_on`](crate::Lease::consumed_on).
    pub fn consumed_on(&self, resource: impl AsRef<str>) -> Option<BTreeMap<LimitName, i64>> {
        self.lease.consumed_on(resource)
    }

    /// How every limit stood after the lease was taken, the entity's own first, then its parents'.
    pub fn statuses(&self) -> Vec<LimitStatus> {
        self.lease.statuses()
    }

    /// The limits that would have refused the call if they were enforced: see
    /// [`Lease::observed_limits`](crate::Lease::observed_limits).
    pub fn observed_limits(&self) -> Vec<LimitStatus> {
        self.lease.observed_limits()
    }

    /// Corrects what was used: see [`Lease::adjust`](crate::Lease::adjust).
    pub fn adjust(&mut self, limit: impl AsRef<str>, tokens: i64) -> &mut Self {
        self.lease.adjust(limit, tokens);
        self
    }

    /// Gives tokens back: the same as adjusting by less.
    pub fn release(&mut self, limit: impl AsRef<str>, tokens: u64) -> &mut Self {
        self.lease.release(limit, tokens);
        self
    }

    /// Takes more tokens, or fails if there are too few: a conditional write at every level.
    pub fn consume(&mut self, limit: impl AsRef<str>, tokens: u64) -> Result<()> {
        let limit = limit.as_ref();
        self.background.wait(self.lease.consume(limit, tokens))
    }

    /// Keeps the tokens and writes the adjustments: see [`Lease::commit`](crate::Lease::commit).
    pub fn commit(self) -> Result<()> {
        self.background.do_work(self.lease.commit())
    }

    /// Corrects tokens and money to what the call really used: see
    /// [`Lease::adjust_to_usage`](crate::Lease::adjust_to_usage).
    pub fn adjust_to_usage(&mut self, usage: &Usage) -> Result<&mut Self> {
        self.lease.adjust_to_usage(usage)?;
        Ok(self)
    }

    /// Corrects tokens and money to what the call really used, and commits: see
    /// [`Lease::commit_usage`](crate::Lease::commit_usage).
    pub fn commit_usage(self, usage: &Usage) -> Result<()> {
        let usage = *usage;
        self.background
            .do_work(async move { self.lease.commit_usage(&usage).await })
    }

    /// Gives everything back.
    pub fn rollback(self) -> Result<()> {
        self.background.do_work(self.lease.rollback())
    }
}

/// One resource of a lease: from [`Lease::on`].
#[derive(Debug)]
pub struct ResourceLease<'a> {
    lease: crate::ResourceLease<'a>,
    background: &'a Background,
}

impl ResourceLease<'_> {
    /// Corrects what was used of a limit of this resource: see [`Lease::adjust`](crate::Lease::adjust).
    pub fn adjust(&mut self, limit: impl AsRef<str>, tokens: i64) -> &mut Self {
        self.lease.adjust(limit, tokens);
        self
    }

    /// Gives tokens back: the same as adjusting by less.
    pub fn release(&mut self, limit: impl AsRef<str>, tokens: u64) -> &mut Self {
        self.lease.release(limit, tokens);
        self
    }

    /// Takes more tokens of a limit of this resource, or fails if there are too few.
    pub fn consume(&mut self, limit: impl AsRef<str>, tokens: u64) -> Result<()> {
        let limit = limit.as_ref();
        self.background.wait(self.lease.consume(limit, tokens))
    }
}

//! The leases that clients hold: found by id, ended once, and committed when they expire.

mod id;
mod registry;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::task::JoinSet;
use zae_limiter::money::Usage;
use zae_limiter::{Admission, Clock, Lease, LimitName, Resource, Tokens};

use crate::log_limit::LogLimit;
use crate::problem::{Problem, ProblemKind};
pub(crate) use id::LeaseId;
use registry::{End, LeaseRegistry, Missing};

/// Changes to what a lease has consumed.
#[derive(Debug, Default)]
pub(crate) struct Adjustments {
    /// What the call used in all, which the prices of the resource turn into tokens and money.
    pub(crate) usage: Option<Usage>,
    /// Tokens by limit, in addition to that, of whatever resource of the lease. Below zero gives back.
    pub(crate) tokens: BTreeMap<String, i64>,
    /// The same of one resource each.
    pub(crate) by_resource: Vec<(String, BTreeMap<String, i64>)>,
}

/// What a lease has consumed of one resource, in tokens.
#[derive(Debug)]
pub(crate) struct Consumed {
    pub(crate) resource: Resource,
    pub(crate) tokens: BTreeMap<LimitName, i64>,
}

impl Consumed {
    /// Of all resources of a lease, in the order of the call.
    pub(crate) fn all(lease: &Lease) -> Vec<Self> {
        let consumed = lease.resources().map(|resource| Self {
            resource: resource.clone(),
            tokens: lease.consumed_on(resource).unwrap_or_default(),
        });
        consumed.collect()
    }
}

/// The leases of one server.
#[derive(Debug)]
pub(crate) struct Leases {
    registry: Mutex<LeaseRegistry<HeldLease>>,
    clock: Arc<dyn Clock>,
    expired: AtomicU64,
}

#[derive(Debug)]
struct HeldLease {
    lease: Lease,
    /// The limits of each resource; any if the lease is not counted.
    limits: Option<BTreeSet<(Resource, LimitName)>>,
}

/// A slot for a lease. Dropped unused, it is free again.
#[derive(Debug)]
pub(crate) struct Reservation<'a> {
    leases: &'a Leases,
    used: bool,
}

impl Leases {
    pub(crate) fn new(most: usize, clock: Arc<dyn Clock>) -> Self {
        Self {
            registry: Mutex::new(LeaseRegistry::new(most)),
            clock,
            expired: AtomicU64::new(0),
        }
    }

    /// Keeps a slot for a lease that is about to be acquired.
    pub(crate) fn reserve(&self) -> Result<Reservation<'_>, Problem> {
        if self.lock().reserve() {
            let used = false;
            return Ok(Reservation { leases: self, used });
        }
        Err(Problem::new(
            ProblemKind::Overloaded,
            "too many leases are held; end leases that are no longer needed",
        ))
    }

    /// Adjusts a lease and returns what it has consumed since.
    pub(crate) fn adjust(&self, id: LeaseId, adjustments: &Adjustments) -> Result<Vec<Consumed>, Problem> {
        let now = self.clock.elapsed();
        let mut registry = self.lock();
        let held = registry.get_mut(id, now).map_err(missing)?;
        held.adjust(adjustments)?;
        Ok(Consumed::all(&held.lease))
    }

    /// Holds a lease for this time from now on.
    pub(crate) fn renew(&self, id: LeaseId, time: Duration) -> Result<(), Problem> {
        let now = self.clock.elapsed();
        self.lock().renew(id, now, now + time).map_err(missing)
    }

    /// Ends a lease that keeps its tokens. Invalid adjustments do not end it.
    pub(crate) fn end_committed(&self, id: LeaseId, adjustments: &Adjustments) -> Result<Lease, Problem> {
        let now = self.clock.elapsed();
        let mut registry = self.lock();
        registry.get_mut(id, now).map_err(missing)?.adjust(adjustments)?;
        let ended = registry.end(id, now, End::Committed).map_err(missing)?;
        Ok(ended.lease)
    }

    /// Ends a lease that gives its tokens back.
    pub(crate) fn end_rolled_back(&self, id: LeaseId) -> Result<Lease, Problem> {
        let ended = self.lock().end(id, self.clock.elapsed(), End::RolledBack);
        Ok(ended.map_err(missing)?.lease)
    }

    /// Commits the leases that have expired. Returns how many.
    pub(crate) async fn expire(&self) -> usize {
        let due = self.lock().end_expired(self.clock.elapsed());
        self.commit_expired(due).await
    }

    /// Commits all leases. Returns how many.
    pub(crate) async fn settle(&self) -> usize {
        let all = self.lock().end_all();
        self.commit_expired(all).await
    }

    /// How many leases are held.
    pub(crate) fn held(&self) -> usize {
        self.lock().len()
    }

    /// How many leases expired and were committed.
    pub(crate) fn expired(&self) -> u64 {
        self.expired.load(Ordering::Relaxed)
    }

    async fn commit_expired(&self, leases: Vec<HeldLease>) -> usize {
        let count = leases.len();
        self.expired
            .fetch_add(u64::try_from(count).unwrap_or(u64::MAX), Ordering::Relaxed);
        let mut commits = JoinSet::new();
        for HeldLease { lease, .. } in leases {
            let (entity, resource) = (lease.entity().clone(), lease.resource().clone());
            tracing::debug!(%entity, %resource, "a lease expired and is committed as taken");
            commits.spawn(async move {
                // What cannot be written now goes on in the background; shutting down reports the rest.
                static LOG: LogLimit = LogLimit::new();
                if let Err(error) = lease.commit().await
                    && let Some(suppressed) = LOG.permit()
                {
                    tracing::warn!(%entity, %resource, %error, suppressed, "an expired lease is not written yet");
                }
            });
        }
        commits.join_all().await;
        count
    }

    fn lock(&self) -> MutexGuard<'_, LeaseRegistry<HeldLease>> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HeldLease {
    /// Applies all adjustments or, if one is invalid, none.
    fn adjust(&mut self, adjustments: &Adjustments) -> Result<(), Problem> {
        let mut found = Vec::new();
        for (limit, tokens) in &adjustments.tokens {
            self.check_limit(limit, |_| true)?;
            found.push((self.lease.resource_of(limit)?.clone(), limit, *tokens));
        }
        for (resource, by_limit) in &adjustments.by_resource {
            let own = self.resource(resource)?.clone();
            for (limit, tokens) in by_limit {
                self.check_limit(limit, |resource| *resource == own)?;
                found.push((own.clone(), limit, *tokens));
            }
        }
        for (resource, limit, tokens) in &found {
            let consumed = self.lease.consumed_on(resource).unwrap_or_default();
            let before = consumed.get(limit.as_str()).copied().unwrap_or_default();
            let most = i64::try_from(Tokens::MAX).unwrap_or(i64::MAX);
            if tokens.saturating_abs() > most || before.saturating_add(*tokens) > most {
                let rule = format!("a lease consumes at most {most} tokens");
                return Err(Problem::invalid("adjust", tokens, &rule));
            }
        }
        if let Some(usage) = &adjustments.usage {
            self.lease.adjust_to_usage(usage)?;
        }
        for (resource, limit, tokens) in found {
            self.lease.on(resource).adjust(limit, tokens);
        }
        Ok(())
    }

    /// An error if the lease has no such limit on the resources that are meant.
    fn check_limit(&self, limit: &str, on: impl Fn(&Resource) -> bool) -> Result<(), Problem> {
        let Some(limits) = &self.limits else {
            return Ok(());
        };
        let mut known = limits.iter().filter(|(resource, _)| on(resource));
        if known.clone().any(|(_, name)| name.as_str() == limit) {
            return Ok(());
        }
        let first = known.next().map(|(resource, _)| resource);
        let several = known.clone().any(|(resource, _)| Some(resource) != first);
        let known = limits.iter().filter(|(resource, _)| on(resource));
        let names = known.map(|(resource, name)| {
            if several {
                format!("{resource}/{name}")
            } else {
                name.to_string()
            }
        });
        let names: Vec<_> = names.collect();
        let rule = format!("the lease has the limits {}", names.join(", "));
        Err(Problem::invalid("limit", limit, &rule))
    }

    /// The resource of this name.
    fn resource(&self, name: &str) -> Result<&Resource, Problem> {
        let found = self.lease.resources().find(|own| own.as_str() == name);
        found.ok_or_else(|| {
            let names: Vec<_> = self.lease.resources().map(Resource::as_str).collect();
            let rule = format!("the lease is on {}", names.join(", "));
            Problem::invalid("resource", name, &rule)
        })
    }
}

impl Reservation<'_> {
    /// Puts the lease into the slot.
    pub(crate) fn hold(mut self, id: LeaseId, lease: Lease, time: Duration) {
        self.used = true;
        let counted = matches!(
            lease.admission(),
            Admission::Counted | Admission::PartlyCounted | Admission::Observed
        );
        let names = || {
            let statuses = lease.statuses().into_iter();
            statuses
                .map(|status| (status.resource, status.limit.name().clone()))
                .collect()
        };
        let limits = counted.then(names);
        let expires = self.leases.clock.elapsed() + time;
        self.leases
            .lock()
            .insert(id, HeldLease { lease, limits }, expires);
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        if !self.used {
            self.leases.lock().cancel_reservation();
        }
    }
}

fn missing(missing: Missing) -> Problem {
    match missing {
        Missing::Unknown => Problem::new(
            ProblemKind::LeaseNotFound,
            "the id is wrong, the lease ended long ago, the server has restarted since, or another server granted it; \
             see docs/guide/replicas.md",
        ),
        Missing::Ended(end) => {
            let (name, detail) = match end {
                End::Committed => ("committed", "it was committed"),
                End::RolledBack => ("rolled_back", "it was deleted and gave its tokens back"),
                End::Expired => ("expired", "it expired and was committed as taken"),
            };
            Problem::new(ProblemKind::LeaseEnded, detail).with("ended", name)
        }
    }
}

//! One attempt to admit a call, within the time budget.

use std::future::Future;
use std::sync::Arc;

use zae_limiter_schema::Mode;
use zae_limiter_schema::bucket::BucketKey;

use super::admission::Admission;
use super::call::Call;
use super::cascade::{self, Grants};
use super::charge::{Charge, charges, check_enabled, of_chains};
use super::lease::Lease;
use super::part::Part;
use crate::bucket::Buckets;
use crate::error::{Conflict, Unavailable};
use crate::store::WriteQueue;
use crate::{Error, Result};

/// A call is decided again at most this often because a mode has changed.
const MAX_MODE_CHANGES: usize = 3;

impl Buckets {
    /// The result, or that there was none within the time budget; at once, while the circuit breaker is open.
    pub(super) async fn in_time<T>(
        &self,
        key: &BucketKey,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let shared = self.shared();
        let started = shared.clock.elapsed();
        let queue = shared.store.write_queue();
        // Before there is a timer: while the breaker is open nothing is waited for.
        shared.check_breaker().await?;
        let spent = shared.clock.elapsed().saturating_sub(started);
        let left = shared.settings.time_budget.saturating_sub(spent);
        let late = |_| {
            let denial = shared.store.denial();
            Err(denial.unwrap_or_else(|| shared.unavailable("no response within the time budget")))
        };
        let result = tokio::time::timeout(left, work).await.unwrap_or_else(late);
        let result = result.map_err(|error| self.overloaded(key, queue, error));
        if result.as_ref().is_err_and(Error::is_unavailable) {
            shared.suspect(started);
        }
        result
    }

    /// A call that had no response while others had: it waited for them and not for the table. That is no outage, and no policy
    /// lets the call pass.
    fn overloaded(&self, key: &BucketKey, before: Option<WriteQueue>, error: Error) -> Error {
        match (before, self.shared().store.write_queue(), &error) {
            (Some(before), Some(after), Error::Unavailable(Unavailable::NoResponse { .. }))
                if after.responses > before.responses =>
            {
                crate::bucket::overloaded(key, "writes to the file at a time", after.at_a_time)
            }
            _ => error,
        }
    }

    /// One try, within the time budget.
    pub(super) async fn acquire_now(self: &Arc<Self>, call: &Call) -> Result<Lease> {
        self.check_open()?;
        if let Some(lease) = self.spend_chunks(call) {
            return Ok(lease);
        }
        let (charges, grants) = self.in_time(call.key(), self.admit(&call.parts)).await?;
        if charges.iter().all(|charge| charge.mode() == Mode::Bypass) {
            return Ok(Lease::uncounted(self.clone(), call, Admission::Bypassed));
        }
        Ok(Lease::counted(
            self.clone(),
            call,
            charges.into_iter().zip(grants),
        ))
    }

    /// Takes what the parts of a call want from all buckets, or nothing, as far as their modes say. A bucket may report that a
    /// mode is another one by now.
    pub(super) async fn admit(&self, parts: &[Part]) -> Result<(Vec<Charge>, Grants)> {
        let mut changes = 0;
        loop {
            let charges = charges(self, parts).await?;
            check_enabled(&charges)?;
            match cascade::admit(&charges).await {
                Err(Error::Conflict(Conflict::ModeChanged { .. })) if changes < MAX_MODE_CHANGES => {
                    changes += 1;
                }
                grants => return Ok((charges, grants?)),
            }
        }
    }

    /// While the circuit breaker is open, tokens taken ahead are spent: they are paid for.
    fn spend_chunks(self: &Arc<Self>, call: &Call) -> Option<Lease> {
        let with_limits = call.parts.iter().any(|part| part.limits.is_some());
        if with_limits || self.shared().breaker_error().is_none() {
            return None;
        }
        let cache = &self.shared().cache;
        let chain = |part: &Part| cache.remembered_chain(&part.key, part.cascade);
        let chains = call.parts.iter().map(chain).collect::<Option<_>>()?;
        let charges = of_chains(self, &call.parts, chains).ok()?;
        let grant = |charge: &Charge| match (charge.mode(), &charge.amounts[..]) {
            // What no table is needed for is decided without it.
            (Mode::Disabled | Mode::Bypass, _) => None,
            (_, []) => Some(None),
            _ => charge
                .bucket
                .spend_chunk(&charge.amounts, &charge.config)
                .map(Some),
        };
        let grants = charges.iter().map(grant).collect::<Option<Grants>>()?;
        Some(Lease::counted(
            self.clone(),
            call,
            charges.into_iter().zip(grants),
        ))
    }
}

#[cfg(test)]
mod tests {
    //! Calls that wait for each other's writes.
    #![allow(clippy::unwrap_used, clippy::panic)]

    use std::collections::HashMap;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    use tokio::sync::Semaphore;
    use zae_limiter_schema::OnUnavailable;
    use zae_limiter_schema::bucket::{Attributes, BucketWrite};

    use super::*;
    use crate::acquire::{Acquire, Admission};
    use crate::bucket::BreakerState;
    use crate::bucket::test_buckets::buckets_with;
    use crate::store::{BoxFuture, ConfigSource, ItemsRead, ItemsWanted, Store, WriteOutcome, WriteSlot};

    const AT_A_TIME: usize = 4;

    /// A file: one write after the other, each of 50 ms. Or a file that another process has locked.
    #[derive(Debug)]
    struct SlowFile {
        buckets: Mutex<HashMap<BucketKey, Attributes>>,
        slots: Arc<Semaphore>,
        disk: tokio::sync::Mutex<()>,
        responses: AtomicU64,
        locked: bool,
    }

    impl SlowFile {
        fn new(locked: bool) -> Arc<Self> {
            Arc::new(Self {
                buckets: Mutex::default(),
                slots: Arc::new(Semaphore::new(AT_A_TIME)),
                disk: tokio::sync::Mutex::default(),
                responses: AtomicU64::new(0),
                locked,
            })
        }
    }

    impl ConfigSource for SlowFile {
        fn read_items<'a>(&'a self, _: &'a ItemsWanted) -> BoxFuture<'a, Result<ItemsRead>> {
            Box::pin(async { Ok(ItemsRead::default()) })
        }
    }

    impl Store for SlowFile {
        fn read_bucket<'a>(
            &'a self,
            key: &'a BucketKey,
            _: bool,
        ) -> BoxFuture<'a, Result<Option<Attributes>>> {
            Box::pin(async { Ok(self.buckets.lock().unwrap().get(key).cloned()) })
        }

        fn ready(&self) -> BoxFuture<'_, Result<WriteSlot, WriteOutcome>> {
            Box::pin(async { Ok(WriteSlot::new(self.slots.clone().acquire_owned().await.unwrap())) })
        }

        fn write_queue(&self) -> Option<WriteQueue> {
            Some(WriteQueue {
                at_a_time: AT_A_TIME,
                responses: self.responses.load(Ordering::Relaxed),
            })
        }

        fn write_bucket<'a>(&'a self, write: &'a BucketWrite) -> BoxFuture<'a, WriteOutcome> {
            Box::pin(async move {
                let _disk = self.disk.lock().await;
                tokio::time::sleep(Duration::from_millis(50)).await;
                if self.locked {
                    return WriteOutcome::Throttled("another process holds the file".to_owned());
                }
                self.responses.fetch_add(1, Ordering::Relaxed);
                let mut buckets = self.buckets.lock().unwrap();
                let before = buckets.get(&write.key).cloned();
                match before.clone().unwrap_or_default().apply(&write.statement()) {
                    Ok(after) => {
                        buckets.insert(write.key.clone(), after.clone());
                        WriteOutcome::Done(after)
                    }
                    Err(_) => WriteOutcome::Refused(before),
                }
            })
        }

        fn ping(&self) -> BoxFuture<'_, Result<()>> {
            Box::pin(async { Ok(()) })
        }
    }

    /// The results of one call each of 200 users at the same time.
    async fn crowd(buckets: &Arc<Buckets>) -> Vec<Result<Lease>> {
        let calls = (0..200).map(|user| {
            let call = Acquire::new(buckets.clone(), format!("user-{user}"), "gpt-4");
            tokio::spawn(call.consume("rpm", 1).into_future())
        });
        let calls: Vec<_> = calls.collect();
        let mut results = vec![];
        for call in calls {
            results.push(call.await.unwrap());
        }
        results
    }

    #[tokio::test(start_paused = true)]
    async fn calls_that_wait_for_each_other_are_overload_and_no_outage() {
        let file = SlowFile::new(false);
        let buckets = buckets_with(&file, OnUnavailable::Allow);
        let (mut counted, mut overloaded) = (0_u64, 0_u64);
        for result in crowd(&buckets).await {
            match result {
                Ok(lease) => {
                    assert_eq!(lease.admission(), Admission::Counted);
                    lease.commit().await.unwrap();
                    counted += 1;
                }
                Err(Error::Overloaded { what, limit, .. }) => {
                    assert_eq!((what, limit), ("writes to the file at a time", AT_A_TIME));
                    overloaded += 1;
                }
                Err(error) => panic!("{error}"),
            }
        }
        assert!(counted > 0 && overloaded > 0, "{counted} and {overloaded}");
        assert_eq!(buckets.stats().breaker, BreakerState::Closed);
        tokio::time::sleep(Duration::from_secs(60)).await;
        let writes = file.responses.load(Ordering::Relaxed);
        // Those that were at work when their callers left are written, and given back.
        assert!(
            writes <= counted + 2 * AT_A_TIME as u64,
            "{writes} writes for {counted} calls"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_file_that_another_process_holds_is_an_outage() {
        let buckets = buckets_with(&SlowFile::new(true), OnUnavailable::Allow);
        for result in crowd(&buckets).await {
            assert_eq!(result.unwrap().admission(), Admission::AllowedWhileUnavailable);
        }
    }
}

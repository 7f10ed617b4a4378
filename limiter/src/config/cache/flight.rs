//! One read in flight per part: callers that need the part meanwhile wait for it and share its result.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use tokio::sync::Notify;
use zae_limiter_schema::bucket::BucketKey;

use super::ConfigCache;
use super::part::{Part, PartsRead};

/// What a read promises. Reads that promise different things are not shared.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Reading {
    /// It may be behind.
    Eventual,
    /// It sees what was written before.
    Consistent,
    /// The same, with all parts and this bucket in one call.
    Together(BucketKey),
}

impl Reading {
    pub(super) fn is_consistent(&self) -> bool {
        *self != Self::Eventual
    }
}

/// A part that is needed.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    pub(super) part: Part,
    /// An older value of it is known.
    pub(super) optional: bool,
}

type Flight = Arc<Landing>;

/// The end of a read. Those who wait for it wake in order, so that a simulation can be repeated.
#[derive(Debug, Default)]
struct Landing {
    read: OnceLock<Arc<PartsRead>>,
    over: AtomicBool,
    ended: Notify,
}

impl Landing {
    /// What was read; nothing if the one who read it was canceled.
    async fn landed(&self) -> Option<Arc<PartsRead>> {
        loop {
            let ended = self.ended.notified();
            if self.over.load(Ordering::Acquire) {
                return self.read.get().cloned();
            }
            ended.await;
        }
    }
}

/// Reads that are under way.
#[derive(Debug, Default)]
pub(super) struct Flights(HashMap<(Part, Reading), Flight>);

impl Flights {
    /// Lets later callers start another read. Those that wait already keep waiting for the one they joined.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Parts that one caller reads for all. Takes them off the list when the read is over, also by cancellation.
struct Claim<'a> {
    cache: &'a ConfigCache,
    reading: &'a Reading,
    wanted: Vec<Wanted>,
    flight: Flight,
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        let mut state = self.cache.state();
        let flights = &mut state.flights.0;
        for wanted in &self.wanted {
            let id = (wanted.part.clone(), self.reading.clone());
            if flights
                .get(&id)
                .is_some_and(|flight| Arc::ptr_eq(flight, &self.flight))
            {
                flights.remove(&id);
            }
        }
        drop(state);
        self.flight.over.store(true, Ordering::Release);
        self.flight.ended.notify_waiters();
    }
}

impl ConfigCache {
    /// Reads these parts, or waits for those who read them already. If one of them is canceled, another takes over.
    pub(super) async fn read_shared(&self, wanted: Vec<Wanted>, reading: &Reading) -> PartsRead {
        let mut read = PartsRead::default();
        let mut left = wanted;
        while !left.is_empty() {
            let (claim, joined) = self.claim_or_join(left, reading);
            if !claim.wanted.is_empty() {
                let own = Arc::new(self.read_and_keep(&claim.wanted, reading).await);
                // Nobody else sets it.
                let _ = claim.flight.read.set(own.clone());
                for wanted in &claim.wanted {
                    read.copy(&own, &wanted.part);
                }
            }
            drop(claim);
            left = Vec::new();
            for (wanted, flight) in joined {
                match flight.landed().await {
                    Some(others) => read.copy(&others, &wanted.part),
                    None => left.push(wanted),
                }
            }
        }
        read
    }

    fn claim_or_join<'a>(
        &'a self,
        wanted: Vec<Wanted>,
        reading: &'a Reading,
    ) -> (Claim<'a>, Vec<(Wanted, Flight)>) {
        let mut claim = Claim {
            cache: self,
            reading,
            wanted: Vec::new(),
            flight: Flight::default(),
        };
        let mut joined = Vec::new();
        let mut state = self.state();
        for wanted in wanted {
            let id = (wanted.part.clone(), reading.clone());
            if let Some(flight) = state.flights.0.get(&id) {
                joined.push((wanted, flight.clone()));
            } else {
                state.flights.0.insert(id, claim.flight.clone());
                claim.wanted.push(wanted);
            }
        }
        drop(state);
        (claim, joined)
    }
}

//! The calls that wait for tokens of one bucket, in order of arrival.
//!
//! The first waiter sleeps until its tokens are due and then asks for them. When it asks, it wakes the next waiters that
//! fit as well, in order, so that the bucket's queue combines them into one write. Another waiter becomes the first when
//! all of them have left or stepped back.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;
use zae_limiter_schema::bucket::{Batch, Demand};

use super::amounts::Amounts;

/// At most this many calls wait for tokens of one bucket.
pub(crate) const MAX_WAITING: usize = 10_000;
/// At most this many are woken at a time: as many as one write combines.
const MAX_WOKEN: usize = 1_000;

/// The wait queue of one bucket.
#[derive(Debug, Default)]
pub(crate) struct WaitQueue {
    places: Mutex<Places>,
}

#[derive(Debug, Default)]
struct Places {
    /// By arrival at the limiter.
    by_arrival: BTreeMap<u64, Place>,
    /// How many may ask now.
    woken: usize,
}

#[derive(Debug)]
struct Place {
    amounts: Amounts,
    /// Until it is woken.
    wakeup: Option<oneshot::Sender<Wakeup>>,
}

/// Why a waiter may ask now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wakeup {
    /// It is the first.
    First,
    /// It fits beside the first, which is about to ask.
    Combined,
}

/// A place in the queue. Dropped, it is left.
#[derive(Debug)]
pub(crate) struct Turn {
    queue: Arc<WaitQueue>,
    arrival: u64,
    /// Until it is woken.
    waits: Option<oneshot::Receiver<Wakeup>>,
}

impl WaitQueue {
    fn places(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.places().by_arrival.is_empty()
    }

    /// Takes the place of this arrival: a call that waited elsewhere first keeps its place in line. Nothing if the queue is
    /// full.
    pub(crate) fn join(self: &Arc<Self>, arrival: u64, amounts: &Amounts) -> Option<Turn> {
        let mut places = self.places();
        if places.by_arrival.len() >= MAX_WAITING {
            return None;
        }
        let (wakeup, waits) = oneshot::channel();
        let place = Place {
            amounts: amounts.clone(),
            wakeup: Some(wakeup),
        };
        places.by_arrival.insert(arrival, place);
        places.wake_first();
        Some(Turn {
            queue: self.clone(),
            arrival,
            waits: Some(waits),
        })
    }
}

impl Places {
    /// Wakes the first, unless somebody is awake already.
    fn wake_first(&mut self) {
        if self.woken > 0 {
            return;
        }
        if let Some(place) = self.by_arrival.values_mut().next() {
            self.woken += usize::from(place.wake(Wakeup::First));
        }
    }
}

impl Place {
    /// True if it was not awake before.
    fn wake(&mut self, why: Wakeup) -> bool {
        let Some(wakeup) = self.wakeup.take() else {
            return false;
        };
        // One that is gone leaves its place by being dropped.
        let _ = wakeup.send(why);
        true
    }
}

impl Turn {
    /// Waits until it is woken; returns at once if it is awake.
    pub(crate) async fn woken(&mut self) -> Wakeup {
        match &mut self.waits {
            Some(waits) => {
                let wakeup = waits.await;
                self.waits = None;
                wakeup.unwrap_or(Wakeup::First)
            }
            None => Wakeup::First,
        }
    }

    /// True if it has not been woken, or has stepped back.
    pub(crate) fn is_waiting(&self) -> bool {
        self.waits.is_some()
    }

    /// Wakes the next waiters, in order, as long as all of them fit together. Only the first may: those behind another have
    /// to wait for it.
    pub(crate) fn wake_next(&self, fits: impl Fn(&Batch) -> bool) {
        let mut places = self.queue.places();
        if places.by_arrival.keys().next() != Some(&self.arrival) {
            return;
        }
        let mut batch = Batch::default();
        let mut woken = 0;
        for (arrival, place) in places.by_arrival.iter_mut().take(MAX_WOKEN) {
            add(&mut batch, &place.amounts);
            if *arrival == self.arrival {
                continue;
            }
            if !fits(&batch) {
                break;
            }
            woken += usize::from(place.wake(Wakeup::Combined));
        }
        places.woken += woken;
    }

    /// After a refusal, or before asking: waits to be woken again unless it is the first.
    pub(crate) fn step_back_unless_first(&mut self) {
        let mut places = self.queue.places();
        if self.waits.is_some() || places.by_arrival.keys().next() == Some(&self.arrival) {
            return;
        }
        if let Some(place) = places.by_arrival.get_mut(&self.arrival) {
            let (wakeup, waits) = oneshot::channel();
            place.wakeup = Some(wakeup);
            self.waits = Some(waits);
            places.woken -= 1;
            places.wake_first();
        }
    }

    /// True if another call is ahead.
    pub(crate) fn is_behind(&self) -> bool {
        self.queue
            .places()
            .by_arrival
            .range(..self.arrival)
            .next()
            .is_some()
    }

    /// What those ahead want.
    pub(crate) fn ahead(&self) -> Batch {
        let mut batch = Batch::default();
        for (_, place) in self.queue.places().by_arrival.range(..self.arrival) {
            add(&mut batch, &place.amounts);
        }
        batch
    }
}

fn add(batch: &mut Batch, amounts: &Amounts) {
    for (limit, amount) in amounts {
        batch.add(limit, Demand::debit(*amount));
    }
    batch.acquires += 1;
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut places = self.queue.places();
        if let Some(place) = places.by_arrival.remove(&self.arrival) {
            places.woken -= usize::from(place.wakeup.is_none());
            places.wake_first();
        }
    }
}

#[cfg(test)]
mod interleavings;
#[cfg(test)]
mod tests;

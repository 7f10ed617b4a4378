//! Those who wait for tokens of one bucket, in order of arrival.
//!
//! One call at a time has its turn: it sleeps until its tokens are due and then asks for them. When it asks, calls behind
//! it that fit as well are called along, in order, so that the bucket's queue combines them into one write. The next turn
//! begins when all of them have left or stepped back.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;
use zae_limiter_schema::bucket::{Batch, Demand};

use super::request::Deltas;

/// At most this many calls wait for tokens of one bucket.
pub(crate) const MAX_WAITING: usize = 10_000;
/// At most this many are called along at a time: as many as one write combines.
const MAX_CALLED_ALONG: usize = 999;

/// The wait queue of one bucket.
#[derive(Debug, Default)]
pub(crate) struct WaitQueue {
    places: Mutex<Places>,
}

#[derive(Debug, Default)]
struct Places {
    /// By arrival at the limiter.
    by_arrival: BTreeMap<u64, Place>,
    /// Those who may ask now.
    called: usize,
}

#[derive(Debug)]
struct Place {
    amounts: Deltas,
    /// Until it is called.
    call: Option<oneshot::Sender<Call>>,
}

/// Why a call may ask now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    /// It has its turn.
    Turn,
    /// It fits beside the one whose turn it is.
    Along,
}

/// A place in the queue. Dropped, it is left.
#[derive(Debug)]
pub(crate) struct Turn {
    line: Arc<WaitQueue>,
    arrival: u64,
    /// Until it is called.
    waits: Option<oneshot::Receiver<Call>>,
}

impl WaitQueue {
    fn places(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.places().by_arrival.is_empty()
    }

    /// Takes the place that the arrival gives a right to: one that waited elsewhere first does not lose by it. Nothing if
    /// the queue is full.
    pub(crate) fn join(self: &Arc<Self>, arrival: u64, amounts: &Deltas) -> Option<Turn> {
        let mut places = self.places();
        if places.by_arrival.len() >= MAX_WAITING {
            return None;
        }
        let (call, waits) = oneshot::channel();
        let place = Place {
            amounts: amounts.clone(),
            call: Some(call),
        };
        places.by_arrival.insert(arrival, place);
        places.begin_turn();
        Some(Turn {
            line: self.clone(),
            arrival,
            waits: Some(waits),
        })
    }
}

impl Places {
    /// Calls the first, unless somebody is called already.
    fn begin_turn(&mut self) {
        if self.called > 0 {
            return;
        }
        if let Some(place) = self.by_arrival.values_mut().next() {
            self.called += usize::from(place.call(Call::Turn));
        }
    }
}

impl Place {
    /// True if it was not called before.
    fn call(&mut self, why: Call) -> bool {
        let Some(call) = self.call.take() else {
            return false;
        };
        // One that is gone leaves its place by being dropped.
        let _ = call.send(why);
        true
    }
}

impl Turn {
    /// Waits until it is called; at once, if it is.
    pub(crate) async fn comes(&mut self) -> Call {
        match &mut self.waits {
            Some(waits) => {
                let call = waits.await;
                self.waits = None;
                call.unwrap_or(Call::Turn)
            }
            None => Call::Turn,
        }
    }

    /// True if it has not been called, or has stepped back.
    pub(crate) fn is_waiting(&self) -> bool {
        self.waits.is_some()
    }

    /// Calls those behind along, in order, as long as all of them fit together. Only the first may: those behind another
    /// have to wait for it.
    pub(crate) fn call_along(&self, fits: impl Fn(&Batch) -> bool) {
        let mut places = self.line.places();
        if places.by_arrival.keys().next() != Some(&self.arrival) {
            return;
        }
        let mut batch = Batch::default();
        let mut called = 0;
        for (arrival, place) in places.by_arrival.iter_mut().take(MAX_CALLED_ALONG) {
            add(&mut batch, &place.amounts);
            if *arrival == self.arrival {
                continue;
            }
            if !fits(&batch) {
                break;
            }
            called += usize::from(place.call(Call::Along));
        }
        places.called += called;
    }

    /// After a refusal, or before asking: waits to be called again unless it is the first.
    pub(crate) fn step_back_unless_first(&mut self) {
        let mut places = self.line.places();
        if self.waits.is_some() || places.by_arrival.keys().next() == Some(&self.arrival) {
            return;
        }
        if let Some(place) = places.by_arrival.get_mut(&self.arrival) {
            let (call, waits) = oneshot::channel();
            place.call = Some(call);
            self.waits = Some(waits);
            places.called -= 1;
            places.begin_turn();
        }
    }

    /// What those ahead want.
    pub(crate) fn ahead(&self) -> Batch {
        let mut batch = Batch::default();
        for place in self
            .line
            .places()
            .by_arrival
            .range(..self.arrival)
            .map(|(_, place)| place)
        {
            add(&mut batch, &place.amounts);
        }
        batch
    }
}

fn add(batch: &mut Batch, amounts: &Deltas) {
    for (limit, amount) in amounts {
        let demand = Demand {
            debit: *amount,
            ..Demand::default()
        };
        batch.add(limit, demand);
    }
    batch.acquires += 1;
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut places = self.line.places();
        if let Some(place) = places.by_arrival.remove(&self.arrival) {
            places.called -= usize::from(place.call.is_none());
            places.begin_turn();
        }
    }
}

#[cfg(test)]
mod interleavings;
#[cfg(test)]
mod tests;

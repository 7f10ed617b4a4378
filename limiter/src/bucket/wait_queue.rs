//! Those who wait for tokens of one bucket, in order of arrival.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;
use zae_limiter_schema::bucket::{Batch, Demand};

use super::request::Deltas;
use crate::{Error, Result};

/// The line at one bucket. The first in it may ask for tokens, the others wait for their turn.
#[derive(Debug, Default)]
pub(crate) struct WaitQueue {
    places: Mutex<VecDeque<Place>>,
}

#[derive(Debug)]
struct Place {
    /// When it came to the limiter, among all who wait.
    arrival: u64,
    amounts: Deltas,
    /// Until it is called.
    call: Option<oneshot::Sender<Result<()>>>,
}

/// A place in line. Dropped, it is left, and the next one is called.
#[derive(Debug)]
pub(crate) struct Turn {
    line: Arc<WaitQueue>,
    arrival: u64,
    called: Option<oneshot::Receiver<Result<()>>>,
}

impl WaitQueue {
    fn places(&self) -> MutexGuard<'_, VecDeque<Place>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.places().is_empty()
    }

    /// Takes the place that the arrival gives a right to: one that stood in line elsewhere first does not lose by it.
    /// Only the first, whose turn it is, stays where he is.
    pub(crate) fn join(self: &Arc<Self>, arrival: u64, amounts: &Deltas) -> Turn {
        let (call, called) = oneshot::channel();
        let place = Place {
            arrival,
            amounts: amounts.clone(),
            call: Some(call),
        };
        let mut places = self.places();
        let ahead = |other: &Place| other.call.is_none() || other.arrival < arrival;
        let index = places.partition_point(ahead);
        places.insert(index, place);
        call_first(&mut places);
        Turn {
            line: self.clone(),
            arrival,
            called: Some(called),
        }
    }
}

fn call_first(places: &mut VecDeque<Place>) {
    if let Some(call) = places.front_mut().and_then(|first| first.call.take()) {
        // One that is gone leaves its place by being dropped.
        drop(call.send(Ok(())));
    }
}

impl Turn {
    /// Waits for the turn, or for the error that everybody in line is sent away with.
    pub(crate) async fn comes(&mut self) -> Result<()> {
        match &mut self.called {
            Some(called) => {
                let result = called.await;
                self.called = None;
                result.unwrap_or(Ok(()))
            }
            None => Ok(()),
        }
    }

    /// What those ahead want.
    pub(crate) fn ahead(&self) -> Batch {
        let mut batch = Batch::default();
        let places = self.line.places();
        for place in places.iter().take_while(|place| place.arrival != self.arrival) {
            for (limit, amount) in &place.amounts {
                let demand = Demand {
                    debit: *amount,
                    ..Demand::default()
                };
                batch.add(limit, demand);
            }
        }
        batch
    }

    /// Sends everybody else in line away: what the first was told is true for all.
    pub(crate) fn send_away(&self, error: &Error) {
        self.line.places().retain_mut(|place| match place.call.take() {
            Some(call) => {
                drop(call.send(Err(error.clone())));
                false
            }
            None => true,
        });
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut places = self.line.places();
        places.retain(|place| place.arrival != self.arrival);
        call_first(&mut places);
    }
}

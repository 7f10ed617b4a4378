//! One load in flight per key: whoever asks meanwhile waits for it and shares its result.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::OnceCell;

use super::{BucketKey, ConfigCache, Lookup};
use crate::Result;

type Flight = Arc<OnceCell<Result<Lookup>>>;

/// Loads that are under way. Consistent ones are apart: they promise more.
#[derive(Debug, Default)]
pub(super) struct Flights(HashMap<(BucketKey, bool), Flight>);

impl Flights {
    /// Lets later callers start anew. Those who wait already keep waiting for what they joined.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    fn leave(&mut self, id: &(BucketKey, bool), flight: &Flight) {
        if self.0.get(id).is_some_and(|present| Arc::ptr_eq(present, flight)) {
            self.0.remove(id);
        }
    }
}

/// Takes a flight off the list when its last passenger leaves, also by cancellation.
struct Passenger<'a> {
    cache: &'a ConfigCache,
    id: (BucketKey, bool),
    flight: Flight,
}

impl Drop for Passenger<'_> {
    fn drop(&mut self) {
        let mut state = self.cache.state();
        // The list's own reference, and ours.
        if Arc::strong_count(&self.flight) <= 2 {
            state.flights.leave(&self.id, &self.flight);
        }
    }
}

impl ConfigCache {
    /// Joins the load of this key that is in flight, or starts it. If the one who started it is cancelled, the next
    /// one in line takes over.
    pub(super) async fn join_load(&self, key: BucketKey, consistent: bool) -> Result<Lookup> {
        let id = (key, consistent);
        let flight = self.state().flights.0.entry(id.clone()).or_default().clone();
        let passenger = Passenger {
            cache: self,
            id,
            flight,
        };
        passenger
            .flight
            .get_or_init(|| async {
                let result = self.load_and_keep(&passenger.id.0, consistent).await;
                self.state().flights.leave(&passenger.id, &passenger.flight);
                result
            })
            .await
            .clone()
    }
}

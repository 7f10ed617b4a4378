//! Folding a queue that nobody uses into a few bytes, and back.

use std::sync::Arc;

use zae_limiter_schema::bucket::BucketKey;

use super::super::bounded_map::Unused;
use super::super::chunk::Chunks;
use super::super::shared::Shared;
use super::super::state::IdleBucket;
use super::BucketQueue;

impl BucketQueue {
    /// The queue of a bucket that was folded.
    pub(crate) fn unfolded(shared: Arc<Shared>, key: BucketKey, idle: &IdleBucket) -> Self {
        let client = shared.client;
        let queue = Self::new(shared, key, client);
        queue.with_state(|state| state.unfold(idle));
        queue
    }

    /// What may become of it while nobody holds it. Its pace is not kept where it has none, nor how busy a bucket was that
    /// could have tokens in hand and has not.
    pub(crate) fn folded(&self) -> Unused<IdleBucket> {
        if !self.is_idle() {
            return Unused::Busy;
        }
        let locked = self.lock();
        let settled = locked.chunks.as_ref().is_none_or(Chunks::is_settled);
        if locked.booked || !settled || !locked.pace.is_free() {
            return Unused::Unfoldable;
        }
        if locked.state.is_blank() {
            return Unused::Blank;
        }
        let folded = locked.state.folded(self.shared.client);
        folded.map_or(Unused::Unfoldable, Unused::Folded)
    }
}

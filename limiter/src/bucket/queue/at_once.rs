//! Deciding a call from memory: no task, no write, nothing queued.

use std::sync::Arc;
use std::time::Duration;

use zae_limiter_schema::Timestamp;
use zae_limiter_schema::bucket::BucketConfig;

use super::super::grant::Grant;
use super::super::request::Deltas;
use super::BucketQueue;
use crate::status::LimitStatus;

/// What memory says about a call.
#[derive(Debug)]
pub(crate) enum AtOnce {
    /// Tokens in hand cover it.
    Granted(Grant),
    /// There was too little a moment ago.
    Refused(Vec<LimitStatus>),
}

impl BucketQueue {
    /// The answer, if memory has it. Every limit that is asked for must be in the configuration.
    pub(crate) fn at_once(
        self: &Arc<Self>,
        amounts: &Deltas,
        config: &Arc<BucketConfig>,
        now: Timestamp,
        elapsed: Duration,
    ) -> Option<AtOnce> {
        let locked = self.lock();
        let Some(chunks) = &locked.chunks else {
            // Whoever works on the bucket may be about to give something back.
            let is_quiet = !locked.has_worker;
            let refused = is_quiet.then(|| locked.state.refuse_at_once(amounts, config, now, elapsed));
            return refused.flatten().map(AtOnce::Refused);
        };
        let image = locked.state.image().map(AsRef::as_ref);
        if !chunks.covers(amounts, config, image) {
            return None;
        }
        self.spend_locked(locked, amounts, config, elapsed)
            .map(AtOnce::Granted)
    }
}

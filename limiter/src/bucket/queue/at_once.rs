//! Deciding a call from memory: no task, no write, nothing queued.

use std::sync::Arc;
use std::time::Duration;

use zae_limiter_schema::bucket::BucketConfig;

use super::super::deltas::Deltas;
use super::super::grant::Grant;
use super::BucketQueue;
use crate::status::Refusal;

/// What memory says about a call.
#[derive(Debug)]
pub(crate) enum AtOnce {
    /// Tokens in hand cover it.
    Granted(Grant),
    /// There was too little a moment ago.
    Refused(Arc<Refusal>),
}

impl BucketQueue {
    /// The answer, if memory has it. Every limit that is asked for must be in the configuration. A grant takes the amounts with
    /// it.
    pub(crate) fn at_once(
        self: Arc<Self>,
        amounts: &mut Deltas,
        config: &Arc<BucketConfig>,
        elapsed: Duration,
    ) -> Option<AtOnce> {
        if self.takes_chunks {
            let image = self.spend(amounts, config, elapsed)?;
            let grant = Grant::new(self, config.clone(), std::mem::take(amounts), image);
            return Some(AtOnce::Granted(grant));
        }
        let now = self.shared.now();
        let mut locked = self.lock();
        if locked.has_worker {
            // Whoever works on the bucket may be about to give something back.
            return None;
        }
        let refused = locked.state.refuse_at_once(amounts, config, now, elapsed);
        refused.map(AtOnce::Refused)
    }
}

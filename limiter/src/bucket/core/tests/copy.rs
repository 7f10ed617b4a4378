//! A copy of a running process: it knows what the process knew, and has its tag.

use super::super::{Core, CoreSettings};

impl Core {
    /// The same knowledge, and nothing to do. What is taken ahead is not copied.
    pub(in crate::bucket) fn copy(&self) -> Self {
        let settings = CoreSettings {
            client: self.client,
            refusal_cache_ttl: self.refusal_cache_ttl,
            patience: self.patience,
            takes_chunks: false,
            config_ttl: self.config_ttl,
        };
        Self {
            known: self.known.clone(),
            config: self.config.clone(),
            ownership: self.ownership,
            last_sequence: self.last_sequence,
            sent: self.sent.clone(),
            unconfirmed: self.unconfirmed.clone(),
            unconfirmed_overflowed: self.unconfirmed_overflowed,
            next_request: self.next_request,
            search_stopped: self.search_stopped,
            contention: self.contention.clone(),
            check_expiry: self.check_expiry,
            refill_set_back_at: self.refill_set_back_at,
            ..Self::new(self.key.clone(), settings, self.closing)
        }
    }
}

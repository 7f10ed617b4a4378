//! What a process has used beyond what it acquired and has not written yet, because the table was unavailable. It is owed: the process
//! refuses calls because of it before any other can see it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use zae_limiter_schema::LimitName;
use zae_limiter_schema::bucket::{BucketKey, BucketWrite};

/// Adjustments of one process, in millitokens.
#[derive(Debug, Default)]
pub(super) struct Unwritten {
    by_limit: BTreeMap<(BucketKey, LimitName), i128>,
}

pub(super) type SharedUnwritten = Arc<Mutex<Unwritten>>;

impl Unwritten {
    /// A caller has used more of the limit.
    pub(super) fn adjusted(&mut self, key: &BucketKey, limit: &LimitName, more: i128) {
        *self.by_limit.entry((key.clone(), limit.clone())).or_default() += more;
    }

    /// A write of the process was applied.
    pub(super) fn applied(&mut self, write: &BucketWrite) {
        for (limit, demand) in &write.batch.demands {
            let owed = self.by_limit.get_mut(&(write.key.clone(), limit.clone()));
            if let Some(owed) = owed {
                *owed = (*owed - demand.adjust).max(0);
            }
        }
    }

    /// What is owed now.
    pub(super) fn of(&self, key: &BucketKey, limit: &LimitName) -> i128 {
        let owed = self.by_limit.get(&(key.clone(), limit.clone()));
        owed.copied().unwrap_or(0)
    }
}

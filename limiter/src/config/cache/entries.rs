//! A bounded map that forgets what has not been asked for since its last turn (second chance).

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::BucketKey;
use crate::config::resolution::Resolved;

#[derive(Debug)]
struct Entry {
    resolved: Arc<Resolved>,
    expires: Duration,
    asked: bool,
}

/// At most `most` entries. Expired ones stay until their room is needed: they still tell the last known policy.
#[derive(Debug)]
pub(super) struct Entries {
    most: usize,
    map: HashMap<BucketKey, Entry>,
    /// Every key of the map once, in the order of their turns.
    turns: VecDeque<BucketKey>,
    evictions: u64,
}

impl Entries {
    pub(super) fn bounded(most: usize) -> Self {
        Self {
            most: most.max(1),
            map: HashMap::new(),
            turns: VecDeque::new(),
            evictions: 0,
        }
    }

    pub(super) fn fresh(&mut self, key: &BucketKey, now: Duration) -> Option<Arc<Resolved>> {
        let entry = self.map.get_mut(key).filter(|entry| now < entry.expires)?;
        entry.asked = true;
        Some(entry.resolved.clone())
    }

    pub(super) fn any_age(&self, key: &BucketKey) -> Option<Arc<Resolved>> {
        self.map.get(key).map(|entry| entry.resolved.clone())
    }

    pub(super) fn insert(&mut self, key: BucketKey, resolved: Arc<Resolved>, expires: Duration) {
        let entry = Entry {
            resolved,
            expires,
            asked: false,
        };
        if let Some(present) = self.map.get_mut(&key) {
            *present = entry;
            return;
        }
        while self.map.len() >= self.most {
            self.evict_one();
        }
        self.turns.push_back(key.clone());
        self.map.insert(key, entry);
    }

    fn evict_one(&mut self) {
        while let Some(key) = self.turns.pop_front() {
            match self.map.get_mut(&key) {
                Some(entry) if entry.asked => {
                    entry.asked = false;
                    self.turns.push_back(key);
                }
                _ => {
                    self.map.remove(&key);
                    self.evictions += 1;
                    return;
                }
            }
        }
    }

    pub(super) fn remove(&mut self, concerned: impl Fn(&BucketKey) -> bool) {
        self.map.retain(|key, _| !concerned(key));
        self.turns.retain(|key| !concerned(key));
    }

    pub(super) fn len(&self) -> usize {
        self.map.len()
    }

    pub(super) fn evictions(&self) -> u64 {
        self.evictions
    }
}

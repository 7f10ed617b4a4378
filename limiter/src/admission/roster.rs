//! What is kept for each bucket, the latest used first to stay.

use std::collections::BTreeMap;
use std::sync::Arc;

use zae_limiter_schema::bucket::BucketKey;

/// How many are kept.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    /// Idle ones beyond this number are forgotten.
    pub(super) idle: usize,
    /// There are never more than this, idle or not.
    pub(super) most: usize,
}

/// Things by bucket. Those that were not used for longest are forgotten, as far as they are idle.
#[derive(Debug)]
pub(super) struct Roster<T> {
    by_bucket: BTreeMap<BucketKey, Entry<T>>,
    room: Room,
    /// The next time to look for idle ones is when there are so many: looking takes long.
    look_at: usize,
    uses: u64,
}

#[derive(Debug)]
struct Entry<T> {
    item: Arc<T>,
    used: u64,
}

impl<T> Roster<T> {
    pub(super) fn new(room: Room) -> Self {
        Self {
            by_bucket: BTreeMap::new(),
            room,
            look_at: room.idle,
            uses: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.by_bucket.len()
    }

    pub(super) fn all(&self) -> Vec<Arc<T>> {
        self.by_bucket.values().map(|entry| entry.item.clone()).collect()
    }

    /// What is kept for a bucket, which is used now.
    pub(super) fn get(&mut self, key: &BucketKey) -> Option<Arc<T>> {
        self.uses += 1;
        let entry = self.by_bucket.get_mut(key)?;
        entry.used = self.uses;
        Some(entry.item.clone())
    }

    /// Keeps one more, if there is room for it; forgets idle ones that nobody else holds.
    pub(super) fn add(&mut self, key: BucketKey, item: Arc<T>, is_idle: impl Fn(&T) -> bool) -> bool {
        if self.len() >= self.look_at || self.len() >= self.room.most {
            self.forget(is_idle);
            self.look_at = self.room.idle.max(self.len() + self.step());
        }
        if self.len() >= self.room.most {
            return false;
        }
        self.uses += 1;
        let used = self.uses;
        self.by_bucket.insert(key, Entry { item, used });
        true
    }

    /// A tenth at a time, so that it is rarely done.
    fn step(&self) -> usize {
        (self.room.idle / 10).max(1)
    }

    fn forget(&mut self, is_idle: impl Fn(&T) -> bool) {
        let idle = self
            .by_bucket
            .iter()
            .filter(|(_, entry)| Arc::strong_count(&entry.item) == 1 && is_idle(&entry.item));
        let mut oldest: Vec<_> = idle.map(|(key, entry)| (entry.used, key.clone())).collect();
        oldest.sort_unstable_by_key(|(used, _)| *used);
        let beyond = (self.len() + self.step()).saturating_sub(self.room.idle);
        for (_, key) in oldest.into_iter().take(beyond) {
            self.by_bucket.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const ROOM: Room = Room { idle: 10, most: 15 };

    fn key(number: usize) -> BucketKey {
        BucketKey {
            entity: format!("user-{number}").parse().unwrap(),
            resource: "gpt-4".parse().unwrap(),
        }
    }

    fn full(room: Room) -> Roster<usize> {
        let mut roster = Roster::new(room);
        for number in 0..room.idle {
            assert!(roster.add(key(number), Arc::new(number), |_| true));
        }
        roster
    }

    #[test]
    fn the_one_that_was_not_used_for_longest_is_forgotten() {
        let mut roster = full(ROOM);
        assert!(roster.get(&key(0)).is_some());
        assert!(roster.add(key(10), Arc::new(10), |_| true));
        assert!(roster.get(&key(1)).is_none(), "the oldest use");
        assert!(roster.get(&key(0)).is_some(), "the oldest, but used since");
        assert_eq!(roster.len(), 10);
    }

    #[test]
    fn one_that_is_held_or_has_work_to_do_is_never_forgotten() {
        let mut roster = full(ROOM);
        let held = roster.get(&key(0)).unwrap();
        for number in 10..14 {
            assert!(roster.add(key(number), Arc::new(number), |number| *number != 1));
        }
        for kept in [0, 1] {
            assert!(roster.get(&key(kept)).is_some(), "{kept}");
        }
        assert_eq!(*held, 0);
        assert_eq!(roster.len(), 10);
    }

    #[test]
    fn when_none_is_idle_there_is_an_end() {
        let mut roster = full(ROOM);
        for number in 10..15 {
            assert!(roster.add(key(number), Arc::new(number), |_| false));
        }
        assert!(!roster.add(key(15), Arc::new(15), |_| false));
        assert_eq!(roster.len(), 15);
        assert!(roster.add(key(15), Arc::new(15), |_| true), "until some are");
        assert_eq!(roster.len(), 10);
    }

    #[test]
    fn looking_for_idle_ones_is_rare() {
        let room = Room {
            idle: 1_000,
            most: 5_000,
        };
        let mut roster = full(room);
        let looks = std::cell::Cell::new(0);
        for number in 1_000..2_000 {
            roster.add(key(number), Arc::new(number), |_| {
                looks.set(looks.get() + 1);
                false
            });
        }
        assert!(looks.get() <= 10 * 2_000, "{}", looks.get());
    }
}

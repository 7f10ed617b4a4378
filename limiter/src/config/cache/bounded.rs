//! A bounded map that drops what was not used since its last turn (second chance).

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

#[derive(Debug)]
struct Entry<V> {
    value: V,
    used: bool,
}

/// At most `max` entries.
#[derive(Debug)]
pub(super) struct Bounded<K, V> {
    max: usize,
    map: HashMap<K, Entry<V>>,
    /// Every key of the map once, in the order of their turns.
    turns: VecDeque<K>,
    evictions: u64,
}

impl<K: Clone + Eq + Hash, V> Bounded<K, V> {
    pub(super) fn new(max: usize) -> Self {
        Self {
            max: max.max(1),
            map: HashMap::new(),
            turns: VecDeque::new(),
            evictions: 0,
        }
    }

    /// Gives the value another turn.
    pub(super) fn mark_used(&mut self, key: &K) {
        if let Some(entry) = self.map.get_mut(key) {
            entry.used = true;
        }
    }

    pub(super) fn get(&self, key: &K) -> Option<&V> {
        self.map.get(key).map(|entry| &entry.value)
    }

    pub(super) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.map.get_mut(key).map(|entry| &mut entry.value)
    }

    /// Adds a value under a new key.
    pub(super) fn insert(&mut self, key: K, value: V) {
        let entry = Entry { value, used: false };
        if let Some(present) = self.map.get_mut(&key) {
            *present = entry;
            return;
        }
        while self.map.len() >= self.max {
            self.evict_one();
        }
        self.turns.push_back(key.clone());
        self.map.insert(key, entry);
    }

    fn evict_one(&mut self) {
        while let Some(key) = self.turns.pop_front() {
            match self.map.get_mut(&key) {
                Some(entry) if entry.used => {
                    entry.used = false;
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

    pub(super) fn remove(&mut self, concerned: impl Fn(&K) -> bool) {
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

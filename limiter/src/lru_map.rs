//! A bounded map that drops the entry that was not used for longest. It is for hundreds of thousands of entries: beside key
//! and value an entry takes eight bytes, and its place in the index five.

use std::hash::{BuildHasher, Hash, RandomState};

use hashbrown::HashTable;

/// The position of no entry.
const NONE: u32 = u32::MAX;

/// At most `max` entries, in the order in which they were last used.
#[derive(Debug)]
pub(crate) struct LruMap<K, V> {
    max: usize,
    /// Positions in `nodes`, by key.
    index: HashTable<u32>,
    /// Without gaps, in no order.
    nodes: Vec<Node<K, V>>,
    oldest: u32,
    newest: u32,
    hasher: RandomState,
}

#[derive(Debug)]
struct Node<K, V> {
    key: K,
    value: V,
    older: u32,
    newer: u32,
}

impl<K: Eq + Hash, V> LruMap<K, V> {
    /// An empty map. There is always room for one entry.
    pub(crate) fn bounded(max: usize) -> Self {
        Self {
            max: max.clamp(1, NONE as usize - 1),
            index: HashTable::new(),
            nodes: Vec::new(),
            oldest: NONE,
            newest: NONE,
            hasher: RandomState::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    fn find(&self, key: &K) -> Option<u32> {
        let is_key = |position: &u32| self.nodes[*position as usize].key == *key;
        self.index.find(self.hasher.hash_one(key), is_key).copied()
    }

    /// The value, which does not count as a use.
    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        self.find(key)
            .map(|position| &self.nodes[position as usize].value)
    }

    /// The same, to be changed.
    pub(crate) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.find(key)
            .map(|position| &mut self.nodes[position as usize].value)
    }

    /// The value, which is used now.
    pub(crate) fn touch(&mut self, key: &K) -> Option<&mut V> {
        self.touched(key).map(|node| &mut node.value)
    }

    /// The key as it was inserted, which is used now.
    pub(crate) fn touch_key(&mut self, key: &K) -> Option<&K> {
        self.touched(key).map(|node| &node.key)
    }

    fn touched(&mut self, key: &K) -> Option<&mut Node<K, V>> {
        let position = self.find(key)?;
        if position != self.newest {
            self.unlink(position);
            self.link(position);
        }
        self.nodes.get_mut(position as usize)
    }

    /// Adds an entry, which is used now, or replaces the value of its key. Returns what had to make room for it.
    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<(K, V)> {
        if let Some(present) = self.touch(&key) {
            *present = value;
            return None;
        }
        let evicted = if self.nodes.len() < self.max {
            None
        } else {
            self.pop_oldest()
        };
        if self.nodes.len() == self.nodes.capacity() {
            // Doubling would leave up to half of the room empty.
            self.nodes.reserve_exact((self.nodes.len() / 8).max(4));
        }
        let position = u32::try_from(self.nodes.len()).unwrap_or(NONE);
        let hash = self.hasher.hash_one(&key);
        self.nodes.push(Node {
            key,
            value,
            older: NONE,
            newer: NONE,
        });
        let (hasher, nodes) = (&self.hasher, &self.nodes);
        let rehash = |position: &u32| hasher.hash_one(&nodes[*position as usize].key);
        self.index.insert_unique(hash, position, rehash);
        self.link(position);
        evicted
    }

    /// Takes an entry out, with the key as it was inserted.
    pub(crate) fn remove(&mut self, key: &K) -> Option<(K, V)> {
        let position = self.find(key)?;
        Some(self.remove_at(position))
    }

    fn pop_oldest(&mut self) -> Option<(K, V)> {
        (self.oldest != NONE).then(|| self.remove_at(self.oldest))
    }

    /// Drops the entries with these keys.
    pub(crate) fn remove_where(&mut self, concerned: impl Fn(&K) -> bool) {
        let mut position = 0;
        while let Some(node) = self.nodes.get(position as usize) {
            if concerned(&node.key) {
                // The last entry takes its place and is looked at next.
                self.remove_at(position);
            } else {
                position += 1;
            }
        }
    }

    /// All entries, the one that was not used for longest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        let mut next = self.oldest;
        std::iter::from_fn(move || {
            let node = self.nodes.get(next as usize)?;
            next = node.newer;
            Some((&node.key, &node.value))
        })
    }

    fn remove_at(&mut self, position: u32) -> (K, V) {
        self.unlink(position);
        let hash = self.hasher.hash_one(&self.nodes[position as usize].key);
        if let Ok(entry) = self.index.find_entry(hash, |own| *own == position) {
            entry.remove();
        }
        let Node { key, value, .. } = self.nodes.swap_remove(position as usize);
        if let Some(moved) = self.nodes.get(position as usize) {
            let last = u32::try_from(self.nodes.len()).unwrap_or(NONE);
            let hash = self.hasher.hash_one(&moved.key);
            let (older, newer) = (moved.older, moved.newer);
            if let Some(own) = self.index.find_mut(hash, |own| *own == last) {
                *own = position;
            }
            self.set_newer_of(older, position);
            self.set_older_of(newer, position);
        }
        (key, value)
    }

    /// Makes an entry outside of the order the newest.
    fn link(&mut self, position: u32) {
        let older = self.newest;
        let node = &mut self.nodes[position as usize];
        (node.older, node.newer) = (older, NONE);
        self.set_newer_of(older, position);
        self.newest = position;
    }

    /// Takes an entry out of the order.
    fn unlink(&mut self, position: u32) {
        let Node { older, newer, .. } = self.nodes[position as usize];
        self.set_newer_of(older, newer);
        self.set_older_of(newer, older);
    }

    fn set_newer_of(&mut self, position: u32, newer: u32) {
        match self.nodes.get_mut(position as usize) {
            Some(node) => node.newer = newer,
            None => self.oldest = newer,
        }
    }

    fn set_older_of(&mut self, position: u32, older: u32) {
        match self.nodes.get_mut(position as usize) {
            Some(node) => node.older = older,
            None => self.newest = older,
        }
    }
}

#[cfg(test)]
mod tests;

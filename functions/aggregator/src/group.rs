//! The changes of a batch that go into one snapshot.

use std::collections::BTreeMap;

use zae_limiter_schema::{EntityId, LimitName, Resource, Window, WindowKind};

use crate::{Change, Seen, Token};

/// All changes of one bucket in one window, in the order of the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group<'a> {
    /// The snapshot's window.
    pub window: Window,
    entries: Vec<Entry<'a>>,
}

/// A change and the place of its record in the batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The change.
    pub change: &'a Change,
    /// Which record of the batch.
    pub place: usize,
}

/// Sorts the changes of a batch into groups, one per bucket and window: one write each, however many records and limits.
pub fn groups<'a>(windows: &[WindowKind], changes: impl IntoIterator<Item = Entry<'a>>) -> Vec<Group<'a>> {
    let mut groups: BTreeMap<(&EntityId, &Resource, Window), Vec<Entry<'a>>> = BTreeMap::new();
    for entry in changes {
        for kind in windows {
            let window = kind.window_at(entry.change.at);
            let key = (&entry.change.entity, &entry.change.resource, window);
            groups.entry(key).or_default().push(entry);
        }
    }
    let groups = groups.into_iter();
    groups
        .filter_map(|((_, _, window), entries)| Group::new(window, entries))
        .collect()
}

impl<'a> Group<'a> {
    /// A group of at least one change of one bucket. A record that is there twice counts once.
    fn new(window: Window, mut entries: Vec<Entry<'a>>) -> Option<Self> {
        entries.sort_by(|a, b| a.change.token.cmp(&b.change.token));
        entries.dedup_by(|a, b| a.change.token == b.change.token);
        (!entries.is_empty()).then_some(Self { window, entries })
    }

    /// Whose bucket.
    pub fn entity(&self) -> &'a EntityId {
        &self.entries[0].change.entity
    }

    /// Of what.
    pub fn resource(&self) -> &'a Resource {
        &self.entries[0].change.resource
    }

    /// The changes in the order of the stream; there is at least one.
    pub fn entries(&self) -> &[Entry<'a>] {
        &self.entries
    }

    /// The token of the first change.
    pub fn first(&self) -> &'a Token {
        &self.entries[0].change.token
    }

    /// The token of the last change.
    pub fn last(&self) -> &'a Token {
        &self.entries[self.entries.len() - 1].change.token
    }

    /// The first record, which is reported if the group cannot be written.
    pub fn first_place(&self) -> usize {
        self.entries
            .iter()
            .map(|entry| entry.place)
            .min()
            .unwrap_or_default()
    }

    /// When the newest change was made, in epoch seconds.
    pub fn newest(&self) -> i64 {
        self.entries
            .iter()
            .map(|entry| entry.change.at.seconds())
            .max()
            .unwrap_or_default()
    }

    /// Whole tokens per limit.
    pub fn consumed(&self) -> BTreeMap<&'a LimitName, i128> {
        let mut sums = BTreeMap::new();
        for (limit, tokens) in self.entries.iter().flat_map(|entry| &entry.change.consumed) {
            *sums.entry(limit).or_default() += tokens;
        }
        sums
    }

    /// How many acquires.
    pub fn events(&self) -> i128 {
        self.entries.iter().map(|entry| entry.change.events).sum()
    }

    /// What is left of the group for a snapshot that has counted up to a token.
    pub fn after(&self, counted: &str) -> Option<Self> {
        let left = self
            .entries
            .iter()
            .copied()
            .filter(|entry| !entry.change.token.is_counted(counted));
        Self::new(self.window, left.collect())
    }

    /// The changes that a snapshot claims to have counted though they are newer than anything it has seen. Numbers went
    /// back, which they never should: counting them could be wrong, dropping them would be silent.
    pub fn regressed(&self, seen: &Seen) -> Vec<Entry<'a>> {
        let Some(newest) = seen.newest else {
            return Vec::new();
        };
        let claimed = self
            .entries
            .iter()
            .filter(|entry| entry.change.token.is_counted(&seen.sequence));
        claimed
            .filter(|entry| entry.change.at.seconds() > newest)
            .copied()
            .collect()
    }
}

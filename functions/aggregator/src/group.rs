//! The deltas of a batch that go into one snapshot.

use std::collections::{BTreeMap, BTreeSet};

use zae_limiter_schema::{EntityId, LimitName, Resource, Window, WindowKind, threshold_text};

use crate::{Position, Progress, UsageDelta};

/// All deltas of one bucket in one window, in the order of the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group<'a> {
    /// The snapshot's window.
    pub window: Window,
    entries: Vec<Entry<'a>>,
}

/// A delta and the index of its record in the batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The delta.
    pub delta: &'a UsageDelta,
    /// The index of its record in the batch.
    pub index: usize,
}

/// Sorts the deltas of a batch into groups, one per bucket and window: one write each, however many records and limits.
pub fn groups<'a>(windows: &[WindowKind], deltas: impl IntoIterator<Item = Entry<'a>>) -> Vec<Group<'a>> {
    let mut groups: BTreeMap<(&EntityId, &Resource, Window), Vec<Entry<'a>>> = BTreeMap::new();
    for entry in deltas {
        for kind in windows {
            let window = kind.window_at(entry.delta.at);
            let key = (&entry.delta.entity, &entry.delta.resource, window);
            groups.entry(key).or_default().push(entry);
        }
    }
    let groups = groups.into_iter();
    groups
        .filter_map(|((_, _, window), entries)| Group::new(window, entries))
        .collect()
}

impl<'a> Group<'a> {
    /// A group with at least one delta that counts. A record that is there twice counts once.
    fn new(window: Window, mut entries: Vec<Entry<'a>>) -> Option<Self> {
        entries.sort_by(|a, b| a.delta.position.cmp(&b.delta.position));
        entries.dedup_by(|a, b| a.delta.position == b.delta.position);
        let counts = entries.iter().any(|entry| entry.delta.counts());
        counts.then_some(Self { window, entries })
    }

    /// The bucket's entity.
    pub fn entity(&self) -> &'a EntityId {
        &self.entries[0].delta.entity
    }

    /// The bucket's resource.
    pub fn resource(&self) -> &'a Resource {
        &self.entries[0].delta.resource
    }

    /// The deltas in the order of the stream; there is at least one.
    pub fn entries(&self) -> &[Entry<'a>] {
        &self.entries
    }

    /// The first delta.
    pub fn first(&self) -> &'a UsageDelta {
        self.entries[0].delta
    }

    /// The position of the last delta.
    pub fn last(&self) -> &'a Position {
        &self.entries[self.entries.len() - 1].delta.position
    }

    /// The lowest index, which is reported if the group cannot be written.
    pub fn first_index(&self) -> usize {
        self.entries
            .iter()
            .map(|entry| entry.index)
            .min()
            .unwrap_or_default()
    }

    /// Whole tokens per limit.
    pub fn consumed(&self) -> BTreeMap<&'a LimitName, i128> {
        let mut sums = BTreeMap::new();
        for (limit, tokens) in self.entries.iter().flat_map(|entry| &entry.delta.consumed) {
            *sums.entry(limit).or_default() += tokens;
        }
        sums
    }

    /// The number of acquires.
    pub fn events(&self) -> i128 {
        self.entries.iter().map(|entry| entry.delta.events).sum()
    }

    /// The number of refused acquires.
    pub fn refusals(&self) -> i128 {
        self.entries.iter().map(|entry| entry.delta.refusals).sum()
    }

    /// The number of acquires that passed though the limits did not allow them.
    pub fn observed(&self) -> i128 {
        self.entries.iter().map(|entry| entry.delta.observed).sum()
    }

    /// The thresholds of quotas that were reached, as a snapshot stores them.
    pub fn thresholds(&self) -> BTreeSet<String> {
        let crossings = self.entries.iter().flat_map(|entry| &entry.delta.crossings);
        crossings
            .map(|crossing| threshold_text(&crossing.limit, crossing.percent))
            .collect()
    }

    /// What is left of the group for a snapshot that has counted this much.
    pub fn uncounted(&self, progress: &Progress) -> Option<Self> {
        let left = self.entries.iter().copied();
        let left = left.filter(|entry| !progress.has_counted(&entry.delta.position));
        Self::new(self.window, left.collect())
    }

    /// The entries that a snapshot claims to have counted though they are newer than anything it has counted. Sequence
    /// numbers went backwards, which they never should: counting them could be wrong, dropping them would be silent.
    pub fn regressed(&self, progress: &Progress) -> Vec<Entry<'a>> {
        let Some(newest) = progress.newest else {
            return Vec::new();
        };
        let claimed = self
            .entries
            .iter()
            .filter(|entry| progress.has_counted(&entry.delta.position));
        claimed
            .filter(|entry| entry.delta.at.seconds() > newest)
            .copied()
            .collect()
    }
}

//! What a snapshot has counted, and what it knows it has not.

use zae_limiter_schema::usage_attribute as usage;

use crate::gap::{Gap, decode, encode};
use crate::rules::{Rule, Rules};
use crate::{Digest, Entry, Group, Position};

/// What a snapshot has counted: every record of its bucket and window up to a position, except for those in gaps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// The last counted record.
    pub last: Position,
    /// The bucket after that record; absent in snapshots of earlier versions.
    pub link: Option<Digest>,
    /// When the newest counted record was made, in epoch seconds.
    pub newest: Option<i64>,
    /// The refused acquires that it has counted: text, which only a write that has seen it can add to.
    pub refusals: i128,
    /// The acquires that passed though the limits did not allow them; text too.
    pub observed: i128,
    /// Where records before `last` are not counted, in order; absent in snapshots of earlier versions.
    pub(crate) gaps: Option<Vec<Gap>>,
}

/// More gaps than this are not kept: each adds about 170 bytes to every write of the snapshot.
pub(crate) const MAX_GAPS: usize = 16;

impl Progress {
    /// Reads a snapshot by its attributes that are strings. `None` if it has no progress.
    pub fn from_attributes<'a>(text: impl Fn(&str) -> Option<&'a str>) -> Option<Self> {
        let count = |name| text(name).and_then(|count| count.parse().ok()).unwrap_or(0);
        Some(Self {
            last: Position::stored(text(usage::SEQUENCE)?),
            link: text(usage::LINK).map(Digest::stored),
            newest: text(usage::NEWEST).and_then(|seconds| seconds.parse().ok()),
            gaps: text(usage::GAPS).map(decode),
            refusals: count(usage::REFUSALS),
            observed: count(usage::OBSERVED),
        })
    }

    /// True if the snapshot has counted the record at this position.
    pub fn has_counted(&self, position: &Position) -> bool {
        let mut gaps = self.gaps.iter().flatten();
        *position <= self.last && !gaps.any(|gap| gap.contains(position))
    }

    /// The gaps as the snapshot stores them.
    pub(crate) fn stored_gaps(&self) -> Option<String> {
        self.gaps.as_ref().map(|gaps| encode(gaps))
    }
}

/// The progress after counting a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Advanced {
    pub(crate) progress: Progress,
    /// Gaps that had to be forgotten, because there are too many.
    pub(crate) forgotten: u64,
}

impl Progress {
    /// The progress of a snapshot that counts this group, no record of which it has counted before.
    pub(crate) fn advance(rules: Rules, seen: Option<&Self>, group: &Group<'_>) -> Advanced {
        let (mut last, mut link) = (
            seen.map(|seen| seen.last.clone()),
            seen.and_then(|seen| seen.link.clone()),
        );
        let mut gaps = seen.and_then(|seen| seen.gaps.clone()).unwrap_or_default();
        for Entry { delta, .. } in group.entries() {
            if last.as_ref().is_some_and(|last| delta.position <= *last) {
                gaps = gaps.into_iter().flat_map(|gap| gap.filled_by(delta)).collect();
                continue;
            }
            let gap = Gap {
                after: last.replace(delta.position.clone()),
                link_after: link.replace(delta.link.after.clone()),
                before: delta.position.clone(),
                link_before: delta.link.before.clone(),
            };
            if rules.hold(Rule::Gaps) && !gap.is_closed() {
                gaps.push(gap);
            }
        }
        let mut forgotten = 0;
        while gaps.len() > MAX_GAPS {
            // A bucket that was deleted and created again leaves a gap that most likely holds nothing.
            let emptiest = gaps
                .iter()
                .position(|gap| gap.ends_at_creation() && gap.after.is_some());
            gaps.remove(emptiest.unwrap_or(0));
            forgotten += u64::from(emptiest.is_none());
        }
        let newest = group.entries().iter().map(|entry| entry.delta.at.seconds()).max();
        let progress = Self {
            last: last.unwrap_or_else(|| group.last().clone()),
            link,
            newest: newest.max(seen.and_then(|seen| seen.newest)),
            gaps: Some(gaps),
            refusals: seen.map_or(0, |seen| seen.refusals) + group.refusals(),
            observed: seen.map_or(0, |seen| seen.observed) + group.observed(),
        };
        Advanced { progress, forgotten }
    }
}

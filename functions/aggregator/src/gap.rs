//! Records between two counted ones that are not counted.

use crate::{Digest, Position, UsageDelta};

/// The records of a bucket strictly between two positions. None of them is counted.
///
/// A gap is closed, and not worth remembering, if the bucket is the same at both ends: then there is no record in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Gap {
    /// The counted record before the gap; absent at the start of the window.
    pub(crate) after: Option<Position>,
    /// The bucket after that record, if known.
    pub(crate) link_after: Option<Digest>,
    /// The counted record behind the gap.
    pub(crate) before: Position,
    /// The bucket before that record.
    pub(crate) link_before: Digest,
}

impl Gap {
    pub(crate) fn contains(&self, position: &Position) -> bool {
        self.after.as_ref().is_none_or(|after| after < position) && *position < self.before
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.link_after.as_ref() == Some(&self.link_before)
    }

    /// True if the bucket did not exist just before the end of the gap.
    pub(crate) fn ends_at_creation(&self) -> bool {
        self.link_before.is_of_nothing()
    }

    /// What is left of the gap once a record is counted: itself if the record is elsewhere, or up to two parts.
    pub(crate) fn filled_by(self, delta: &UsageDelta) -> impl Iterator<Item = Self> {
        if !self.contains(&delta.position) {
            return vec![self].into_iter();
        }
        let first = Self {
            before: delta.position.clone(),
            link_before: delta.link.before.clone(),
            ..self.clone()
        };
        let second = Self {
            after: Some(delta.position.clone()),
            link_after: Some(delta.link.after.clone()),
            ..self
        };
        let parts = [first, second].into_iter().filter(|gap| !gap.is_closed());
        parts.collect::<Vec<_>>().into_iter()
    }

    fn encode(&self) -> String {
        let after = self.after.as_ref().map_or("", Position::as_str);
        let link_after = self.link_after.as_ref().map_or("", Digest::as_str);
        format!(
            "{after},{link_after},{},{}",
            self.before,
            self.link_before.as_str()
        )
    }

    fn decode(text: &str) -> Option<Self> {
        let mut fields = text.split(',');
        let gap = Self {
            after: fields
                .next()
                .map(Position::stored)
                .filter(|after| !after.as_str().is_empty()),
            link_after: fields
                .next()
                .map(Digest::stored)
                .filter(|link| !link.as_str().is_empty()),
            before: Position::stored(fields.next()?),
            link_before: Digest::stored(fields.next()?),
        };
        fields.next().is_none().then_some(gap)
    }
}

/// Gaps as a snapshot stores them.
pub(crate) fn encode(gaps: &[Gap]) -> String {
    gaps.iter().map(Gap::encode).collect::<Vec<_>>().join(" ")
}

/// Gaps as a snapshot stored them. What cannot be read is no gap: everything in it counts as counted.
pub(crate) fn decode(text: &str) -> Vec<Gap> {
    text.split(' ').filter_map(Gap::decode).collect()
}

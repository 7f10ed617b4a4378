//! A bucket as last seen.

use std::collections::{BTreeMap, BTreeSet};

use super::batch::NOTHING;
use super::{ConcurrencyImage, Etag, LegacyClient, LimitState, Presence, QuotaImage, RateImage, SlotIndex};
use crate::{EntityId, LimitName, Timestamp};

/// A last refill that is further in the future was written by a wrong clock.
const MAX_AHEAD_MILLIS: i64 = 5_000;

/// A bucket as last seen: everything that decides the next write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// The time of the last refill, shared by all limits (`rf`).
    pub refilled_at: Timestamp,
    /// The etag (`cf`); buckets that only the Python peer has written have none.
    pub etag: Option<Etag>,
    /// The rates that can be computed with.
    pub limits: BTreeMap<LimitName, RateImage>,
    /// The quotas.
    pub quotas: BTreeMap<LimitName, QuotaImage>,
    /// The limits on calls in flight.
    pub permits: BTreeMap<LimitName, ConcurrencyImage>,
    /// Rates that have a level but no parameters.
    pub broken: BTreeSet<LimitName>,
    /// The numbers in the slots that are in use.
    pub slots: BTreeMap<SlotIndex, i128>,
    /// Slots of earlier releases.
    pub legacy_slots: BTreeMap<LegacyClient, i128>,
    /// Acquires counted (`ev`).
    pub events: i128,
    /// When it may be deleted, in epoch seconds (`ttl`).
    pub expires_at: Option<i64>,
    /// Whether acquires cascade to the parent.
    pub cascade: bool,
    /// The parent.
    pub parent: Option<EntityId>,
}

impl Image {
    /// Which incarnation of the bucket this is; empty where only the peer has written.
    pub fn incarnation(&self) -> &str {
        self.etag.as_ref().map_or("", Etag::incarnation)
    }

    /// How many limits are on it, of whatever kind.
    pub fn limit_count(&self) -> usize {
        self.limits.len() + self.quotas.len() + self.permits.len()
    }

    /// True if a limit of this name is on it, of whatever kind.
    pub fn has_limit(&self, name: &LimitName) -> bool {
        self.limits.contains_key(name) || self.quotas.contains_key(name) || self.permits.contains_key(name)
    }

    /// True if it may be deleted before it has filled up, so that its next incarnation, which starts full, would be
    /// given too much. The second in which it expires counts as a whole one.
    pub fn expires_before_full(&self, now: Timestamp) -> bool {
        let limits = LimitState::on_item(self, |_| Presence::Kept, now);
        let to_full = limits.map(|(name, limit_state)| limit_state.life(name, &NOTHING).1);
        let to_full = to_full.max().unwrap_or(0);
        let full_at = i128::from(now.millis()) + to_full;
        let expires_first = |seconds| (i128::from(seconds) + 1) * 1000 < full_at;
        to_full > 0 && self.expires_at.is_some_and(expires_first)
    }

    /// True if the last refill is so far in the future that only a wrong clock can have written it. `latest` is the latest
    /// time that it can be now. Clocks that agree with the server's are at most four seconds ahead of it.
    pub fn is_ahead_of(&self, latest: Timestamp) -> bool {
        self.refilled_at > latest.plus_millis(MAX_AHEAD_MILLIS)
    }

    /// Milliseconds since the last refill; 0 for a clock that is behind it.
    pub fn elapsed(&self, now: Timestamp) -> i128 {
        i128::from(now.since(self.refilled_at))
    }
}

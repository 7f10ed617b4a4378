//! Limits of a bucket that become as if nothing were used.
//!
//! What calls took before must not come back into what is free afterwards. Each [kind](super::LimitOnItem) sees to that in
//! its own way. Permits are revoked: the bucket becomes another incarnation without slots, like one that was deleted and
//! created again, so that no release, renewal or late response of an earlier call concerns it. That holds for all limits on
//! calls in flight of the bucket, so they are reset together.

use super::{Action, Attr, Condition, Etag, Image, Incarnation, Scalar, SlotIndex, Statement};
use crate::{LimitName, Timestamp};

/// Some limits of a bucket, and the write that makes them as if nothing were used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResetLimits {
    /// Which, by name.
    pub limits: Vec<LimitName>,
    /// Calls in flight lose their permits, and what they give back later only changes the count of consumption.
    pub revokes: bool,
    /// The write.
    pub statement: Statement,
}

impl ResetLimits {
    /// The reset of those limits of a bucket that are chosen; if a limit on calls in flight is among them, of all of these.
    /// The write is exact for what concurrent writes leave: it depends on the parameters of the bucket, on the period of a quota
    /// and on the epochs of permits only.
    pub fn of(
        image: &Image,
        chosen: impl Fn(&LimitName) -> bool,
        now: Timestamp,
        incarnation: Incarnation,
    ) -> Self {
        let mut on_item = image.limits_on_item();
        let revokes = on_item.any(|(name, limit)| limit.is_held_by_calls() && chosen(name));
        let mut statement = begin(image, revokes, incarnation);
        let mut limits = Vec::new();
        for (name, limit) in image.limits_on_item() {
            if chosen(name) || (revokes && limit.is_held_by_calls()) {
                limit.reset(name, now, &mut statement);
                limits.push(name.clone());
            }
        }
        limits.sort_unstable();
        limits.dedup();
        Self {
            limits,
            revokes,
            statement,
        }
    }
}

/// The bucket still has these parameters. If permits are revoked, it becomes another incarnation.
fn begin(image: &Image, revokes: bool, incarnation: Incarnation) -> Statement {
    let etag = |etag: &Etag| Scalar::Text(etag.text().clone());
    let seen = match &image.etag {
        Some(seen) => Condition::Is(Attr::Etag, etag(seen)),
        None => Condition::Missing(Attr::Etag),
    };
    let mut actions = Vec::new();
    if let (true, Some(seen)) = (revokes, &image.etag) {
        let new = etag(&seen.in_incarnation(incarnation));
        actions.push(Action::Set(Attr::Etag, new));
        let slots = SlotIndex::all().map(Attr::Slot);
        let legacy = image.legacy_slots.keys().map(|client| Attr::LegacySlot(*client));
        actions.extend(slots.chain(legacy).map(Action::Remove));
    }
    Statement {
        conditions: vec![Condition::AtLeast(Attr::RefilledAt, 0), seen],
        actions,
    }
}

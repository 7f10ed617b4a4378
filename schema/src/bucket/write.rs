//! The typed bucket write.

use super::{
    Action, Attr, Batch, Condition, Etag, Held, LegacyClient, Row, Scalar, Slot, SlotBefore, Statement,
};
use crate::{EntityId, LimitName, Resource, Timestamp, keys};

/// Which bucket.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BucketKey {
    /// Whose.
    pub entity: EntityId,
    /// For what.
    pub resource: Resource,
}

impl BucketKey {
    /// The key of the item.
    pub fn key(&self) -> keys::Key {
        keys::bucket(&self.entity, &self.resource)
    }
}

/// The four kinds of write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WriteKind {
    /// Leaves the time of the last refill where it is.
    Touch,
    /// Moves the time of the last refill to now and books what has come back, on every limit.
    Refill,
    /// Creates the bucket.
    Create,
    /// Refills, and gives the bucket the parameters of another configuration.
    Reconfigure,
}

/// What must hold of the etag, and what becomes of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EtagClause {
    /// It is this and stays.
    Keep(Etag),
    /// It is what was seen (or missing) and becomes new.
    Replace {
        /// What was seen.
        seen: Option<Etag>,
        /// What it becomes.
        new: Etag,
    },
    /// The bucket is created with it.
    Create(Etag),
}

/// Another state for which a settle with all rows full is exact: the last refill is so long ago that the bucket
/// is full now whatever happened before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relaxed {
    /// The latest time of the last refill for which it holds.
    pub refilled_by: Timestamp,
    /// The lowest level of each limit for which it holds.
    pub floors: Vec<(LimitName, i128)>,
}

/// The condition on the time of the last refill, and its new value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RefillClause {
    /// It is this or later, and stays.
    AtLeast(Timestamp),
    /// It is exactly this, and stays.
    Exactly(Timestamp),
    /// It is exactly this (or one of the relaxed states holds) and moves to now.
    Move {
        /// What it is.
        from: Timestamp,
        /// What it becomes.
        to: Timestamp,
        /// Other states for which the write is exact.
        relaxed: Vec<Relaxed>,
    },
    /// There is none; it becomes this.
    Create(Timestamp),
}

/// What becomes of the time to live, in epoch seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expiry {
    /// Nothing is asked and nothing changed.
    Leave,
    /// It lies beyond this or is missing, and stays.
    Beyond(i64),
    /// It is missing or lies before this, and becomes this.
    Becomes(i64),
    /// The bucket no longer expires.
    Removed,
}

/// The bucket's place in the hierarchy, as the Python peer reads it from the bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParentLink {
    /// Whether acquires cascade.
    pub cascade: bool,
    /// To whom.
    pub parent: Option<EntityId>,
}

/// One conditional write on a bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BucketWrite {
    /// Which bucket.
    pub key: BucketKey,
    /// Which kind.
    pub kind: WriteKind,
    /// The one reading of the clock that it was decided by.
    pub decided_at: Timestamp,
    /// The slot that shows that it happened.
    pub slot: Slot,
    /// The etag.
    pub etag: EtagClause,
    /// The time of the last refill.
    pub refill: RefillClause,
    /// The time to live.
    pub expiry: Expiry,
    /// The place in the hierarchy, where it is written.
    pub parent_link: Option<ParentLink>,
    /// What happens to each limit.
    pub rows: Vec<Row>,
    /// What it books: the sum of the calls that it carries.
    pub batch: Batch,
    /// Slots of an earlier release that are removed, as seen.
    pub legacy_slots: Vec<(LegacyClient, i128)>,
}

impl BucketWrite {
    /// True if it moves the last refill back, because that was in the future.
    pub fn sets_refill_back(&self) -> bool {
        matches!(&self.refill, RefillClause::Move { from, to, .. } if to < from)
    }

    /// The incarnation of the bucket that has this write on it.
    pub fn incarnation(&self) -> &str {
        match &self.etag {
            EtagClause::Keep(etag) | EtagClause::Replace { new: etag, .. } | EtagClause::Create(etag) => {
                etag.incarnation()
            }
        }
    }

    /// What a call that it carries holds of a limit, where that decides how it comes back.
    pub fn held(&self, limit: &LimitName) -> Option<Held> {
        self.rows.iter().find(|row| row.limit() == limit)?.held()
    }

    /// The write as conditions and actions.
    pub fn statement(&self) -> Statement {
        Statement {
            conditions: self.conditions(Some(&self.slot)),
            actions: self.actions(Some(&self.slot)),
        }
    }

    /// The same without its slot: for a transaction, which happens once by another item that it writes.
    pub fn statement_without_slot(&self) -> Statement {
        Statement {
            conditions: self.conditions(None),
            actions: self.actions(None),
        }
    }

    fn conditions(&self, slot: Option<&Slot>) -> Vec<Condition> {
        // The etag, the slot, the refill, the expiry, and at most two for each limit.
        let mut conditions = Vec::with_capacity(4 + 2 * self.rows.len() + self.legacy_slots.len());
        match &self.etag {
            EtagClause::Keep(etag) | EtagClause::Replace { seen: Some(etag), .. } => {
                conditions.push(Condition::Is(Attr::Etag, Scalar::Text(etag.text().clone())));
            }
            EtagClause::Replace { seen: None, .. } => conditions.push(Condition::Missing(Attr::Etag)),
            EtagClause::Create(_) => {}
        }
        // That there is no bucket yet is all the protection a creation needs.
        if let Some(slot) = slot.filter(|_| self.kind != WriteKind::Create) {
            let attr = Attr::Slot(slot.index);
            conditions.push(match slot.before {
                SlotBefore::Empty => Condition::Missing(attr),
                SlotBefore::Own(last) => Condition::Is(attr, Scalar::Number(last)),
                SlotBefore::Any => Condition::IsNot(attr, Scalar::Number(slot.number)),
            });
        }
        self.state_conditions(&mut conditions);
        let expiry = match self.expiry {
            Expiry::Beyond(soon) => Some(Condition::Above(Attr::ExpiresAt, i128::from(soon))),
            // Somebody else may have let a bucket in debt live longer.
            Expiry::Becomes(seconds) if self.kind != WriteKind::Create => {
                Some(Condition::AtMost(Attr::ExpiresAt, i128::from(seconds)))
            }
            Expiry::Becomes(_) | Expiry::Leave | Expiry::Removed => None,
        };
        conditions.extend(
            expiry
                .map(|holds| Condition::AnyOf(vec![vec![Condition::Missing(Attr::ExpiresAt)], vec![holds]])),
        );
        for (client, seen) in &self.legacy_slots {
            conditions.push(Condition::Is(Attr::LegacySlot(*client), Scalar::Number(*seen)));
        }
        conditions
    }

    /// The conditions on the time of the last refill and on the levels.
    fn state_conditions(&self, conditions: &mut Vec<Condition>) {
        // Only rates depend on the last refill.
        let rows = |conditions: &mut Vec<Condition>| {
            let rates = self.rows.iter().filter(|row| row.rate().is_some());
            rates.for_each(|row| row.conditions(conditions));
        };
        let refilled_at = |time: Timestamp| Condition::Is(Attr::RefilledAt, millis(time));
        match &self.refill {
            RefillClause::Create(_) => conditions.push(Condition::Missing(Attr::RefilledAt)),
            RefillClause::AtLeast(time) => {
                conditions.push(Condition::AtLeast(Attr::RefilledAt, i128::from(time.millis())));
                rows(conditions);
            }
            RefillClause::Exactly(time) => {
                conditions.push(refilled_at(*time));
                rows(conditions);
            }
            RefillClause::Move { from, relaxed, .. } if relaxed.is_empty() => {
                conditions.push(refilled_at(*from));
                rows(conditions);
            }
            RefillClause::Move { from, relaxed, .. } => {
                let mut exact = vec![refilled_at(*from)];
                rows(&mut exact);
                let others = relaxed.iter().map(Relaxed::conditions);
                conditions.push(Condition::AnyOf(std::iter::once(exact).chain(others).collect()));
            }
        }
        if self.kind != WriteKind::Create {
            let others = self.rows.iter().filter(|row| row.rate().is_none());
            others.for_each(|row| row.conditions(conditions));
        }
    }

    fn actions(&self, slot: Option<&Slot>) -> Vec<Action> {
        let set = Action::Set;
        // A touch has the slot, the count of calls, and two for each limit.
        let mut actions = Vec::with_capacity(4 + 2 * self.rows.len());
        actions.extend(slot.map(|slot| set(Attr::Slot(slot.index), Scalar::Number(slot.number))));
        match &self.refill {
            RefillClause::AtLeast(_) | RefillClause::Exactly(_) => {}
            RefillClause::Move { to, .. } | RefillClause::Create(to) => {
                actions.push(set(Attr::RefilledAt, millis(*to)));
            }
        }
        match &self.etag {
            EtagClause::Keep(_) => {}
            EtagClause::Replace { new, .. } | EtagClause::Create(new) => {
                actions.push(set(Attr::Etag, Scalar::Text(new.text().clone())));
            }
        }
        match self.expiry {
            Expiry::Leave | Expiry::Beyond(_) => {}
            Expiry::Becomes(seconds) => {
                actions.push(set(Attr::ExpiresAt, Scalar::Number(i128::from(seconds))));
            }
            Expiry::Removed => actions.push(Action::Remove(Attr::ExpiresAt)),
        }
        if self.kind == WriteKind::Create {
            let index = keys::gsi2_bucket(&self.key.resource, &self.key.entity);
            actions.push(set(Attr::Entity, text(self.key.entity.as_str())));
            actions.push(set(Attr::Resource, text(self.key.resource.as_str())));
            actions.push(set(Attr::Gsi2Pk, text(&index.pk)));
            actions.push(set(Attr::Gsi2Sk, text(&index.sk)));
        }
        if let Some(link) = &self.parent_link {
            actions.push(set(Attr::Cascade, Scalar::Flag(link.cascade)));
            actions.push(match &link.parent {
                Some(parent) => set(Attr::Parent, text(parent.as_str())),
                None => Action::Remove(Attr::Parent),
            });
        }
        for row in &self.rows {
            row.actions(&mut actions);
        }
        if self.batch.acquires > 0 {
            actions.push(Action::Add(Attr::Events, i128::from(self.batch.acquires)));
        }
        actions.extend(
            self.legacy_slots
                .iter()
                .map(|(client, _)| Action::Remove(Attr::LegacySlot(*client))),
        );
        actions
    }
}

impl Relaxed {
    fn conditions(&self) -> Vec<Condition> {
        let latest = Condition::AtMost(Attr::RefilledAt, i128::from(self.refilled_by.millis()));
        let floors = self.floors.iter().map(|(limit, floor)| {
            Condition::AtLeast(Attr::Limit(limit.clone(), super::Field::Tokens), *floor)
        });
        std::iter::once(latest).chain(floors).collect()
    }
}

fn text(value: &str) -> Scalar {
    Scalar::Text(value.into())
}

fn millis(time: Timestamp) -> Scalar {
    Scalar::Number(i128::from(time.millis()))
}

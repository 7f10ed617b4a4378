//! What a write does to one rate, and for which levels that is exact.

use super::super::{Action, Attr, Condition, Field, Params, Scalar};
use crate::LimitName;

/// What becomes of the remainder of the refill division.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remainder {
    /// It stays: the time of the last refill does not change.
    Keep,
    /// It becomes this; 0 is stored as nothing.
    Becomes(i128),
}

/// How the level changes, and for which levels before the write that is exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowForm {
    /// Refill and credits fit under the burst: the level is added to.
    Open {
        /// The lowest level for which there is enough; nothing needs to be there without debits.
        floor: Option<i128>,
        /// The highest level for which refill and credits fit.
        ceiling: i128,
        /// What is added.
        add: i128,
        /// The remainder afterwards.
        remainder: Remainder,
    },
    /// Refill and credits reach the burst: the level is set.
    Full {
        /// The lowest level for which they reach it.
        floor: i128,
        /// The level afterwards.
        set: i128,
        /// The remainder afterwards.
        remainder: Remainder,
    },
    /// The limit is new on the item and starts full, or it is lost and starts with what has come back since.
    Fresh {
        /// The level afterwards.
        set: i128,
        /// The item has a remnant of the limit that is unusable.
        replaces_broken: bool,
    },
    /// The limit is no longer configured and full: it leaves the item.
    Drop {
        /// The lowest level for which it is full.
        floor: i128,
    },
    /// Only the count of consumption changes.
    Recount,
}

/// The part of a write that concerns one rate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RateRow {
    /// Which limit.
    pub limit: LimitName,
    /// How its level changes.
    pub form: RowForm,
    /// By how much its count of consumption changes.
    pub consumed: i128,
    /// Its new parameters, where they are written.
    pub params: Option<Params>,
}

impl RateRow {
    fn attr(&self, field: Field) -> Attr {
        Attr::Limit(self.limit.clone(), field)
    }

    /// What must hold of the limit's attributes.
    pub(in super::super) fn conditions(&self, conditions: &mut Vec<Condition>) {
        let tokens = self.attr(Field::Tokens);
        match self.form {
            RowForm::Open { floor, ceiling, .. } => {
                conditions.extend(floor.map(|floor| Condition::AtLeast(tokens.clone(), floor)));
                conditions.push(Condition::AtMost(tokens, ceiling));
            }
            RowForm::Full { floor, .. } | RowForm::Drop { floor } => {
                conditions.push(Condition::AtLeast(tokens, floor));
            }
            RowForm::Fresh {
                replaces_broken: false,
                ..
            } => conditions.push(Condition::Missing(tokens)),
            RowForm::Fresh {
                replaces_broken: true,
                ..
            } => conditions.push(self.is_broken()),
            RowForm::Recount => {}
        }
    }

    /// At least one parameter is missing or has no sense.
    fn is_broken(&self) -> Condition {
        let params = [Field::Capacity, Field::Burst, Field::Amount, Field::Period];
        let broken = params.into_iter().flat_map(|field| {
            [
                vec![Condition::Missing(self.attr(field))],
                vec![Condition::AtMost(self.attr(field), 0)],
            ]
        });
        Condition::AnyOf(
            broken
                .chain([vec![Condition::Missing(self.attr(Field::Tokens))]])
                .collect(),
        )
    }

    /// What is done to the limit's attributes.
    pub(in super::super) fn actions(&self, actions: &mut Vec<Action>) {
        let (tokens, remainder) = (self.attr(Field::Tokens), self.attr(Field::Remainder));
        let set = |level: i128| Action::Set(tokens.clone(), Scalar::Number(level));
        let keep = match self.form {
            RowForm::Open { add, remainder, .. } => {
                if add != 0 {
                    actions.push(Action::Add(tokens, add));
                }
                remainder
            }
            RowForm::Full {
                set: level,
                remainder,
                ..
            } => {
                actions.push(set(level));
                remainder
            }
            RowForm::Fresh {
                set: level,
                replaces_broken,
            } => {
                actions.push(set(level));
                if replaces_broken {
                    Remainder::Becomes(0)
                } else {
                    Remainder::Keep
                }
            }
            RowForm::Recount => Remainder::Keep,
            RowForm::Drop { .. } => {
                actions.extend(Field::ALL.map(|field| Action::Remove(self.attr(field))));
                return;
            }
        };
        match keep {
            Remainder::Keep => {}
            Remainder::Becomes(0) => actions.push(Action::Remove(remainder)),
            Remainder::Becomes(left) => actions.push(Action::Set(remainder, Scalar::Number(left))),
        }
        if self.consumed != 0 || matches!(self.form, RowForm::Fresh { .. }) {
            actions.push(Action::Add(self.attr(Field::Consumed), self.consumed));
        }
        if let Some(params) = self.params {
            let values = [
                (Field::Capacity, params.capacity()),
                (Field::Burst, params.burst()),
                (Field::Amount, params.amount()),
                (Field::Period, params.period()),
            ];
            actions.extend(values.map(|(field, value)| Action::Set(self.attr(field), Scalar::Number(value))));
        }
    }
}

//! A write as conditions and actions on attributes: the common form of interpreter and compiler.

use super::{Attr, Scalar};

/// What must hold of the item for the write to happen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// The attribute is not there.
    Missing(Attr),
    /// The attribute has exactly this value.
    Is(Attr, Scalar),
    /// The attribute is missing or has another value.
    IsNot(Attr, Scalar),
    /// The attribute is a number not below this one.
    AtLeast(Attr, i128),
    /// The attribute is a number not above this one.
    AtMost(Attr, i128),
    /// The attribute is a number above this one.
    Above(Attr, i128),
    /// All conditions of at least one of these lists hold.
    AnyOf(Vec<Vec<Condition>>),
}

/// What the write does. No attribute stands in two actions of one statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Gives the attribute this value.
    Set(Attr, Scalar),
    /// Adds to the attribute, which counts as 0 where it is missing.
    Add(Attr, i128),
    /// Removes the attribute, if it exists.
    Remove(Attr),
}

/// One conditional update: all conditions hold and all actions are done, or nothing is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Statement {
    /// What must hold.
    pub conditions: Vec<Condition>,
    /// What is done.
    pub actions: Vec<Action>,
}

//! What the stack should become: what its options say, or what a stored plan says.

use crate::code::Loaded;
use crate::deployed::Deployed;
use crate::desired::Desired;
use crate::plan::Plan;
use crate::{Error, Stack};

/// The target of one run of the reconciler.
pub(super) struct Goal<'a> {
    pub(super) loaded: Loaded,
    planned: Option<(&'a Plan, Desired)>,
}

impl<'a> Goal<'a> {
    /// Whatever the stack's options render to.
    pub(super) fn options(loaded: Loaded) -> Self {
        Self {
            loaded,
            planned: None,
        }
    }

    /// Exactly what a plan says.
    pub(super) fn plan(plan: &'a Plan, mut desired: Desired, loaded: Loaded) -> Self {
        desired.notes.clone_from(&plan.warnings);
        Self {
            loaded,
            planned: Some((plan, desired)),
        }
    }

    pub(super) fn planned(&self) -> Option<&'a Plan> {
        self.planned.as_ref().map(|(plan, _)| *plan)
    }

    /// The desired state of a stack that is deployed like this.
    pub(super) fn desired(&self, stack: &Stack, deployed: Option<&Deployed>) -> Result<Desired, Error> {
        match &self.planned {
            Some((_, desired)) => Ok(desired.clone()),
            None => stack.desired(&self.loaded, deployed),
        }
    }
}

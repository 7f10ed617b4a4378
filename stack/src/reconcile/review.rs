//! Change sets: ask for one, look at it.

use std::collections::BTreeSet;

use zae_limiter_template::Template;
use zae_limiter_template::model::ids;

use super::wait::Deadline;
use crate::cloud::change_set::{ChangeSet, Purpose};
use crate::desired::Desired;
use crate::guard;
use crate::plan::{Kind, ResourceChange, exact};
use crate::{Error, Stack};

/// A change set that was looked at.
#[derive(Debug)]
pub(super) enum Reviewed {
    /// It says what would be done.
    Changes {
        change_set: ChangeSet,
        changes: Vec<ResourceChange>,
    },
    /// CloudFormation sees nothing to do.
    Nothing,
    /// An operation was started by somebody else, which leaves no room for a change set.
    Busy,
}

impl Stack {
    pub(super) async fn review(
        &self,
        stack: &str,
        purpose: Purpose,
        before: Option<&Template>,
        desired: &Desired,
        deadline: &Deadline,
    ) -> Result<Reviewed, Error> {
        let arn = match self.cloud.create_change_set(stack, purpose, desired).await {
            Ok(arn) => arn,
            Err(failure) if failure.busy() || failure.created_meanwhile() => {
                return Ok(Reviewed::Busy);
            }
            Err(failure) => return Err(failure.into()),
        };
        let change_set = match self.computed(stack, &arn, deadline).await {
            Ok(Some(change_set)) => change_set,
            Ok(None) => return Ok(Reviewed::Busy),
            Err(error) => {
                self.cloud.discard(stack, &arn).await;
                return Err(error);
            }
        };
        if change_set.ready() {
            let changes = exact::resources(&change_set.changes, before, &desired.template);
            return Ok(Reviewed::Changes { change_set, changes });
        }
        self.cloud.discard(stack, &arn).await;
        if change_set.empty() {
            Ok(Reviewed::Nothing)
        } else {
            Err(Error::ChangeSet {
                reason: change_set.reason,
            })
        }
    }

    /// An error if the changes lose data.
    pub(super) fn guard(
        &self,
        changes: &[ResourceChange],
        before: Option<&Template>,
        desired: &Desired,
    ) -> Result<(), Error> {
        let refusals = guard::refusals(changes, before, &desired.template, &self.permissions.lose);
        if refusals.is_empty() {
            Ok(())
        } else {
            Err(Error::Guarded { refusals })
        }
    }
}

/// Whether the table becomes part of the stack as it is. Anything else would make a new one in its place.
pub(super) fn imports_table(changes: &[ResourceChange]) -> bool {
    let kinds: BTreeSet<_> = changes
        .iter()
        .filter(|change| change.logical_id == ids::TABLE.as_str())
        .map(|change| change.kind)
        .collect();
    kinds == BTreeSet::from([Kind::Import])
}

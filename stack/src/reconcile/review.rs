//! Change sets: create one, wait for it, read it.

use std::collections::BTreeSet;

use zae_limiter_template::Template;
use zae_limiter_template::model::ids;

use crate::cloud::change_set::{ChangeSet, Purpose};
use crate::desired::Desired;
use crate::patience::{Deadline, patiently};
use crate::plan::{Kind, ResourceChange, exact};
use crate::{Error, Stack};

/// The result of creating a change set.
#[derive(Debug)]
pub(super) enum Reviewed {
    /// CloudFormation has computed the changes.
    Changes {
        change_set: ChangeSet,
        changes: Vec<ResourceChange>,
    },
    /// CloudFormation sees nothing to change.
    Nothing,
    /// Another process has started an operation, so no change set can be created.
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
        let arn = match patiently(deadline, || self.cloud.create_change_set(stack, purpose, desired)).await {
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
        let reason = if change_set.failed_validation() {
            self.validation_reason(stack, &change_set, deadline).await
        } else {
            change_set.reason.clone()
        };
        self.cloud.discard(stack, &arn).await;
        if change_set.empty() {
            Ok(Reviewed::Nothing)
        } else {
            Err(Error::ChangeSet { reason })
        }
    }

    /// The real reason of a failed early validation, from the change set's events.
    async fn validation_reason(&self, stack: &str, change_set: &ChangeSet, deadline: &Deadline) -> String {
        match patiently(deadline, || {
            self.cloud.validation_failures(stack, &change_set.arn)
        })
        .await
        {
            Ok(found) if !found.is_empty() => found.join("; "),
            Ok(_) => change_set.reason.clone(),
            Err(failure) => format!(
                "{} (its events cannot be read: {})",
                change_set.reason,
                failure.message()
            ),
        }
    }
}

/// Whether the table becomes part of the stack as it is. Anything else would create a new one in its place.
pub(super) fn imports_table(changes: &[ResourceChange]) -> bool {
    let kinds: BTreeSet<_> = changes
        .iter()
        .filter(|change| change.logical_id == ids::TABLE.as_str())
        .map(|change| change.kind)
        .collect();
    kinds == BTreeSet::from([Kind::Import])
}

//! The error for an operation that failed.

use crate::advised::{CONTINUE_ROLLBACK, DELETE, RECREATE, RETAIN, RETRY, SKIP};
use crate::cause::Cause;
use crate::deployed::Described;
use crate::events::ResourceEvent;
use crate::patience::{Deadline, patiently};
use crate::situation::Situation;
use crate::{Error, Stack};

impl Stack {
    /// The error for a stack whose last operation failed: the first cause, and how to go on.
    pub(super) async fn failure(&self, stack: &Described, deadline: &Deadline) -> Error {
        // Without the permission to read events, only the status is known.
        let operation = patiently(deadline, || self.cloud.newest_operation(&stack.id)).await;
        let operation = operation.unwrap_or_default();
        let whole = || stack.reason.as_ref().map(|reason| of_stack(stack, reason));
        let cause = Cause::of(&operation).or_else(whole);
        Error::Failed {
            stack: self.name.to_string(),
            status: stack.status.clone(),
            cause: cause.map(Box::new),
            advice: advice(stack.situation(), &operation),
        }
    }
}

fn of_stack(stack: &Described, reason: &str) -> Cause {
    Cause {
        logical_id: stack.name.clone(),
        resource_type: "AWS::CloudFormation::Stack".to_owned(),
        reason: reason.to_owned(),
        advice: None,
    }
}

fn advice(situation: Situation, operation: &[ResourceEvent]) -> String {
    let stuck = stuck_on(operation).join(", ");
    match situation {
        Situation::CreateFailed => {
            format!("`{RECREATE}` deletes the failed stack and creates it again")
        }
        Situation::RolledBack => {
            format!(
                "the stack is as it was before; change the options, or retry the same change with `{RETRY}`"
            )
        }
        Situation::RollbackFailed => format!(
            "the rollback failed too, on {stuck}; repair that and continue with `{CONTINUE_ROLLBACK}` \
             (ContinueUpdateRollback), or skip what cannot be repaired with `{SKIP} ID`"
        ),
        Situation::ImportRollbackFailed => format!(
            "CloudFormation cannot continue this rollback; delete the stack with `{DELETE}`, which keeps the table, and deploy \
             again to import it"
        ),
        Situation::UpdateFailed => format!(
            "the update stopped halfway; roll it back with `{CONTINUE_ROLLBACK}` (RollbackStack) and deploy again"
        ),
        Situation::DeleteFailed => {
            format!("repair {stuck} and delete again, or delete the stack without it (`{RETAIN} {stuck}`)")
        }
        _ => String::new(),
    }
}

/// The resources on which the last phase of an operation, its rollback or deletion, failed.
fn stuck_on(operation: &[ResourceEvent]) -> Vec<String> {
    let failed = operation
        .iter()
        .take_while(|event| !(event.is_of_stack() && event.status.ends_with("ROLLBACK_IN_PROGRESS")));
    let failed = failed.filter(|event| !event.is_of_stack() && event.status.ends_with("_FAILED"));
    let mut ids: Vec<_> = failed.map(|event| event.logical_id.clone()).collect();
    ids.sort();
    ids.dedup();
    if ids.is_empty() {
        vec!["the resource that its events name".to_owned()]
    } else {
        ids
    }
}

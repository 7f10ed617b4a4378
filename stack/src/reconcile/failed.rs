//! What to say about an operation that failed.

use crate::advised::{CONTINUE_ROLLBACK, RECREATE, RETAIN, RETRY, SKIP};
use crate::cause::Cause;
use crate::deployed::Described;
use crate::events::ResourceEvent;
use crate::situation::Situation;
use crate::{Error, Stack};

impl Stack {
    /// The error for a stack whose last operation failed: the first cause, and how to go on.
    pub(super) async fn failure(&self, stack: &Described) -> Error {
        // Without the right to read events the status alone has to do.
        let operation = self.cloud.newest_operation(&stack.id).await.unwrap_or_default();
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
        Situation::FailedCreate => {
            format!("`{RECREATE}` deletes the failed stack and creates it again")
        }
        Situation::RolledBack => {
            format!("the stack is as it was before; change the options, or try the same again with `{RETRY}`")
        }
        Situation::StuckRollback => format!(
            "undoing the update failed as well, on {stuck}; repair that and go on with `{CONTINUE_ROLLBACK}` \
             (ContinueUpdateRollback), or without what cannot be repaired with `{SKIP} ID`"
        ),
        Situation::FailedUpdate => {
            "the update was left half done; roll it back (RollbackStack, or ContinueUpdateRollback) and deploy again".to_owned()
        }
        Situation::FailedDelete => format!(
            "repair {stuck} and delete again, or delete the stack without it (`{RETAIN} {stuck}`)"
        ),
        _ => String::new(),
    }
}

/// The resources that the last part of an operation, its rollback or deletion, failed on.
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

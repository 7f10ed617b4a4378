//! The root cause of a failed operation: the first failure, not the cancellations that followed.

pub(crate) mod advice;

use std::fmt;

use serde::Serialize;

use crate::events::ResourceEvent;

/// The root cause of a failed operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cause {
    /// The resource that failed first.
    pub logical_id: String,
    /// Such as `AWS::IAM::Role`.
    pub resource_type: String,
    /// The reason that AWS gives.
    pub reason: String,
    /// What to do about it.
    pub advice: Option<String>,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}): {}", self.logical_id, self.resource_type, self.reason)?;
        self.advice.iter().try_for_each(|advice| write!(f, "; {advice}"))
    }
}

impl Cause {
    /// The cause in the events of one operation, newest first: the oldest failure that does not follow from another.
    pub(crate) fn of(operation: &[ResourceEvent]) -> Option<Self> {
        let failed = |event: &&ResourceEvent| {
            event.status.ends_with("_FAILED") || event.status.ends_with("ROLLBACK_IN_PROGRESS")
        };
        let failures: Vec<_> = operation
            .iter()
            .rev()
            .filter(failed)
            .filter(|event| event.reason.is_some())
            .collect();
        let own = failures
            .iter()
            .find(|event| !event.is_of_stack() && !consequence(event));
        // A stack may also fail as a whole, before any of its resources does.
        let event = own
            .or_else(|| failures.iter().find(|event| !consequence(event)))
            .or_else(|| failures.first())?;
        let reason = event.reason.clone().unwrap_or_default();
        let advice = advice::on(&event.resource_type, &reason);
        Some(Self {
            logical_id: event.logical_id.clone(),
            resource_type: event.resource_type.clone(),
            reason,
            advice,
        })
    }

    /// Whether the same request will succeed later without a change.
    pub(crate) fn heals(&self) -> bool {
        advice::queue_was_deleted_just_now(&self.reason)
    }
}

fn consequence(event: &ResourceEvent) -> bool {
    let reason = event.reason.as_deref().unwrap_or_default();
    reason.contains("cancelled") || reason.starts_with("The following resource(s) failed")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn event(id: &str, resource_type: &str, status: &str, reason: &str) -> ResourceEvent {
        ResourceEvent {
            id: format!("{id}-{status}"),
            logical_id: id.to_owned(),
            physical_id: String::new(),
            resource_type: resource_type.to_owned(),
            status: status.to_owned(),
            reason: (!reason.is_empty()).then(|| reason.to_owned()),
            time: String::new(),
            token: None,
        }
    }

    const STACK: &str = "AWS::CloudFormation::Stack";

    #[test]
    fn the_first_failure_is_named_and_not_what_was_cancelled_with_it() {
        let mut events = vec![
            event("demo", STACK, "CREATE_IN_PROGRESS", "User Initiated"),
            event("AggregatorRole", "AWS::IAM::Role", "CREATE_IN_PROGRESS", ""),
            event(
                "AggregatorDLQ",
                "AWS::SQS::Queue",
                "CREATE_FAILED",
                "Resource creation cancelled",
            ),
            event(
                "AggregatorRole",
                "AWS::IAM::Role",
                "CREATE_FAILED",
                "demo-aggr already exists",
            ),
            event(
                "RateLimitsTable",
                "AWS::DynamoDB::Table",
                "CREATE_FAILED",
                "Resource creation cancelled",
            ),
            event(
                "demo",
                STACK,
                "ROLLBACK_IN_PROGRESS",
                "The following resource(s) failed to create: [AggregatorDLQ, AggregatorRole].",
            ),
            event(
                "AggregatorRole",
                "AWS::IAM::Role",
                "DELETE_FAILED",
                "something later",
            ),
        ];
        events.reverse();
        let cause = Cause::of(&events).unwrap();
        assert_eq!(
            (&*cause.logical_id, &*cause.reason),
            ("AggregatorRole", "demo-aggr already exists")
        );
        assert!(cause.advice.unwrap().contains("regional_iam_names"));
    }

    #[test]
    fn a_stack_that_fails_as_a_whole_has_its_own_reason() {
        let events = [
            event(
                "demo",
                STACK,
                "ROLLBACK_IN_PROGRESS",
                "Validation failed for resources [X]",
            ),
            event("demo", STACK, "CREATE_IN_PROGRESS", "User Initiated"),
        ];
        assert_eq!(
            Cause::of(&events).unwrap().reason,
            "Validation failed for resources [X]"
        );
    }

    #[test]
    fn without_a_failure_there_is_no_cause() {
        assert_eq!(Cause::of(&[event("demo", STACK, "UPDATE_COMPLETE", "")]), None);
    }
}

//! A change that AWS throttles is made later.

use std::time::Duration;

use aws_sdk_cloudformation::Client as Cfn;
use aws_sdk_cloudformation::operation::create_change_set::{CreateChangeSetError, CreateChangeSetOutput};
use aws_sdk_cloudformation::operation::describe_change_set::{
    DescribeChangeSetError, DescribeChangeSetOutput,
};
use aws_sdk_cloudformation::operation::execute_change_set::{ExecuteChangeSetError, ExecuteChangeSetOutput};
use aws_sdk_cloudformation::operation::update_stack::{UpdateStackError, UpdateStackOutput};
use aws_sdk_cloudformation::types::ChangeSetStatus;
use aws_smithy_mocks::{Rule, mock};
use zae_limiter_stack::{Change, Error, Plan};

use super::states::changeable;
use super::tape::{Tape, refusal};
use super::{CHANGE_SET, ID, changed, count, stack};
use crate::support::calls::Calls;

/// More often than the SDK retries.
pub(crate) const OFTEN: usize = 20;

/// As often as the SDK tries one call.
pub(crate) const ONE_CALL: usize = 8;

/// The update is not shown before it was started.
const UPDATED: &[&str] = &[
    "CREATE_COMPLETE",
    "CREATE_COMPLETE",
    "CREATE_COMPLETE",
    "CREATE_COMPLETE",
    "CREATE_COMPLETE",
    "UPDATE_IN_PROGRESS",
    "UPDATE_COMPLETE",
];

fn throttled_creation() -> Rule {
    mock!(Cfn::create_change_set)
        .sequence()
        .error(|| CreateChangeSetError::generic(refusal("Throttling", "Rate exceeded")))
        .times(OFTEN)
        .output(|| {
            let made = CreateChangeSetOutput::builder().id(CHANGE_SET);
            made.stack_id(ID).build()
        })
        .build()
}

fn throttled_description() -> Rule {
    mock!(Cfn::describe_change_set)
        .sequence()
        .error(|| DescribeChangeSetError::generic(refusal("Throttling", "Rate exceeded")))
        .times(OFTEN)
        .output(|| {
            let ready = DescribeChangeSetOutput::builder().status(ChangeSetStatus::CreateComplete);
            ready.change_set_id(CHANGE_SET).stack_id(ID).build()
        })
        .build()
}

fn throttled_execution(times: usize) -> Rule {
    mock!(Cfn::execute_change_set)
        .sequence()
        .error(|| ExecuteChangeSetError::generic(refusal("Throttling", "Rate exceeded")))
        .times(times)
        .output(|| ExecuteChangeSetOutput::builder().build())
        .build()
}

fn tape(throttled: Rule) -> Tape {
    let mut tape = changeable(UPDATED, "x");
    tape.cloudformation.insert(0, throttled);
    tape
}

async fn planned() -> Plan {
    let planner = stack(&changed(), &changeable(&["CREATE_COMPLETE"], "x")).0;
    planner.plan().await.unwrap()
}

/// The error says that the time is over, and has the last response of AWS as its source.
pub(crate) fn is_out_of_time(error: &Error, time: Duration) {
    assert!(
        matches!(error, Error::Throttled { after, .. } if *after == time),
        "{error:?}"
    );
    assert!(error.to_string().contains("time ran out after"), "{error}");
    let source = std::error::Error::source(error).and_then(|source| source.downcast_ref::<Box<Error>>());
    assert!(
        matches!(source.map(AsRef::as_ref), Some(Error::Call { code, .. }) if code == "Throttling"),
        "{source:?}"
    );
}

fn discarded(calls: &Calls) -> usize {
    count(calls, "DeleteChangeSet")
}

#[tokio::test(start_paused = true)]
async fn each_step_of_a_change_is_tried_again_while_there_is_time() {
    for (operation, rule) in [
        ("CreateChangeSet", throttled_creation()),
        ("DescribeChangeSet", throttled_description()),
        ("ExecuteChangeSet", throttled_execution(OFTEN)),
    ] {
        let (ensures, calls) = stack(&changed(), &tape(rule));
        let outcome = ensures.ensure().await.unwrap();
        assert_eq!(outcome.change, Change::Updated, "{operation}");
        assert_eq!(count(&calls, operation), OFTEN + 1, "{operation}");
        assert_eq!(discarded(&calls), 0, "{operation}: one change set is enough");
    }
}

#[tokio::test(start_paused = true)]
async fn an_update_without_a_change_set_is_tried_again_too() {
    let nothing = mock!(Cfn::describe_change_set).then_output(|| {
        let output = DescribeChangeSetOutput::builder().status(ChangeSetStatus::Failed);
        let output = output.status_reason("The submitted information didn't contain changes.");
        output.change_set_id(CHANGE_SET).stack_id(ID).build()
    });
    let mut tape = tape(nothing);
    let update = mock!(Cfn::update_stack)
        .sequence()
        .error(|| UpdateStackError::generic(refusal("Throttling", "Rate exceeded")))
        .times(OFTEN)
        .output(|| UpdateStackOutput::builder().stack_id(ID).build());
    tape.cloudformation.push(update.build());
    let (ensures, calls) = stack(&changed(), &tape);
    assert_eq!(ensures.ensure().await.unwrap().change, Change::Updated);
    assert_eq!(count(&calls, "UpdateStack"), OFTEN + 1);
    assert_eq!(count(&calls, "CreateChangeSet"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_plan_is_applied_with_its_change_set_once_aws_answers() {
    let plan = planned().await;
    for (operation, rule) in [
        ("DescribeChangeSet", throttled_description()),
        ("ExecuteChangeSet", throttled_execution(OFTEN)),
    ] {
        let (applies, calls) = stack(&changed(), &tape(rule));
        let outcome = applies.apply(&plan).await.unwrap();
        assert_eq!(outcome.change, Change::Updated, "{operation}");
        assert_eq!(count(&calls, operation), OFTEN + 1, "{operation}");
        assert_eq!((count(&calls, "CreateChangeSet"), discarded(&calls)), (0, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn a_plan_that_is_throttled_until_the_time_is_up_can_be_applied_later() {
    let plan = planned().await;
    let (applies, calls) = stack(&changed(), &tape(throttled_execution(1000)));
    let applies = applies.within(Duration::from_secs(90));
    let error = applies.apply(&plan).await.unwrap_err();
    is_out_of_time(&error, Duration::from_secs(90));
    assert_eq!(discarded(&calls), 0, "the plan keeps its change set");

    // Without a plan nobody uses the change set again.
    let (ensures, calls) = stack(&changed(), &tape(throttled_execution(1000)));
    let ensures = ensures.within(Duration::from_secs(90));
    ensures.ensure().await.unwrap_err();
    assert_eq!(discarded(&calls), 1);
}

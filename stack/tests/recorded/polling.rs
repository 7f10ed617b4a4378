//! How often CloudFormation is asked while a process waits.

use std::time::Duration;

use aws_sdk_cloudformation::Client as Cfn;
use aws_sdk_cloudformation::operation::describe_stacks::{DescribeStacksError, DescribeStacksOutput};
use aws_smithy_mocks::mock;
use zae_limiter_stack::Change;

use super::states::{changeable, converged};
use super::tape::{Tape, change_set, described, history, refusal, template};
use super::{NAME, body, changed, count, stack, tags};
use crate::support::bare;

#[tokio::test(start_paused = true)]
async fn a_process_that_waits_for_another_polls_every_15_to_30_seconds_and_reads_no_events() {
    let (waiting, calls) = stack(&bare(), &converged(&["UPDATE_IN_PROGRESS"]));
    let minutes = 10;
    waiting
        .within(Duration::from_secs(minutes * 60))
        .ensure()
        .await
        .unwrap_err();
    let polls = count(&calls, "DescribeStacks");
    // Jitter of 20 percent either way.
    let (fewest, most) = (minutes * 60 / 36, minutes * 60 / 12);
    let asked = u64::try_from(polls).unwrap();
    assert!(
        (fewest..=most).contains(&asked),
        "{asked} polls in {minutes} minutes"
    );
    assert_eq!(count(&calls, "DescribeStackEvents"), 0, "nobody observes");
}

#[tokio::test(start_paused = true)]
async fn our_own_operation_reads_no_events_without_an_observer() {
    let statuses: &[_] = &["UPDATE_COMPLETE", "UPDATE_IN_PROGRESS", "UPDATE_COMPLETE"];
    let (updates, calls) = stack(&changed(), &changeable(statuses, "x"));
    assert_eq!(updates.ensure().await.unwrap().change, Change::Updated);
    assert_eq!(count(&calls, "DescribeStackEvents"), 0);
}

#[tokio::test(start_paused = true)]
async fn throttling_while_an_operation_runs_is_waited_out() {
    let all = tags(&bare());
    let stack_in = |status: &'static str| {
        let all = all.clone();
        move || {
            DescribeStacksOutput::builder()
                .stacks(described(status, &all))
                .build()
        }
    };
    let looked = mock!(Cfn::describe_stacks)
        .sequence()
        .output(stack_in("UPDATE_COMPLETE"))
        .output(stack_in("UPDATE_IN_PROGRESS"))
        .error(|| DescribeStacksError::generic(refusal("Throttling", "Rate exceeded")))
        .times(3)
        .output(stack_in("UPDATE_COMPLETE"))
        .repeatedly()
        .build();
    let events = history(&[(NAME, "", "UPDATE_IN_PROGRESS", "")], "x");
    let mut tape = Tape::of([looked, template(&body(&bare())), events]);
    tape.cloudformation.extend(change_set(vec![]));
    let (updates, calls) = stack(&changed(), &tape.with_free_names());
    assert_eq!(updates.ensure().await.unwrap().change, Change::Updated);
    assert_eq!(count(&calls, "ExecuteChangeSet"), 1, "it is not started again");
}

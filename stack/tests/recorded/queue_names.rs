//! SQS blocks the name of a deleted queue for 60 seconds: a creation that fails for that is tried once more, and an
//! import waits before it starts.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use aws_sdk_cloudformation::Client as Cfn;
use aws_sdk_cloudformation::operation::describe_stack_events::DescribeStackEventsOutput;
use aws_sdk_cloudformation::operation::list_stacks::{ListStacksError, ListStacksOutput};
use aws_sdk_cloudformation::primitives::DateTime;
use aws_sdk_cloudformation::types::{ResourceStatus, StackEvent, StackStatus, StackSummary};
use aws_smithy_mocks::{Rule, mock};
use zae_limiter_stack::{Change, Error, Event};

use super::logged_import::Import;
use super::tape::{Tape, created, deletion, history, looks, refusal, template};
use super::{ID, NAME, body, count, stack, tags};
use crate::support::{Diary, bare};

/// What CloudFormation reports about the name of a queue that was deleted just now.
const BLOCKED: &str =
    "You must wait 60 seconds after deleting a queue before you can create another with the same name.";

/// A stack with these statuses, one after the other, whose creation fails because of the name of a queue.
fn blocked(statuses: &'static [&'static str]) -> Tape {
    let events = [
        (NAME, "", "CREATE_IN_PROGRESS", "User Initiated"),
        ("AggregatorDLQ", "AWS::SQS::Queue", "CREATE_FAILED", BLOCKED),
    ];
    let rules = [
        looks(statuses, tags(&bare())),
        template(&body(&bare())),
        created(),
        deletion(),
        history(&events, "zl"),
    ];
    Tape::of(rules).with_free_site()
}

#[tokio::test(start_paused = true)]
async fn m2_a_queue_that_was_deleted_just_now_is_waited_for_once() {
    let heals: &[_] = &[
        "",
        "ROLLBACK_COMPLETE",
        "ROLLBACK_COMPLETE",
        "DELETE_COMPLETE",
        "CREATE_COMPLETE",
    ];
    let diary = Diary::default();
    let (once, calls) = stack(&bare(), &blocked(heals));
    assert_eq!(
        once.observer(diary.clone()).ensure().await.unwrap().change,
        Change::Created
    );
    assert_eq!(
        (count(&calls, "CreateStack"), count(&calls, "DeleteStack")),
        (2, 1)
    );
    let waited = diary.events().iter().any(|event| {
        matches!(
            event,
            Event::TryingAgain {
                after_seconds: 60,
                ..
            }
        )
    });
    assert!(waited);

    let never: &[_] = &[
        "",
        "ROLLBACK_COMPLETE",
        "ROLLBACK_COMPLETE",
        "DELETE_COMPLETE",
        "ROLLBACK_COMPLETE",
    ];
    let (twice, calls) = stack(&bare(), &blocked(never));
    let error = twice.ensure().await.unwrap_err();
    assert!(matches!(error, Error::Failed { .. }), "{error}");
    assert_eq!(count(&calls, "CreateStack"), 2);
}

#[tokio::test(start_paused = true)]
async fn m2_a_plan_too_waits_once_for_a_queue_that_was_deleted_just_now() {
    let heals: &[_] = &[
        "",
        "",
        "ROLLBACK_COMPLETE",
        "ROLLBACK_COMPLETE",
        "DELETE_COMPLETE",
        "CREATE_COMPLETE",
    ];
    let (stack, calls) = stack(&bare(), &blocked(heals));
    let plan = stack.plan().await.unwrap();
    assert_eq!(stack.apply(&plan).await.unwrap().change, Change::Created);
    assert_eq!(
        (count(&calls, "CreateStack"), count(&calls, "DeleteStack")),
        (2, 1)
    );
}

#[tokio::test(start_paused = true)]
async fn m2_a_failure_that_time_does_not_heal_is_not_cleared_away() {
    // While we wait for the queue's name, somebody else makes the stack and fails for another reason.
    let statuses: &[_] = &["", "ROLLBACK_COMPLETE"];
    let asked = AtomicUsize::new(0);
    let events = mock!(Cfn::describe_stack_events).then_compute_output(move |_| {
        // Told to the caller while the creation runs, and asked for once more for the cause.
        let reason = if asked.fetch_add(1, Ordering::SeqCst) < 2 {
            BLOCKED
        } else {
            "the quota of queues is used up"
        };
        let event = StackEvent::builder().event_id("1").stack_name(NAME).stack_id(ID);
        let event = event
            .logical_resource_id("AggregatorDLQ")
            .resource_type("AWS::SQS::Queue")
            .resource_status(ResourceStatus::CreateFailed)
            .resource_status_reason(reason)
            .timestamp(DateTime::from_secs(0));
        let events = DescribeStackEventsOutput::builder();
        events.stack_events(event.build()).build()
    });
    let rules = [
        looks(statuses, tags(&bare())),
        template(&body(&bare())),
        created(),
        deletion(),
        events,
    ];
    let (stack, calls) = stack(&bare(), &Tape::of(rules).with_free_site());
    let error = stack.observer(Diary::default()).ensure().await.unwrap_err();
    assert!(error.to_string().contains("quota"), "{error}");
    assert_eq!(count(&calls, "DeleteStack"), 0);
}

/// A stack that was deleted some time ago.
fn deleted(name: &'static str, seconds_ago: u64) -> Rule {
    mock!(Cfn::list_stacks)
        .match_requests(|input| input.stack_status_filter() == [StackStatus::DeleteComplete])
        .then_output(move || {
            let time = SystemTime::now() - Duration::from_secs(seconds_ago);
            let summary = StackSummary::builder()
                .stack_name(name)
                .deletion_time(DateTime::from(time));
            let summary = summary
                .creation_time(DateTime::from_secs(0))
                .stack_status(StackStatus::DeleteComplete);
            ListStacksOutput::builder()
                .stack_summaries(summary.build())
                .build()
        })
}

#[tokio::test(start_paused = true)]
async fn an_import_waits_until_sqs_frees_the_names_of_deleted_queues() {
    let denied =
        mock!(Cfn::list_stacks).then_error(|| ListStacksError::generic(refusal("AccessDenied", "no")));
    let cases = [
        (deleted(NAME, 20), true),
        (deleted(NAME, 61), false),
        (deleted("other", 20), false),
        (denied, false),
    ];
    for (last, waits) in cases {
        let (mut import, options) = Import::with_aggregator();
        import.tape.cloudformation.push(last);
        let diary = Diary::default();
        let (importing, _) = stack(&options, &import.tape);
        let started = tokio::time::Instant::now();
        let outcome = importing.observer(diary.clone()).ensure().await.unwrap();
        assert_eq!(outcome.change, Change::Imported);
        let waited = diary
            .events()
            .iter()
            .any(|event| matches!(event, Event::TryingAgain { .. }));
        assert_eq!(
            (waited, started.elapsed() >= Duration::from_secs(39)),
            (waits, waits)
        );
    }
}

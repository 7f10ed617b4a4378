//! Operations of our own that fail.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use aws_sdk_cloudformation::Client as Cfn;
use aws_sdk_cloudformation::operation::continue_update_rollback::ContinueUpdateRollbackOutput;
use aws_sdk_cloudformation::operation::describe_stack_events::DescribeStackEventsOutput;
use aws_sdk_cloudformation::operation::rollback_stack::RollbackStackOutput;
use aws_sdk_cloudformation::primitives::DateTime;
use aws_sdk_cloudformation::types::{ResourceStatus, StackEvent};
use aws_smithy_mocks::mock;
use zae_limiter_stack::{Error, Event};

use super::tape::{Tape, change_set, created, deletion, history, looks, no_resources, template};
use super::{ID, NAME, body, changed, count, stack, tags};
use crate::support::{Diary, bare};

#[tokio::test(start_paused = true)]
async fn a_creation_that_is_rolled_back_tells_the_first_cause_with_advice() {
    let cases = [
        (
            "AggregatorRole",
            "AWS::IAM::Role",
            "demo-aggr already exists in stack arn:x",
            "regional_iam_names",
        ),
        (
            "AggregatorLogGroup",
            "AWS::Logs::LogGroup",
            "/aws/lambda/demo-aggregator already exists",
            "delete it",
        ),
        (
            "AggregatorFunction",
            "AWS::Lambda::Function",
            "Error occurred while GetObject. S3 Error Code: NoSuchKey.",
            "archives",
        ),
        (
            "AcquireOnlyPolicy",
            "AWS::IAM::ManagedPolicy",
            "User: arn:aws:iam::1:user/x is not authorized to perform: iam:CreatePolicy on resource: policy demo-acq",
            "allow iam:CreatePolicy",
        ),
    ];
    for (id, kind, reason, advised) in cases {
        let events = [
            (NAME, "", "CREATE_IN_PROGRESS", "User Initiated"),
            (id, kind, "CREATE_FAILED", reason),
            (
                "FullAccessPolicy",
                "AWS::IAM::ManagedPolicy",
                "CREATE_FAILED",
                "Resource creation cancelled",
            ),
            (
                NAME,
                "",
                "ROLLBACK_IN_PROGRESS",
                "The following resource(s) failed to create: [FullAccessPolicy].",
            ),
            (NAME, "", "ROLLBACK_COMPLETE", ""),
        ];
        let statuses: &[_] = &[
            "",
            "CREATE_IN_PROGRESS",
            "ROLLBACK_IN_PROGRESS",
            "ROLLBACK_COMPLETE",
        ];
        let tape =
            Tape::of([looks(statuses, tags(&bare())), created(), history(&events, "zl")]).with_free_site();
        let diary = Diary::default();
        let error = stack(&bare(), &tape)
            .0
            .observer(diary.clone())
            .ensure()
            .await
            .unwrap_err();
        let Error::Failed {
            cause: Some(cause),
            status,
            ..
        } = &error
        else {
            panic!("{error}")
        };
        assert_eq!(
            (cause.logical_id.as_str(), status.as_str()),
            (id, "ROLLBACK_COMPLETE")
        );
        assert!(
            cause.advice.as_deref().unwrap_or_default().contains(advised),
            "{error}"
        );
        let told = diary
            .events()
            .iter()
            .filter(|event| matches!(event, Event::Resource(_)))
            .count();
        assert_eq!(told, events.len(), "each event is told once");
    }
}

#[tokio::test(start_paused = true)]
async fn an_update_that_is_rolled_back_says_that_the_stack_is_as_before() {
    let events = [
        (NAME, "", "UPDATE_IN_PROGRESS", "User Initiated"),
        (
            "RateLimitsTable",
            "AWS::DynamoDB::Table",
            "UPDATE_FAILED",
            "Subscriber limit exceeded: Only 1 online index",
        ),
        (
            NAME,
            "",
            "UPDATE_ROLLBACK_IN_PROGRESS",
            "The following resource(s) failed to update: [RateLimitsTable].",
        ),
    ];
    let statuses: &[_] = &[
        "CREATE_COMPLETE",
        "UPDATE_IN_PROGRESS",
        "UPDATE_ROLLBACK_COMPLETE",
    ];
    let mut tape = Tape::of([
        looks(statuses, tags(&bare())),
        template(&body(&bare())),
        history(&events, "zl"),
    ]);
    tape.cloudformation.extend(change_set(vec![]));
    let error = stack(&changed(), &tape.with_free_names())
        .0
        .ensure()
        .await
        .unwrap_err();
    let said = error.to_string();
    assert!(
        said.contains("Subscriber limit exceeded") && said.contains("as it was before"),
        "{said}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_failed_rollback_is_continued_with_what_is_skipped_named() {
    let go_on = mock!(Cfn::continue_update_rollback)
        .match_requests(|input| input.resources_to_skip() == ["AggregatorDLQ"])
        .then_output(|| ContinueUpdateRollbackOutput::builder().build());
    let statuses: &[_] = &[
        "UPDATE_ROLLBACK_FAILED",
        "UPDATE_ROLLBACK_IN_PROGRESS",
        "UPDATE_ROLLBACK_COMPLETE",
    ];
    let tape = Tape::of([
        looks(statuses, tags(&bare())),
        template(&body(&bare())),
        go_on,
        history(&[], "x"),
    ]);
    let status = stack(&bare(), &tape)
        .0
        .continue_rollback(&["AggregatorDLQ".to_owned()])
        .await
        .unwrap();
    assert_eq!(status.status, "UPDATE_ROLLBACK_COMPLETE");

    let roll_back = mock!(Cfn::rollback_stack).then_output(|| RollbackStackOutput::builder().build());
    let statuses: &[_] = &[
        "UPDATE_FAILED",
        "UPDATE_ROLLBACK_IN_PROGRESS",
        "UPDATE_ROLLBACK_COMPLETE",
    ];
    let rules = [
        looks(statuses, tags(&bare())),
        template(&body(&bare())),
        roll_back,
    ];
    let (halfway, calls) = stack(&bare(), &Tape::of(rules));
    let status = halfway.continue_rollback(&[]).await.unwrap();
    assert_eq!(status.status, "UPDATE_ROLLBACK_COMPLETE");
    assert_eq!(
        count(&calls, "ContinueUpdateRollback"),
        0,
        "AWS accepts it after UPDATE_ROLLBACK_FAILED only"
    );

    let well = Tape::of([
        looks(&["UPDATE_COMPLETE"], tags(&bare())),
        template(&body(&bare())),
    ]);
    let error = stack(&bare(), &well).0.continue_rollback(&[]).await.unwrap_err();
    assert!(matches!(error, Error::NoRollback { .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_rollback_that_fails_again_is_an_error() {
    let statuses: &[_] = &[
        "UPDATE_ROLLBACK_FAILED",
        "UPDATE_ROLLBACK_IN_PROGRESS",
        "UPDATE_ROLLBACK_FAILED",
    ];
    let rules = [
        looks(statuses, tags(&bare())),
        template(&body(&bare())),
        mock!(Cfn::continue_update_rollback).then_output(|| ContinueUpdateRollbackOutput::builder().build()),
        history(&[(NAME, "", "UPDATE_ROLLBACK_FAILED", "")], "x"),
    ];
    let (stuck, calls) = stack(&bare(), &Tape::of(rules));
    let error = stuck.continue_rollback(&[]).await.unwrap_err();
    assert!(
        matches!(&error, Error::Failed { status, .. } if status == "UPDATE_ROLLBACK_FAILED"),
        "{error}"
    );
    assert_eq!(count(&calls, "ContinueUpdateRollback"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_deletion_that_fails_is_an_error_and_purges_nothing() {
    let events = [
        (NAME, "", "DELETE_IN_PROGRESS", "User Initiated"),
        (
            "AppRole",
            "AWS::IAM::Role",
            "DELETE_FAILED",
            "must detach all policies first",
        ),
    ];
    let statuses: &[_] = &["CREATE_COMPLETE", "DELETE_IN_PROGRESS", "DELETE_FAILED"];
    let rules = [
        looks(statuses, tags(&bare())),
        template(&body(&bare())),
        deletion(),
        no_resources(),
        history(&events, "x"),
    ];
    let (stack, calls) = stack(&bare(), &Tape::of(rules));
    let purge = zae_limiter_stack::Deletion {
        purge: true,
        ..Default::default()
    };
    let error = stack.delete_with(&purge).await.unwrap_err();
    assert!(error.to_string().contains("detach"), "{error}");
    assert_eq!(count(&calls, "DeleteTable"), 0);
}

#[tokio::test(start_paused = true)]
async fn events_of_the_last_operation_are_not_told_as_if_they_were_new() {
    let statuses: &[_] = &[
        "UPDATE_COMPLETE",
        "UPDATE_COMPLETE",
        "UPDATE_COMPLETE",
        "UPDATE_IN_PROGRESS",
        "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS",
    ];
    // The events of whatever operation shows when they are asked for.
    let looked = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&looked);
    let look = looks(statuses, tags(&bare()));
    let counting = mock!(Cfn::describe_stacks)
        .match_requests(move |_| {
            seen.fetch_add(1, Ordering::SeqCst);
            false
        })
        .then_output(|| unreachable!());
    let events = mock!(Cfn::describe_stack_events).then_compute_output(move |_| {
        let new = looked.load(Ordering::SeqCst) > 3;
        let id = if new { "new" } else { "old" };
        let event = StackEvent::builder().event_id(id).stack_name(NAME).stack_id(ID);
        let event = event
            .logical_resource_id(NAME)
            .resource_type("AWS::CloudFormation::Stack")
            .resource_status(ResourceStatus::UpdateInProgress)
            .timestamp(DateTime::from_secs(0));
        DescribeStackEventsOutput::builder()
            .stack_events(event.build())
            .build()
    });
    let mut tape = Tape::of([counting, look, template(&body(&bare())), events]);
    tape.cloudformation.extend(change_set(vec![]));
    let diary = Diary::default();
    let (stack, _) = stack(&changed(), &tape.with_free_names());
    stack.observer(diary.clone()).ensure().await.unwrap();
    let told: Vec<_> = diary
        .events()
        .into_iter()
        .filter_map(|event| match event {
            Event::Resource(event) => Some(event.id),
            _ => None,
        })
        .collect();
    assert_eq!(told, ["new"]);
}

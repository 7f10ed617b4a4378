//! Stacks whose last operation failed permanently.

use aws_sdk_cloudformation::Client as Cfn;
use aws_sdk_cloudformation::operation::describe_stack_events::DescribeStackEventsError;
use aws_sdk_cloudformation::operation::describe_stacks::DescribeStacksOutput;
use aws_smithy_mocks::mock;
use zae_limiter_stack::{Action, Change, Error};

use super::tape::{Tape, created, deletion, described, history, looks, refusal, template};
use super::{NAME, body, changed, count, stack, tags};
use crate::support::bare;

#[tokio::test(start_paused = true)]
async fn a_failed_creation_tells_its_cause_and_is_made_again_only_when_asked() {
    let failed = [
        (NAME, "", "CREATE_IN_PROGRESS", "User Initiated"),
        (
            "AcquireOnlyPolicy",
            "AWS::IAM::ManagedPolicy",
            "CREATE_FAILED",
            "Policy demo-acq already exists",
        ),
        (
            "RateLimitsTable",
            "AWS::DynamoDB::Table",
            "CREATE_FAILED",
            "Resource creation cancelled",
        ),
        (NAME, "", "ROLLBACK_COMPLETE", ""),
    ];
    for status in ["CREATE_FAILED", "ROLLBACK_COMPLETE", "ROLLBACK_FAILED"] {
        let once: &'static [&'static str] = vec![status].leak();
        let tape = Tape::of([
            looks(once, tags(&bare())),
            template(&body(&bare())),
            history(&failed, "x"),
        ]);
        let (careful, _) = stack(&bare(), &tape);
        let error = careful.ensure().await.unwrap_err();
        let Error::Failed {
            cause: Some(cause),
            advice,
            ..
        } = &error
        else {
            panic!("{error}")
        };
        assert_eq!(cause.logical_id, "AcquireOnlyPolicy", "{error}");
        assert!(advice.contains("--recreate-failed"), "{error}");

        let again: &'static [&'static str] =
            vec![status, "DELETE_IN_PROGRESS", "DELETE_COMPLETE", "CREATE_COMPLETE"].leak();
        let rules = [
            looks(again, tags(&bare())),
            template(&body(&bare())),
            history(&failed, "x"),
            deletion(),
            created(),
        ];
        let (bold, calls) = stack(&bare(), &Tape::of(rules).with_free_site());
        assert_eq!(
            bold.recreate_failed(true).ensure().await.unwrap().change,
            Change::Created
        );
        assert_eq!(count(&calls, "DeleteStack"), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn where_events_cannot_be_read_the_stack_itself_tells_the_cause() {
    let told = mock!(Cfn::describe_stacks).then_output(|| {
        let mut stack = described("UPDATE_ROLLBACK_FAILED", &tags(&bare()));
        let reason = "The following resource(s) failed to update: [AppRole].";
        stack.stack_status_reason = Some(reason.to_owned());
        DescribeStacksOutput::builder().stacks(stack).build()
    });
    let blind = mock!(Cfn::describe_stack_events)
        .then_error(|| DescribeStackEventsError::generic(refusal("AccessDenied", "no")));
    let tape = Tape::of([told, template(&body(&bare())), blind]);
    let error = stack(&changed(), &tape).0.ensure().await.unwrap_err();
    let Error::Failed {
        cause: Some(cause), ..
    } = &error
    else {
        panic!("{error}")
    };
    assert_eq!(cause.logical_id, NAME);
    assert!(cause.reason.contains("AppRole"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_stack_that_is_stuck_is_left_alone_and_named() {
    let stuck = [
        (NAME, "", "UPDATE_IN_PROGRESS", "User Initiated"),
        (
            "AggregatorFunction",
            "AWS::Lambda::Function",
            "UPDATE_FAILED",
            "S3 Error Code: NoSuchKey",
        ),
        (
            NAME,
            "",
            "UPDATE_ROLLBACK_IN_PROGRESS",
            "The following resource(s) failed to update: [AggregatorFunction].",
        ),
        (
            "AggregatorDLQ",
            "AWS::SQS::Queue",
            "UPDATE_FAILED",
            "Queue does not exist",
        ),
        (NAME, "", "UPDATE_ROLLBACK_FAILED", ""),
    ];
    let cases: [(&'static [_], &str); 3] = [
        (&["UPDATE_ROLLBACK_FAILED"], "ContinueUpdateRollback"),
        (&["IMPORT_ROLLBACK_FAILED"], "`zae-limiter delete`"),
        (&["UPDATE_FAILED"], "RollbackStack"),
    ];
    for (statuses, advised) in cases {
        let tape = Tape::of([
            looks(statuses, tags(&bare())),
            template(&body(&bare())),
            history(&stuck, "x"),
        ]);
        let error = stack(&changed(), &tape)
            .0
            .recreate_failed(true)
            .ensure()
            .await
            .unwrap_err();
        let Error::Failed {
            cause: Some(cause),
            advice,
            ..
        } = &error
        else {
            panic!("{error}")
        };
        assert_eq!(
            cause.logical_id, "AggregatorFunction",
            "the first failure, not the last: {error}"
        );
        assert!(advice.contains(advised), "{error}");
        if advised == "ContinueUpdateRollback" {
            assert!(
                advice.contains("AggregatorDLQ"),
                "what has to be repaired or skipped: {error}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_deletion_names_what_stands_in_its_way() {
    let events = [
        (NAME, "", "DELETE_IN_PROGRESS", "User Initiated"),
        (
            "AppRole",
            "AWS::IAM::Role",
            "DELETE_FAILED",
            "Cannot delete entity, must detach all policies first.",
        ),
        (
            NAME,
            "",
            "DELETE_FAILED",
            "The following resource(s) failed to delete: [AppRole].",
        ),
    ];
    let tape = Tape::of([
        looks(&["DELETE_FAILED"], tags(&bare())),
        template(&body(&bare())),
        history(&events, "x"),
    ]);
    let error = stack(&bare(), &tape).0.ensure().await.unwrap_err();
    let Error::Failed {
        cause: Some(cause),
        advice,
        ..
    } = &error
    else {
        panic!("{error}")
    };
    assert!(
        cause.reason.contains("detach") && advice.contains("--retain AppRole"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn making_a_failed_stack_again_can_be_planned() {
    let failed = history(&[(NAME, "", "CREATE_IN_PROGRESS", "User Initiated")], "x");
    let looked = looks(&["ROLLBACK_COMPLETE"], tags(&bare()));
    let (planner, calls) = stack(&bare(), &Tape::of([looked, template(&body(&bare())), failed]));
    let plan = planner.recreate_failed(true).plan().await.unwrap();
    assert_eq!(plan.action, Action::Recreate);
    assert_eq!(count(&calls, "DeleteStack"), 0, "planning deletes nothing");

    let again: &[_] = &[
        "ROLLBACK_COMPLETE",
        "DELETE_IN_PROGRESS",
        "DELETE_COMPLETE",
        "CREATE_COMPLETE",
    ];
    let events = history(&[(NAME, "", "CREATE_IN_PROGRESS", "User Initiated")], "x");
    let rules = [
        looks(again, tags(&bare())),
        template(&body(&bare())),
        events,
        deletion(),
        created(),
    ];
    let (applier, calls) = stack(&bare(), &Tape::of(rules).with_free_site());
    assert_eq!(applier.apply(&plan).await.unwrap().change, Change::Created);
    assert_eq!(count(&calls, "DeleteStack"), 1);
}

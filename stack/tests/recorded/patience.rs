//! Operations that AWS throttles for longer than the SDK retries: they are made later, not given up.

use aws_sdk_cloudformation::Client as Cfn;
use aws_sdk_cloudformation::operation::continue_update_rollback::{
    ContinueUpdateRollbackError, ContinueUpdateRollbackOutput,
};
use aws_sdk_cloudformation::operation::create_stack::{CreateStackError, CreateStackOutput};
use aws_sdk_cloudformation::operation::describe_stack_drift_detection_status::{
    DescribeStackDriftDetectionStatusError, DescribeStackDriftDetectionStatusOutput,
};
use aws_sdk_cloudformation::operation::describe_stack_events::{
    DescribeStackEventsError, DescribeStackEventsOutput,
};
use aws_sdk_cloudformation::operation::describe_stack_resource_drifts::{
    DescribeStackResourceDriftsError, DescribeStackResourceDriftsOutput,
};
use aws_sdk_cloudformation::operation::describe_stacks::{DescribeStacksError, DescribeStacksOutput};
use aws_sdk_cloudformation::operation::detect_stack_drift::{DetectStackDriftError, DetectStackDriftOutput};
use aws_sdk_cloudformation::operation::execute_change_set::ExecuteChangeSetError;
use aws_sdk_cloudformation::operation::get_template::{GetTemplateError, GetTemplateOutput};
use aws_sdk_cloudformation::operation::list_stacks::{ListStacksError, ListStacksOutput};
use aws_sdk_cloudformation::operation::rollback_stack::{RollbackStackError, RollbackStackOutput};
use aws_sdk_cloudformation::types::{
    ResourceStatus, StackDriftDetectionStatus, StackDriftStatus, StackEvent,
};
use aws_smithy_mocks::mock;
use zae_limiter_stack::{Change, Error, Event, Mode, Stack, Verdict};

use super::logged_import::Import;
use super::states::converged;
use super::tape::{Tape, described, history, looks, refusal, template};
use super::throttling::{OFTEN, ONE_CALL};
use super::{ID, NAME, body, count, stack, tags};
use crate::support::{Diary, bare};

/// The response of an operation that is throttled at first.
macro_rules! throttled {
    ($operation:ident, $error:ident, $output:expr) => {
        throttled!($operation, $error, $output, OFTEN)
    };
    ($operation:ident, $error:ident, $output:expr, $times:expr) => {
        mock!(Cfn::$operation)
            .sequence()
            .error(|| $error::generic(refusal("Throttling", "Rate exceeded")))
            .times($times)
            .output($output)
            .repeatedly()
            .build()
    };
}

fn in_status(status: &'static str) -> impl Fn() -> DescribeStacksOutput {
    move || {
        DescribeStacksOutput::builder()
            .stacks(described(status, &tags(&bare())))
            .build()
    }
}

#[tokio::test(start_paused = true)]
async fn drift_is_detected_once_aws_answers() {
    let body = body(&bare()).to_string();
    let rules = [
        throttled!(describe_stacks, DescribeStacksError, in_status("CREATE_COMPLETE")),
        throttled!(get_template, GetTemplateError, move || {
            GetTemplateOutput::builder().template_body(&body).build()
        }),
        throttled!(detect_stack_drift, DetectStackDriftError, || {
            DetectStackDriftOutput::builder()
                .stack_drift_detection_id("1")
                .build()
        }),
        throttled!(
            describe_stack_drift_detection_status,
            DescribeStackDriftDetectionStatusError,
            || {
                DescribeStackDriftDetectionStatusOutput::builder()
                    .detection_status(StackDriftDetectionStatus::DetectionComplete)
                    .stack_drift_status(StackDriftStatus::InSync)
                    .build()
            }
        ),
        throttled!(
            describe_stack_resource_drifts,
            DescribeStackResourceDriftsError,
            || { DescribeStackResourceDriftsOutput::builder().build() }
        ),
    ];
    let (looks, calls) = stack(&bare(), &Tape::of(rules));
    assert_eq!(looks.drift().await.unwrap().verdict, Verdict::InSync);
    for operation in [
        "DescribeStacks",
        "GetTemplate",
        "DetectStackDrift",
        "DescribeStackDriftDetectionStatus",
        "DescribeStackResourceDrifts",
    ] {
        assert_eq!(count(&calls, operation), OFTEN + 1, "{operation}");
    }
}

#[tokio::test(start_paused = true)]
async fn stacks_are_found_and_their_status_is_read_once_aws_answers() {
    let throttled = || {
        throttled!(
            describe_stacks,
            DescribeStacksError,
            in_status("CREATE_COMPLETE"),
            ONE_CALL
        )
    };
    let found = Stack::discover_with(Tape::of([throttled()]).clients())
        .await
        .unwrap();
    assert_eq!(found.len(), 1);
    let (looks, _) = stack(&bare(), &Tape::of([throttled(), template(&body(&bare()))]));
    assert_eq!(looks.status().await.unwrap().unwrap().status, "CREATE_COMPLETE");
}

#[tokio::test(start_paused = true)]
async fn a_rollback_goes_on_once_aws_answers() {
    for (failed, operation, rule) in [
        (
            "UPDATE_ROLLBACK_FAILED",
            "ContinueUpdateRollback",
            throttled!(continue_update_rollback, ContinueUpdateRollbackError, || {
                ContinueUpdateRollbackOutput::builder().build()
            }),
        ),
        (
            "UPDATE_FAILED",
            "RollbackStack",
            throttled!(rollback_stack, RollbackStackError, || {
                RollbackStackOutput::builder().build()
            }),
        ),
    ] {
        let looked = mock!(Cfn::describe_stacks)
            .sequence()
            .output(in_status(failed))
            .output(in_status("UPDATE_ROLLBACK_COMPLETE"))
            .repeatedly()
            .build();
        let tape = Tape::of([looked, template(&body(&bare())), rule]);
        let (continues, calls) = stack(&bare(), &tape);
        let status = continues.continue_rollback(&[]).await.unwrap();
        assert_eq!(status.status, "UPDATE_ROLLBACK_COMPLETE");
        assert_eq!(count(&calls, operation), OFTEN + 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_stack_is_created_once_aws_answers() {
    let created = throttled!(create_stack, CreateStackError, || {
        CreateStackOutput::builder().stack_id(ID).build()
    });
    let statuses: &[_] = &["", "CREATE_IN_PROGRESS", "CREATE_COMPLETE"];
    let tape = Tape::of([looks(statuses, tags(&bare())), created]).with_free_site();
    let (creates, calls) = stack(&bare(), &tape);
    assert_eq!(creates.ensure().await.unwrap().change, Change::Created);
    assert_eq!(count(&calls, "CreateStack"), OFTEN + 1);
    assert_eq!(count(&calls, "DescribeTable"), 1, "the site is looked at once");
}

#[tokio::test(start_paused = true)]
async fn the_names_of_deleted_queues_are_looked_up_once_aws_answers() {
    let listed = throttled!(list_stacks, ListStacksError, || ListStacksOutput::builder()
        .build());
    let (mut import, options) = Import::with_aggregator();
    import.tape.cloudformation.push(listed);
    let diary = Diary::default();
    let (imports, calls) = stack(&options, &import.tape);
    let outcome = imports.observer(diary.clone()).ensure().await.unwrap();
    assert_eq!(outcome.change, Change::Imported);
    assert_eq!(count(&calls, "ListStacks"), OFTEN + 1);
    let skipped = diary
        .events()
        .into_iter()
        .find(|event| matches!(event, Event::NotChecked { what, .. } if what.contains("queues")));
    assert!(skipped.is_none(), "{skipped:?}");
}

#[tokio::test(start_paused = true)]
async fn the_cause_of_a_failure_is_read_once_aws_answers() {
    let event = StackEvent::builder()
        .event_id("1")
        .stack_id(ID)
        .stack_name(NAME)
        .logical_resource_id("RateLimitsTable")
        .resource_type("AWS::DynamoDB::Table")
        .resource_status(ResourceStatus::CreateFailed)
        .resource_status_reason("too many tables")
        .build();
    let events = throttled!(describe_stack_events, DescribeStackEventsError, move || {
        DescribeStackEventsOutput::builder()
            .stack_events(event.clone())
            .build()
    });
    let rules = [
        looks(&["ROLLBACK_COMPLETE"], tags(&bare())),
        template(&body(&bare())),
        events,
    ];
    let error = stack(&bare(), &Tape::of(rules)).0.ensure().await.unwrap_err();
    let Error::Failed {
        cause: Some(cause), ..
    } = &error
    else {
        panic!("{error}")
    };
    assert_eq!(cause.reason, "too many tables");
}

#[tokio::test(start_paused = true)]
async fn whether_a_process_may_deploy_is_found_out_once_aws_answers() {
    let denied = mock!(Cfn::execute_change_set)
        .sequence()
        .error(|| ExecuteChangeSetError::generic(refusal("Throttling", "Rate exceeded")))
        .times(OFTEN)
        .error(|| ExecuteChangeSetError::generic(refusal("AccessDenied", "not for you")))
        .repeatedly()
        .build();
    let mut tape = converged(&["UPDATE_ROLLBACK_FAILED"]);
    tape.cloudformation.insert(
        0,
        history(
            &[("RateLimitsTable", "AWS::DynamoDB::Table", "UPDATE_FAILED", "x")],
            "x",
        ),
    );
    tape.cloudformation.push(denied);
    let (observes, _) = stack(&bare(), &tape);
    let outcome = observes.mode(Mode::Auto).ensure().await.unwrap();
    assert!(outcome.warnings[0].contains("only observed"), "{outcome:?}");
}

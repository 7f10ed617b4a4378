//! When waiting ends, and what the error says then.

use std::time::Duration;

use aws_sdk_cloudformation::Client as Cfn;
use aws_sdk_cloudformation::operation::create_change_set::CreateChangeSetError;
use aws_sdk_cloudformation::operation::describe_stacks::{DescribeStacksError, DescribeStacksOutput};
use aws_smithy_mocks::{Rule, mock};
use tokio::time::Instant;
use zae_limiter_stack::{Error, Mode, Stack};

use super::tape::{Tape, described, looks, refusal, template};
use super::throttling::is_out_of_time;
use super::{body, changed, stack, tags};
use crate::support::bare;

/// The longest pause between two polls of another process's operation, with its jitter.
const POLL: Duration = Duration::from_secs(36);

fn throttled() -> Rule {
    mock!(Cfn::describe_stacks)
        .then_error(|| DescribeStacksError::generic(refusal("Throttling", "Rate exceeded")))
}

#[tokio::test(start_paused = true)]
async fn an_application_that_deploys_and_then_observes_has_one_deadline_for_both() {
    // Another process deploys twice. In between, this one finds out that it may not deploy itself.
    let deployed: &[_] = &[
        "UPDATE_IN_PROGRESS",
        "UPDATE_IN_PROGRESS",
        "UPDATE_IN_PROGRESS",
        "UPDATE_COMPLETE",
        "UPDATE_COMPLETE",
        "UPDATE_IN_PROGRESS",
    ];
    let denied = mock!(Cfn::create_change_set)
        .then_error(|| CreateChangeSetError::generic(refusal("AccessDenied", "not for you")));
    let tape = Tape::of([looks(deployed, tags(&bare())), template(&body(&bare())), denied]);
    let (app, calls) = stack(&changed(), &tape.with_free_names());
    let (began, allowed) = (Instant::now(), Duration::from_secs(100));
    let app = app.mode(Mode::Auto).within(allowed);
    let error = app.ensure().await.unwrap_err();
    assert!(matches!(error, Error::TimedOut { .. }), "{error}");
    assert_eq!(
        super::count(&calls, "CreateChangeSet"),
        1,
        "it waited once before"
    );
    assert!(began.elapsed() <= allowed + POLL, "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_poll_that_is_throttled_to_the_end_says_that_time_ran_out() {
    let tags = tags(&bare());
    let busy = mock!(Cfn::describe_stacks)
        .sequence()
        .output(move || {
            let stack = described("UPDATE_IN_PROGRESS", &tags);
            DescribeStacksOutput::builder().stacks(stack).build()
        })
        .error(|| DescribeStacksError::generic(refusal("Throttling", "Rate exceeded")))
        .repeatedly()
        .build();
    let (waits, _) = stack(&bare(), &Tape::of([busy, template(&body(&bare()))]));
    let allowed = Duration::from_secs(300);
    let error = waits.within(allowed).ensure().await.unwrap_err();
    is_out_of_time(&error, allowed);
}

#[tokio::test(start_paused = true)]
async fn what_only_reads_waits_for_two_minutes_and_not_as_long_as_a_deployment() {
    let patience = Duration::from_secs(120);
    let (reads, _) = stack(&bare(), &Tape::of([throttled()]));
    is_out_of_time(&reads.status().await.unwrap_err(), patience);
    is_out_of_time(&reads.deployed_options().await.unwrap_err(), patience);
    is_out_of_time(&reads.stream_readers().await.unwrap_err(), patience);
    is_out_of_time(&reads.plan_delete().await.unwrap_err(), patience);
    let all = Stack::discover_with(Tape::of([throttled()]).clients()).await;
    is_out_of_time(&all.unwrap_err(), patience);

    let shorter = Duration::from_secs(5);
    let reads = reads.within(shorter);
    is_out_of_time(&reads.status().await.unwrap_err(), shorter);
}

//! Responses that come in several pages.

use aws_sdk_cloudformation::Client as Cfn;
use aws_sdk_cloudformation::operation::describe_stack_drift_detection_status::DescribeStackDriftDetectionStatusOutput;
use aws_sdk_cloudformation::operation::describe_stack_events::DescribeStackEventsOutput;
use aws_sdk_cloudformation::operation::describe_stack_resource_drifts::DescribeStackResourceDriftsOutput;
use aws_sdk_cloudformation::operation::describe_stacks::DescribeStacksOutput;
use aws_sdk_cloudformation::operation::detect_stack_drift::DetectStackDriftOutput;
use aws_sdk_cloudformation::operation::list_imports::ListImportsOutput;
use aws_sdk_cloudformation::primitives::DateTime;
use aws_sdk_cloudformation::types::{
    ResourceStatus, StackDriftDetectionStatus, StackDriftStatus, StackEvent, StackResourceDrift,
    StackResourceDriftStatus,
};
use aws_sdk_lambda::operation::list_event_source_mappings::ListEventSourceMappingsOutput;
use aws_sdk_lambda::types::EventSourceMappingConfiguration;
use aws_smithy_mocks::mock;
use zae_limiter_stack::{Error, Stack, Verdict};

use super::tape::{Tape, described, looks, no_log_groups, template, with_outputs};
use super::{ID, NAME, body, stack, tags};
use crate::support::{bare, code};

/// The first page has the token of the second.
const MORE: &str = "more";

macro_rules! pages {
    ($operation:path, $token:ident, $first:expr, $second:expr) => {
        [
            mock!($operation)
                .match_requests(|input| input.$token().is_none())
                .then_output($first),
            mock!($operation)
                .match_requests(|input| input.$token() == Some(MORE))
                .then_output($second),
        ]
    };
}

#[tokio::test(start_paused = true)]
async fn the_first_cause_may_be_on_the_last_page_of_events() {
    let event = |id: &str, kind: &str, status: &str, reason: &str| {
        let event = StackEvent::builder().event_id(format!("{id}-{status}"));
        let event = event.stack_id(ID).stack_name(NAME).logical_resource_id(id);
        let event = event
            .resource_type(kind)
            .resource_status(ResourceStatus::from(status));
        let event = event.resource_status_reason(reason);
        event.timestamp(DateTime::from_secs(0)).build()
    };
    let stack_kind = "AWS::CloudFormation::Stack";
    let events = pages!(
        Cfn::describe_stack_events,
        next_token,
        move || {
            let later = event(
                "ReadOnlyPolicy",
                "AWS::IAM::ManagedPolicy",
                "CREATE_FAILED",
                "a later one",
            );
            let page = DescribeStackEventsOutput::builder().stack_events(later);
            page.next_token(MORE).build()
        },
        move || {
            let first = event(
                "FullAccessPolicy",
                "AWS::IAM::ManagedPolicy",
                "CREATE_FAILED",
                "the first",
            );
            let started = event(NAME, stack_kind, "CREATE_IN_PROGRESS", "User Initiated");
            let page = DescribeStackEventsOutput::builder().stack_events(first);
            page.stack_events(started).build()
        }
    );
    let mut tape = Tape::of(events);
    tape.cloudformation.extend([
        looks(&["ROLLBACK_COMPLETE"], tags(&bare())),
        template(&body(&bare())),
    ]);
    let error = stack(&bare(), &tape).0.ensure().await.unwrap_err();
    assert!(
        matches!(&error, Error::Failed { cause: Some(cause), .. } if cause.reason == "the first"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn stacks_are_discovered_on_every_page() {
    let page = |name: &str, next: Option<&str>| {
        let mut stack = described("CREATE_COMPLETE", &tags(&bare()));
        stack.stack_name = Some(name.to_owned());
        let page = DescribeStacksOutput::builder().stacks(stack);
        page.set_next_token(next.map(str::to_owned)).build()
    };
    let rules = pages!(
        Cfn::describe_stacks,
        next_token,
        move || page("one", Some(MORE)),
        move || page("two", None)
    );
    let found = Stack::discover_with(Tape::of(rules).clients()).await.unwrap();
    let names: Vec<_> = found.iter().map(|found| found.stack_name.as_str()).collect();
    assert_eq!(names, ["one", "two"]);
}

#[tokio::test(start_paused = true)]
async fn importers_are_found_on_every_page() {
    let with_roles = bare().to_builder().create_iam_roles(true).build().unwrap();
    let imports = pages!(
        Cfn::list_imports,
        next_token,
        || ListImportsOutput::builder()
            .imports("one")
            .next_token(MORE)
            .build(),
        || ListImportsOutput::builder().imports("two").build()
    );
    let mut tape = Tape::of(imports);
    tape.cloudformation.extend([
        looks(&["CREATE_COMPLETE"], tags(&with_roles)),
        template(&body(&with_roles)),
    ]);
    let error = stack(&bare(), &tape).0.ensure().await.unwrap_err();
    assert!(error.to_string().contains("imported by one, two"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn drift_may_be_on_the_last_page() {
    let page = |id: &str, status: StackResourceDriftStatus, next: Option<&str>| {
        let drift = StackResourceDrift::builder().stack_id(ID).logical_resource_id(id);
        let drift = drift.resource_type("T").stack_resource_drift_status(status);
        let drift = drift.timestamp(DateTime::from_secs(0)).build();
        let page = DescribeStackResourceDriftsOutput::builder().stack_resource_drifts(drift);
        page.set_next_token(next.map(str::to_owned)).build()
    };
    let drifts = pages!(
        Cfn::describe_stack_resource_drifts,
        next_token,
        move || page("AcquireOnlyPolicy", StackResourceDriftStatus::InSync, Some(MORE)),
        move || page("RateLimitsTable", StackResourceDriftStatus::Modified, None)
    );
    let started = mock!(Cfn::detect_stack_drift).then_output(|| {
        DetectStackDriftOutput::builder()
            .stack_drift_detection_id("1")
            .build()
    });
    let detected = mock!(Cfn::describe_stack_drift_detection_status).then_output(|| {
        DescribeStackDriftDetectionStatusOutput::builder()
            .stack_id(ID)
            .stack_drift_detection_id("1")
            .detection_status(StackDriftDetectionStatus::DetectionComplete)
            .stack_drift_status(StackDriftStatus::Drifted)
            .timestamp(DateTime::from_secs(0))
            .build()
    });
    let mut tape = Tape::of(drifts);
    tape.cloudformation.extend([
        looks(&["CREATE_COMPLETE"], tags(&bare())),
        template(&body(&bare())),
        started,
        detected,
    ]);
    let drift = stack(&bare(), &tape).0.drift().await.unwrap();
    assert_eq!(drift.verdict, Verdict::Drifted);
    assert_eq!(drift.drifted[0].logical_id, "RateLimitsTable");
}

#[tokio::test(start_paused = true)]
async fn h13_readers_of_the_stream_are_counted_on_every_page() {
    let page = |name: &str, next: Option<&str>| {
        let reader = EventSourceMappingConfiguration::builder()
            .function_arn(name)
            .build();
        let page = ListEventSourceMappingsOutput::builder().event_source_mappings(reader);
        page.set_next_marker(next.map(str::to_owned)).build()
    };
    let readers = pages!(
        aws_sdk_lambda::Client::list_event_source_mappings,
        marker,
        move || page("one", Some(MORE)),
        move || page("two", None)
    );
    let look = with_outputs("CREATE_COMPLETE", &tags(&bare()), &[("StreamArn", "arn:stream")]);
    let mut tape = Tape::of([look, template(&body(&bare()))]).with_free_names();
    tape.lambda.extend(readers);
    tape.logs.push(no_log_groups());
    let options = bare().to_builder().enable_aggregator(true).build().unwrap();
    let error = stack(&options, &tape).0.code(code()).ensure().await.unwrap_err();
    assert!(
        error.to_string().contains("functions of others (one, two)"),
        "{error}"
    );
}

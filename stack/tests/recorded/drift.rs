//! Drift that cannot be found out is not "no drift".

use std::collections::BTreeSet;

use aws_sdk_cloudformation::Client as Cfn;
use aws_sdk_cloudformation::operation::describe_stack_drift_detection_status::DescribeStackDriftDetectionStatusOutput;
use aws_sdk_cloudformation::operation::describe_stack_resource_drifts::DescribeStackResourceDriftsOutput;
use aws_sdk_cloudformation::operation::detect_stack_drift::DetectStackDriftOutput;
use aws_sdk_cloudformation::types::{
    StackDriftDetectionStatus, StackDriftStatus, StackResourceDrift, StackResourceDriftStatus,
};
use aws_sdk_dynamodb::operation::describe_table::{DescribeTableError, DescribeTableOutput};
use aws_sdk_dynamodb::types::TableDescription;
use aws_sdk_lambda::operation::list_event_source_mappings::ListEventSourceMappingsOutput;
use aws_sdk_lambda::types::EventSourceMappingConfiguration;
use aws_smithy_mocks::{Rule, mock};
use zae_limiter_stack::{Drift, Verdict};

use super::kept::{aggregating, aggregating_body};
use super::tape::{Tape, looks, refusal, template, with_outputs};
use super::{body, stack, tags};
use crate::support::bare;

async fn drift(
    status: StackDriftDetectionStatus,
    verdict: StackDriftStatus,
    resources: &'static [&'static str],
) -> Drift {
    let started = mock!(Cfn::detect_stack_drift).then_output(|| {
        DetectStackDriftOutput::builder()
            .stack_drift_detection_id("1")
            .build()
    });
    let response = |status: StackDriftDetectionStatus, verdict: StackDriftStatus| {
        move || {
            let output = DescribeStackDriftDetectionStatusOutput::builder().detection_status(status.clone());
            output.stack_drift_status(verdict.clone()).build()
        }
    };
    let running = response(
        StackDriftDetectionStatus::DetectionInProgress,
        StackDriftStatus::UnknownValue,
    );
    let status = mock!(Cfn::describe_stack_drift_detection_status)
        .sequence()
        .output(running)
        .times(2)
        .output(response(status, verdict))
        .build();
    let resources = mock!(Cfn::describe_stack_resource_drifts).then_output(|| {
        let drifts = resources.iter().map(|status| {
            let drift = StackResourceDrift::builder()
                .logical_resource_id("RateLimitsTable")
                .stack_id("x");
            let drift = drift.resource_type("AWS::DynamoDB::Table");
            drift
                .stack_resource_drift_status(StackResourceDriftStatus::from(*status))
                .build()
        });
        DescribeStackResourceDriftsOutput::builder()
            .set_stack_resource_drifts(Some(drifts.collect()))
            .build()
    });
    let rules = [
        looks(&["CREATE_COMPLETE"], tags(&bare())),
        template(&body(&bare())),
        started,
        status,
        resources,
    ];
    stack(&bare(), &Tape::of(rules)).0.drift().await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn unknown_is_never_told_as_in_sync() {
    use StackDriftDetectionStatus::{DetectionComplete, DetectionFailed};
    use StackDriftStatus::{Drifted, InSync, NotChecked, UnknownValue};
    let cases: [(_, _, &[&str], _); 9] = [
        (
            DetectionComplete,
            InSync,
            &["IN_SYNC", "NOT_CHECKED"],
            Verdict::InSync,
        ),
        (
            DetectionComplete,
            InSync,
            &["IN_SYNC", "UNKNOWN"],
            Verdict::Unknown,
        ),
        (DetectionComplete, UnknownValue, &[], Verdict::Unknown),
        (DetectionComplete, NotChecked, &[], Verdict::Unknown),
        (DetectionFailed, InSync, &["IN_SYNC"], Verdict::Unknown),
        (DetectionFailed, UnknownValue, &["MODIFIED"], Verdict::Drifted),
        (DetectionComplete, Drifted, &["DELETED"], Verdict::Drifted),
        (DetectionComplete, Drifted, &[], Verdict::Drifted),
        (DetectionFailed, UnknownValue, &[], Verdict::Unknown),
    ];
    for (status, verdict, resources, expected) in cases {
        let shown = format!("{status:?} {verdict:?} {resources:?}");
        let found = drift(status, verdict, resources).await;
        assert_eq!(found.verdict, expected, "{shown}");
        assert_eq!(found.reason.is_some(), expected == Verdict::Unknown, "{shown}");
    }
    assert!(drift(DetectionComplete, Drifted, &["DELETED"]).await.drifted[0].deleted);
}

/// State and stream of each mapping.
type Mappings = &'static [(&'static str, &'static str)];

/// CloudFormation finds no difference in the function and does not check the rest. Lambda has these mappings of the function.
async fn drift_with_mappings(table: Rule, mappings: Mappings) -> Drift {
    let started = mock!(Cfn::detect_stack_drift).then_output(|| {
        DetectStackDriftOutput::builder()
            .stack_drift_detection_id("1")
            .build()
    });
    let status = mock!(Cfn::describe_stack_drift_detection_status).then_output(|| {
        DescribeStackDriftDetectionStatusOutput::builder()
            .detection_status(StackDriftDetectionStatus::DetectionComplete)
            .stack_drift_status(StackDriftStatus::InSync)
            .build()
    });
    let resources = mock!(Cfn::describe_stack_resource_drifts).then_output(|| {
        let drift = StackResourceDrift::builder()
            .logical_resource_id("AggregatorFunction")
            .stack_id("x")
            .resource_type("AWS::Lambda::Function")
            .stack_resource_drift_status(StackResourceDriftStatus::InSync);
        DescribeStackResourceDriftsOutput::builder()
            .stack_resource_drifts(drift.build())
            .build()
    });
    // The output of the stack names the stream of its creation.
    let looked = with_outputs(
        "UPDATE_COMPLETE",
        &tags(&aggregating()),
        &[("StreamArn", "arn:old")],
    );
    let template = template(&aggregating_body(&aggregating()));
    let mut tape = Tape::of([looked, template, started, status, resources]);
    tape.dynamodb.push(table);
    tape.lambda.push(
        mock!(aws_sdk_lambda::Client::list_event_source_mappings)
            .match_requests(|input| input.function_name() == Some("demo-aggregator"))
            .then_output(|| {
                let mappings = mappings.iter().map(|(state, stream)| {
                    let mapping = EventSourceMappingConfiguration::builder().state(*state);
                    mapping.event_source_arn(*stream).build()
                });
                ListEventSourceMappingsOutput::builder()
                    .set_event_source_mappings(Some(mappings.collect()))
                    .build()
            }),
    );
    stack(&aggregating(), &tape).0.drift().await.unwrap()
}

fn table_with_stream() -> Rule {
    mock!(aws_sdk_dynamodb::Client::describe_table).then_output(|| {
        let table = TableDescription::builder().latest_stream_arn("arn:now");
        DescribeTableOutput::builder().table(table.build()).build()
    })
}

const MAPPING: &str = "AggregatorEventSourceMapping";

#[tokio::test(start_paused = true)]
async fn a_mapping_is_compared_with_the_stream_that_the_table_has_now() {
    let fine = drift_with_mappings(table_with_stream(), &[("Enabled", "arn:now")]).await;
    assert_eq!(
        (fine.verdict, fine.drifted.len()),
        (Verdict::InSync, 0),
        "{fine:?}"
    );

    let cases: [(Mappings, Option<&str>); 3] = [
        (&[("Enabled", "arn:old")], Some("/EventSourceArn")),
        (&[("Disabled", "arn:now")], Some("/Enabled")),
        (&[], None),
    ];
    for (mappings, path) in cases {
        let found = drift_with_mappings(table_with_stream(), mappings).await;
        assert_eq!(found.verdict, Verdict::Drifted, "{mappings:?}: {found:?}");
        let [drifted] = found.drifted.as_slice() else {
            panic!("{found:?}")
        };
        assert_eq!(drifted.logical_id, MAPPING);
        assert_eq!(drifted.deleted, mappings.is_empty());
        let differing = drifted.properties.iter().map(|property| property.path.as_str());
        assert!(differing.eq(path), "{drifted:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_cloudformation_does_not_check_is_listed() {
    let found = drift_with_mappings(table_with_stream(), &[("Enabled", "arn:now")]).await;
    let unchecked: BTreeSet<&str> = found.unchecked.iter().map(String::as_str).collect();
    let body = aggregating_body(&aggregating());
    let all = body["Resources"].as_object().unwrap().keys().map(String::as_str);
    let checked = ["AggregatorFunction", MAPPING];
    let expected: BTreeSet<&str> = all.filter(|id| !checked.contains(id)).collect();
    assert_eq!(unchecked, expected);
    assert!(unchecked.contains("RateLimitsTable"), "{unchecked:?}");
}

/// Without the table's stream, a mapping cannot be compared with it: that is not "no drift".
#[tokio::test(start_paused = true)]
async fn a_stream_that_may_not_be_read_leaves_the_mapping_unchecked() {
    let denied = || {
        mock!(aws_sdk_dynamodb::Client::describe_table).then_error(|| {
            DescribeTableError::generic(refusal(
                "AccessDeniedException",
                "User: app is not authorized to perform: dynamodb:DescribeTable on resource: demo",
            ))
        })
    };
    let found = drift_with_mappings(denied(), &[("Enabled", "arn:old")]).await;
    assert!(found.unchecked.contains(&MAPPING.to_owned()), "{found:?}");
    // What needs no stream is still found.
    let disabled = drift_with_mappings(denied(), &[("Disabled", "arn:old")]).await;
    assert_eq!(disabled.verdict, Verdict::Drifted, "{disabled:?}");
}

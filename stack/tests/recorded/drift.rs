//! Drift that cannot be found out is not "no drift".

use aws_sdk_cloudformation::Client as Cfn;
use aws_sdk_cloudformation::operation::describe_stack_drift_detection_status::DescribeStackDriftDetectionStatusOutput;
use aws_sdk_cloudformation::operation::describe_stack_resource_drifts::DescribeStackResourceDriftsOutput;
use aws_sdk_cloudformation::operation::detect_stack_drift::DetectStackDriftOutput;
use aws_sdk_cloudformation::types::{
    StackDriftDetectionStatus, StackDriftStatus, StackResourceDrift, StackResourceDriftStatus,
};
use aws_smithy_mocks::mock;
use zae_limiter_stack::{Drift, Verdict};

use super::tape::{Tape, looks, template};
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

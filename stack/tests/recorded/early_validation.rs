//! CloudFormation gives the reason of a failed early validation only in the events of the change set.

use aws_sdk_cloudformation::Client as Cfn;
use aws_sdk_cloudformation::operation::describe_events::{DescribeEventsError, DescribeEventsOutput};
use aws_sdk_cloudformation::types::{OperationEvent, ValidationStatus};
use aws_smithy_mocks::mock;

use super::change_sets::{UPDATED, failed, tape};
use super::tape::refusal;
use super::{CHANGE_SET, changed, count, stack};

#[tokio::test(start_paused = true)]
async fn a_change_set_that_fails_early_validation_is_an_error_with_the_real_reason() {
    let said = "[AWS::EarlyValidation::ResourceExistenceCheck] failed; use DescribeEvents for details";
    let told = mock!(Cfn::describe_events)
        .match_requests(|input| input.change_set_name() == Some(CHANGE_SET))
        .then_output(|| {
            let event = |status, reason: &str| {
                let event = OperationEvent::builder().validation_status(status);
                event
                    .logical_resource_id("AggregatorRole")
                    .validation_status_reason(reason)
                    .validation_path("/Resources/AggregatorRole/Properties/RoleName")
                    .build()
            };
            let events = DescribeEventsOutput::builder();
            events
                .operation_events(event(ValidationStatus::Skipped, "skipped"))
                .operation_events(event(ValidationStatus::Failed, "role demo-aggr already exists"))
                .build()
        });
    let mut rules = failed(said);
    rules.push(told);
    let (stack_, calls) = stack(&changed(), &tape(UPDATED, rules));
    let error = stack_.ensure().await.unwrap_err().to_string();
    assert!(
        error.contains("AggregatorRole: role demo-aggr already exists") && error.contains("RoleName"),
        "{error}"
    );
    assert!(!error.contains("skipped"), "{error}");
    assert_eq!(count(&calls, "DeleteChangeSet"), 1);

    let mut rules = failed(said);
    rules.push(
        mock!(Cfn::describe_events)
            .then_error(|| DescribeEventsError::generic(refusal("AccessDenied", "not for you"))),
    );
    let error = stack(&changed(), &tape(UPDATED, rules))
        .0
        .ensure()
        .await
        .unwrap_err();
    let error = error.to_string();
    assert!(
        error.contains("EarlyValidation") && error.contains("not for you"),
        "{error}"
    );
}

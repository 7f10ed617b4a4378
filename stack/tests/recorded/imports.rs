//! Imports of a table that exists before its stack.

use aws_sdk_cloudformation::Client as Cfn;
use aws_sdk_cloudformation::operation::create_change_set::{CreateChangeSetError, CreateChangeSetOutput};
use aws_sdk_cloudformation::operation::describe_stack_resources::DescribeStackResourcesError;
use aws_sdk_cloudformation::operation::detect_stack_resource_drift::{
    DetectStackResourceDriftError, DetectStackResourceDriftOutput,
};
use aws_sdk_cloudformation::primitives::DateTime;
use aws_sdk_cloudformation::types::{
    DifferenceType, PropertyDifference, StackResourceDrift, StackResourceDriftStatus,
};
use aws_sdk_dynamodb::Client as DynamoDb;
use aws_sdk_dynamodb::operation::describe_table::{DescribeTableError, DescribeTableOutput};
use aws_sdk_dynamodb::types::TableStatus;
use aws_smithy_mocks::mock;
use zae_limiter_stack::{Change, Error};

use super::existing_table::{import, table};
use super::tape::{created, refusal, template};
use super::{CHANGE_SET, ID, body, count, stack};
use crate::support::bare;

#[tokio::test(start_paused = true)]
async fn c6_a_table_that_is_there_is_imported_and_never_made_again() {
    let statuses: &[_] = &["", "", "CREATE_IN_PROGRESS", "CREATE_COMPLETE"];
    let mut tape = import(statuses);
    let asked = mock!(Cfn::create_change_set)
        .match_requests(|input| input.import_existing_resources() == Some(true))
        .then_output(|| {
            let output = CreateChangeSetOutput::builder();
            output.id(CHANGE_SET).stack_id(ID).build()
        });
    tape.cloudformation.insert(0, asked);
    tape.cloudformation.push(
        mock!(Cfn::detect_stack_resource_drift)
            .then_output(|| DetectStackResourceDriftOutput::builder().build()),
    );
    let (stack, calls) = stack(&bare(), &tape);
    assert_eq!(stack.ensure().await.unwrap().change, Change::Imported);
    assert_eq!(
        (count(&calls, "CreateStack"), count(&calls, "ExecuteChangeSet")),
        (0, 1)
    );
    assert_eq!(count(&calls, "DetectStackResourceDrift"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_table_that_is_being_deleted_is_waited_for_and_not_imported() {
    let going = || {
        let mut table = table();
        table.table_status = Some(TableStatus::Deleting);
        DescribeTableOutput::builder().table(table).build()
    };
    let gone = || DescribeTableError::generic(refusal("ResourceNotFoundException", "no such table"));
    let looked = mock!(DynamoDb::describe_table).sequence();
    let looked = looked.output(going).times(2).error(gone).repeatedly().build();
    let mut tape = import(&["", "CREATE_COMPLETE"]);
    tape.dynamodb = vec![looked];
    tape.cloudformation.push(created());
    let (stack, calls) = stack(&bare(), &tape);
    assert_eq!(stack.ensure().await.unwrap().change, Change::Created);
    assert_eq!(count(&calls, "DescribeTable"), 3);
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_must_not_be_asked_for_hinders_no_import_and_one_that_cannot_be_found_does() {
    let importing = |code: &'static str| {
        let unknown = mock!(Cfn::describe_stack_resources)
            .then_error(move || DescribeStackResourcesError::generic(refusal(code, "no")));
        let uncompared = mock!(Cfn::detect_stack_resource_drift)
            .then_error(|| DetectStackResourceDriftError::generic(refusal("AccessDenied", "not permitted")));
        let mut tape = import(&["", "", "CREATE_COMPLETE"]);
        tape.cloudformation.insert(0, unknown);
        tape.cloudformation.push(uncompared);
        stack(&bare(), &tape)
    };
    let outcome = importing("AccessDenied").0.ensure().await.unwrap();
    assert_eq!(outcome.change, Change::Imported);
    assert!(outcome.warnings[0].contains("not permitted"), "{outcome:?}");

    let (unsure, calls) = importing("ValidationError");
    let error = unsure.ensure().await.unwrap_err();
    assert!(matches!(error, Error::Call { .. }), "{error}");
    assert_eq!(count(&calls, "ExecuteChangeSet"), 0);
}

#[tokio::test(start_paused = true)]
async fn an_imported_table_that_cannot_be_compared_is_a_warning() {
    for (status, warned) in [
        (StackResourceDriftStatus::InSync, None),
        (StackResourceDriftStatus::Deleted, Some("was deleted")),
        (
            StackResourceDriftStatus::Modified,
            Some("differs at /BillingMode: it has PROVISIONED, the template has PAY_PER_REQUEST"),
        ),
        (
            StackResourceDriftStatus::NotChecked,
            Some("could not be compared"),
        ),
        (
            StackResourceDriftStatus::from("UNKNOWN"),
            Some("could not be compared"),
        ),
    ] {
        let drift = status.clone();
        let detected = mock!(Cfn::detect_stack_resource_drift).then_output(move || {
            let property = PropertyDifference::builder()
                .property_path("/BillingMode")
                .expected_value("PAY_PER_REQUEST")
                .actual_value("PROVISIONED")
                .difference_type(DifferenceType::NotEqual);
            let drift = StackResourceDrift::builder()
                .stack_id(ID)
                .property_differences(property.build())
                .logical_resource_id("RateLimitsTable")
                .resource_type("AWS::DynamoDB::Table")
                .stack_resource_drift_status(drift.clone())
                .timestamp(DateTime::from_secs(0));
            DetectStackResourceDriftOutput::builder()
                .stack_resource_drift(drift.build())
                .build()
        });
        let mut tape = import(&["", "", "CREATE_COMPLETE"]);
        tape.cloudformation.push(detected);
        let warnings = stack(&bare(), &tape).0.ensure().await.unwrap().warnings;
        let said = warnings.first().map_or("", String::as_str);
        assert_eq!(warnings.is_empty(), warned.is_none(), "{status}: {said}");
        assert!(said.contains(warned.unwrap_or_default()), "{status}: {said}");
    }
}

#[tokio::test(start_paused = true)]
async fn c6_somebody_who_imports_at_the_same_time_and_is_faster_is_waited_for() {
    let late = mock!(Cfn::create_change_set).then_error(|| {
        let message = "Stack [demo] already exists and cannot be created again with the changeSet [zl-1-1]";
        CreateChangeSetError::generic(refusal("ValidationError", message))
    });
    let statuses: &[_] = &[
        "",
        "",
        "CREATE_IN_PROGRESS",
        "CREATE_IN_PROGRESS",
        "CREATE_COMPLETE",
    ];
    let mut tape = import(statuses);
    tape.cloudformation.insert(0, late);
    tape.cloudformation.push(template(&body(&bare())));
    let (stack, calls) = stack(&bare(), &tape);
    assert_eq!(stack.ensure().await.unwrap().change, Change::Awaited);
    assert_eq!(count(&calls, "ExecuteChangeSet"), 0);
}

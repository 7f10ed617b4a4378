//! What AWS returns about a table that exists before its stack.

use aws_sdk_cloudformation::Client as Cfn;
use aws_sdk_cloudformation::operation::describe_stack_resources::{
    DescribeStackResourcesError, DescribeStackResourcesOutput,
};
use aws_sdk_cloudformation::types::{ChangeAction, ResourceStatus, StackResource};
use aws_sdk_dynamodb::Client as DynamoDb;
use aws_sdk_dynamodb::operation::describe_table::DescribeTableOutput;
use aws_sdk_dynamodb::operation::update_table::UpdateTableOutput;
use aws_sdk_dynamodb::types as ddb;
use aws_smithy_mocks::{MockResponse, Rule, mock};

use super::change_sets::change;
use super::tape::{Tape, caller, change_set, deletion, history, looks, refusal};
use super::{NAME, tags};
use crate::support::bare;

pub(crate) const TABLE_ARN: &str = "arn:aws:dynamodb:us-east-1:123456789012:table/demo";

/// A table as a stack of ours makes it.
pub(crate) fn table() -> ddb::TableDescription {
    let key = |pk: &str, sk: &str| {
        let part = |name: &str, kind| {
            ddb::KeySchemaElement::builder()
                .attribute_name(name)
                .key_type(kind)
                .build()
                .unwrap()
        };
        vec![part(pk, ddb::KeyType::Hash), part(sk, ddb::KeyType::Range)]
    };
    let index = |name: &str, kind: ddb::ProjectionType| {
        let projection = ddb::Projection::builder().projection_type(kind).build();
        let index = ddb::GlobalSecondaryIndexDescription::builder()
            .index_name(name)
            .projection(projection);
        index
            .set_key_schema(Some(key(&format!("{name}PK"), &format!("{name}SK"))))
            .build()
    };
    let stream = ddb::StreamSpecification::builder()
        .stream_enabled(true)
        .stream_view_type(ddb::StreamViewType::NewAndOldImages);
    ddb::TableDescription::builder()
        .table_name(NAME)
        .set_key_schema(Some(key("PK", "SK")))
        .global_secondary_indexes(index("GSI1", ddb::ProjectionType::All))
        .global_secondary_indexes(index("GSI2", ddb::ProjectionType::KeysOnly))
        .global_secondary_indexes(index("GSI3", ddb::ProjectionType::KeysOnly))
        .stream_specification(stream.build().unwrap())
        .build()
}

pub(crate) fn found_table() -> Rule {
    mock!(DynamoDb::describe_table).then_output(|| DescribeTableOutput::builder().table(table()).build())
}

fn protection() -> Rule {
    mock!(DynamoDb::update_table).then_output(|| UpdateTableOutput::builder().build())
}

/// The stack that the table is in.
pub(crate) fn owned_by(stack: Option<&'static str>) -> Rule {
    mock!(Cfn::describe_stack_resources).then_compute_response(move |_| {
        if let Some(name) = stack {
            let resource = StackResource::builder()
                .stack_name(name)
                .physical_resource_id(NAME);
            let resource = resource.resource_status(ResourceStatus::CreateComplete).build();
            let found = DescribeStackResourcesOutput::builder().stack_resources(resource);
            return MockResponse::Output(found.build());
        }
        let message = "Stack for demo does not exist";
        MockResponse::Error(DescribeStackResourcesError::generic(refusal(
            "ValidationError",
            message,
        )))
    })
}

/// A table that exists, with or without a stack, and a change set that does `action` with it.
pub(crate) fn around_a_table(
    statuses: &'static [&'static str],
    action: ChangeAction,
    owner: Option<&'static str>,
) -> Tape {
    let change = change("RateLimitsTable", action, None, None);
    let events = history(&[(NAME, "", "CREATE_IN_PROGRESS", "User Initiated")], "x");
    let mut tape = Tape::of(change_set(vec![change]));
    tape.cloudformation.extend([
        looks(statuses, tags(&bare())),
        events,
        owned_by(owner),
        deletion(),
    ]);
    tape.dynamodb.extend([found_table(), protection()]);
    tape.sts.push(caller());
    tape.with_free_names()
}

/// A table without a stack, and a change set that imports it.
pub(crate) fn import(statuses: &'static [&'static str]) -> Tape {
    around_a_table(statuses, ChangeAction::Import, None)
}

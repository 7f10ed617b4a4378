//! Stacks around a table that is there already.

use aws_sdk_cloudformation::Client as Cfn;
use aws_sdk_cloudformation::types::{ChangeAction, ResourceChange};
use aws_sdk_dynamodb::operation::describe_table::DescribeTableOutput;
use aws_sdk_dynamodb::operation::update_table::UpdateTableOutput;
use aws_sdk_dynamodb::types as ddb;
use aws_smithy_mocks::{Rule, mock};
use zae_limiter_stack::{Change, Error};

use super::change_sets::change;
use super::support::bare;
use super::tape::{Tape, caller, change_set, created, deletion, history, looks, refusal, template};
use super::{CHANGE_SET, ID, NAME, body, count, stack, tags};

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

fn found_table() -> Rule {
    mock!(aws_sdk_dynamodb::Client::describe_table)
        .then_output(|| DescribeTableOutput::builder().table(table()).build())
}

fn protection() -> Rule {
    mock!(aws_sdk_dynamodb::Client::update_table).then_output(|| UpdateTableOutput::builder().build())
}

pub(crate) fn owned_by(stack: Option<&'static str>) -> Rule {
    use aws_sdk_cloudformation::operation::describe_stack_resources::{
        DescribeStackResourcesError, DescribeStackResourcesOutput,
    };
    use aws_sdk_cloudformation::types::{ResourceStatus, StackResource};
    use aws_smithy_mocks::MockResponse;
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

pub(crate) fn around_a_table(
    statuses: &'static [&'static str],
    change: ResourceChange,
    owner: Option<&'static str>,
) -> Tape {
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

#[tokio::test(start_paused = true)]
async fn c6_a_table_that_is_there_is_imported_and_never_made_again() {
    use aws_sdk_cloudformation::operation::detect_stack_resource_drift::DetectStackResourceDriftOutput;
    let import = change("RateLimitsTable", ChangeAction::Import, None, None);
    let statuses: &[_] = &["", "", "CREATE_IN_PROGRESS", "CREATE_COMPLETE"];
    let mut tape = around_a_table(statuses, import, None);
    let asked = mock!(Cfn::create_change_set)
        .match_requests(|input| input.import_existing_resources() == Some(true))
        .then_output(|| {
            let output =
                aws_sdk_cloudformation::operation::create_change_set::CreateChangeSetOutput::builder();
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
async fn c6_a_change_set_that_would_make_the_table_anew_is_thrown_away_with_its_empty_stack() {
    let add = change("RateLimitsTable", ChangeAction::Add, None, None);
    let shell: &[_] = &["", "", "REVIEW_IN_PROGRESS"];
    let mut tape = around_a_table(shell, add, None);
    tape.cloudformation.push(change_sets(&[]));
    let (stack, calls) = stack(&bare(), &tape);
    let error = stack.ensure().await.unwrap_err();
    assert!(matches!(error, Error::NotImported { .. }), "{error}");
    assert_eq!(count(&calls, "ExecuteChangeSet"), 0);
    assert_eq!(
        (count(&calls, "DeleteChangeSet"), count(&calls, "DeleteStack")),
        (1, 1)
    );
}

fn change_sets(names: &'static [&'static str]) -> Rule {
    use aws_sdk_cloudformation::operation::list_change_sets::ListChangeSetsOutput;
    use aws_sdk_cloudformation::types::ChangeSetSummary;
    mock!(Cfn::list_change_sets).then_output(move || {
        let summaries = names
            .iter()
            .map(|name| ChangeSetSummary::builder().change_set_name(*name).build());
        ListChangeSetsOutput::builder()
            .set_summaries(Some(summaries.collect()))
            .build()
    })
}

#[tokio::test(start_paused = true)]
async fn an_import_that_cannot_be_started_leaves_nothing_behind_that_is_its_own() {
    use aws_sdk_cloudformation::operation::execute_change_set::ExecuteChangeSetError;
    for (others, deleted) in [(&[] as &[_], 1), (&["zl-of-another"], 0)] {
        let denied = mock!(Cfn::execute_change_set)
            .then_error(|| ExecuteChangeSetError::generic(refusal("AccessDenied", "no")));
        let import = change("RateLimitsTable", ChangeAction::Import, None, None);
        let mut tape = around_a_table(&["", "", "REVIEW_IN_PROGRESS"], import, None);
        tape.cloudformation.insert(0, denied);
        tape.cloudformation.push(change_sets(others));
        let (stack, calls) = stack(&bare(), &tape);
        let error = stack.ensure().await.unwrap_err();
        assert!(matches!(error, Error::Denied { .. }), "{error}");
        assert_eq!(count(&calls, "DeleteChangeSet"), 1);
        assert_eq!(count(&calls, "DeleteStack"), deleted, "{others:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_import_whose_change_set_fails_leaves_no_empty_stack_behind() {
    use aws_sdk_cloudformation::operation::describe_change_set::DescribeChangeSetOutput;
    use aws_sdk_cloudformation::types::ChangeSetStatus;
    let failed = mock!(Cfn::describe_change_set).then_output(|| {
        let failed = DescribeChangeSetOutput::builder().status(ChangeSetStatus::Failed);
        failed
            .status_reason("no")
            .change_set_id(CHANGE_SET)
            .stack_id(ID)
            .build()
    });
    let import = change("RateLimitsTable", ChangeAction::Import, None, None);
    let mut tape = around_a_table(&["", "", "REVIEW_IN_PROGRESS"], import, None);
    tape.cloudformation.insert(0, failed);
    tape.cloudformation.push(change_sets(&[]));
    let (stack, calls) = stack(&bare(), &tape);
    let error = stack.ensure().await.unwrap_err();
    assert!(matches!(error, Error::ChangeSet { .. }), "{error}");
    assert_eq!(
        (count(&calls, "DeleteChangeSet"), count(&calls, "DeleteStack")),
        (1, 1)
    );
}

#[tokio::test(start_paused = true)]
async fn a_table_that_is_being_deleted_is_waited_for_and_not_imported() {
    use aws_sdk_dynamodb::operation::describe_table::DescribeTableError;
    let going = || {
        let mut table = table();
        table.table_status = Some(ddb::TableStatus::Deleting);
        DescribeTableOutput::builder().table(table).build()
    };
    let gone = || DescribeTableError::generic(refusal("ResourceNotFoundException", "no such table"));
    let looked = mock!(aws_sdk_dynamodb::Client::describe_table).sequence();
    let looked = looked.output(going).times(2).error(gone).repeatedly().build();
    let import = change("RateLimitsTable", ChangeAction::Import, None, None);
    let mut tape = around_a_table(&["", "CREATE_COMPLETE"], import, None);
    tape.dynamodb = vec![looked];
    tape.cloudformation.push(created());
    let (stack, calls) = stack(&bare(), &tape);
    assert_eq!(stack.ensure().await.unwrap().change, Change::Created);
    assert_eq!(count(&calls, "DescribeTable"), 3);
}

/// A table that differs from what a stack of ours makes, and what the error says of it.
fn misfit(
    change: impl Fn(&mut ddb::TableDescription),
    said: &'static str,
) -> (ddb::TableDescription, &'static str) {
    let mut table = table();
    change(&mut table);
    (table, said)
}

#[tokio::test(start_paused = true)]
async fn c6_a_table_that_does_not_fit_is_refused_with_every_difference() {
    let index = |table: &mut ddb::TableDescription,
                 change: &dyn Fn(&mut ddb::GlobalSecondaryIndexDescription)| {
        change(&mut table.global_secondary_indexes.as_mut().unwrap()[1]);
    };
    let cases = [
        misfit(
            |table| table.key_schema.as_mut().unwrap().reverse(),
            "its keys are",
        ),
        misfit(
            |table| table.global_secondary_indexes.as_mut().unwrap().truncate(2),
            "it has no index GSI3",
        ),
        misfit(
            |table| index(table, &|index| index.key_schema.as_mut().unwrap().truncate(1)),
            "the keys of its index GSI2 are",
        ),
        misfit(
            |table| {
                let some = ddb::Projection::builder()
                    .projection_type(ddb::ProjectionType::Include)
                    .non_key_attributes("ttl")
                    .build();
                index(table, &|index| index.projection = Some(some.clone()));
            },
            "the projection of its index GSI2 is {\"ProjectionType\":\"INCLUDE\",\"NonKeyAttributes\":[\"ttl\"]} (see gsi2_projection)",
        ),
        misfit(
            |table| table.stream_specification = None,
            "its stream does not have old and new images",
        ),
    ];
    for (found, said) in cases {
        let import = change("RateLimitsTable", ChangeAction::Import, None, None);
        let mut tape = around_a_table(&[""], import, None);
        tape.dynamodb[0] = mock!(aws_sdk_dynamodb::Client::describe_table)
            .then_output(move || DescribeTableOutput::builder().table(found.clone()).build());
        let (stack, calls) = stack(&bare(), &tape);
        let error = stack.ensure().await.unwrap_err();
        let Error::TableMisfits { misfits, .. } = &error else {
            panic!("{said}: {error}")
        };
        assert_eq!(misfits.len(), 1, "{misfits:?}");
        assert!(misfits[0].starts_with(said), "{misfits:?}");
        assert_eq!(count(&calls, "CreateChangeSet") + count(&calls, "UpdateTable"), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_must_not_be_asked_for_hinders_no_import_and_one_that_cannot_be_found_does() {
    use aws_sdk_cloudformation::operation::describe_stack_resources::DescribeStackResourcesError;
    use aws_sdk_cloudformation::operation::detect_stack_resource_drift::DetectStackResourceDriftError;
    let importing = |code: &'static str| {
        let unknown = mock!(Cfn::describe_stack_resources)
            .then_error(move || DescribeStackResourcesError::generic(refusal(code, "no")));
        let uncompared = mock!(Cfn::detect_stack_resource_drift)
            .then_error(|| DetectStackResourceDriftError::generic(refusal("AccessDenied", "not permitted")));
        let import = change("RateLimitsTable", ChangeAction::Import, None, None);
        let mut tape = around_a_table(&["", "", "CREATE_COMPLETE"], import, None);
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
    use aws_sdk_cloudformation::operation::detect_stack_resource_drift::DetectStackResourceDriftOutput;
    use aws_sdk_cloudformation::types::{
        DifferenceType, PropertyDifference, StackResourceDrift, StackResourceDriftStatus,
    };
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
                .timestamp(aws_sdk_cloudformation::primitives::DateTime::from_secs(0));
            DetectStackResourceDriftOutput::builder()
                .stack_resource_drift(drift.build())
                .build()
        });
        let import = change("RateLimitsTable", ChangeAction::Import, None, None);
        let mut tape = around_a_table(&["", "", "CREATE_COMPLETE"], import, None);
        tape.cloudformation.push(detected);
        let warnings = stack(&bare(), &tape).0.ensure().await.unwrap().warnings;
        let said = warnings.first().map_or("", String::as_str);
        assert_eq!(warnings.is_empty(), warned.is_none(), "{status}: {said}");
        assert!(said.contains(warned.unwrap_or_default()), "{status}: {said}");
    }
}

#[tokio::test(start_paused = true)]
async fn c6_a_table_of_another_stack_is_refused() {
    let import = change("RateLimitsTable", ChangeAction::Import, None, None);
    let (stack, calls) = stack(&bare(), &around_a_table(&[""], import, Some("other")));
    let error = stack.ensure().await.unwrap_err();
    assert!(
        matches!(&error, Error::TableOwned { owner, .. } if owner == "other"),
        "{error}"
    );
    assert_eq!(count(&calls, "CreateChangeSet"), 0);
}

/// A table of the Terraform module, whose tags take two pages.
fn table_of_terraform() -> [Rule; 2] {
    use aws_sdk_dynamodb::operation::list_tags_of_resource::ListTagsOfResourceOutput;
    const ARN: &str = "arn:aws:dynamodb:us-east-1:123456789012:table/demo";
    let described = mock!(aws_sdk_dynamodb::Client::describe_table).then_output(|| {
        let mut table = table();
        table.table_arn = Some(ARN.to_owned());
        DescribeTableOutput::builder().table(table).build()
    });
    let tagged = mock!(aws_sdk_dynamodb::Client::list_tags_of_resource).then_compute_output(|input| {
        assert_eq!(input.resource_arn(), Some(ARN));
        let tag = |key: &str, value: &str| ddb::Tag::builder().key(key).value(value).build().unwrap();
        let page = ListTagsOfResourceOutput::builder();
        if input.next_token().is_none() {
            page.tags(tag("team", "search")).next_token("2").build()
        } else {
            page.tags(tag("ManagedBy", "terraform")).build()
        }
    });
    [described, tagged]
}

#[tokio::test(start_paused = true)]
async fn a_table_that_terraform_manages_is_left_alone() {
    use zae_limiter_stack::Mode;
    let tape = || {
        let import = change("RateLimitsTable", ChangeAction::Import, None, None);
        let mut tape = around_a_table(&[""], import, None);
        tape.dynamodb.splice(0..0, table_of_terraform());
        tape
    };
    let (deployer, calls) = stack(&bare(), &tape());
    let error = deployer.ensure().await.unwrap_err();
    assert!(matches!(error, Error::TableManaged { .. }), "{error}");
    assert_eq!(count(&calls, "CreateChangeSet") + count(&calls, "CreateStack"), 0);
    for mode in [Mode::Auto, Mode::Observe] {
        let (application, calls) = stack(&bare(), &tape());
        let outcome = application.mode(mode).ensure().await.unwrap();
        assert!(!outcome.changed() && outcome.stack_id.is_empty(), "{outcome:?}");
        assert!(
            outcome
                .warnings
                .iter()
                .any(|line| line.contains("Terraform manages table")),
            "{outcome:?}"
        );
        assert_eq!(count(&calls, "CreateChangeSet") + count(&calls, "CreateStack"), 0);
    }
    let (asked, _) = stack(&bare(), &tape());
    assert!(asked.is_managed_by_terraform().await.unwrap());
    assert!(asked.status().await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn c6_somebody_who_imports_at_the_same_time_and_is_faster_is_waited_for() {
    use aws_sdk_cloudformation::operation::create_change_set::CreateChangeSetError;
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
    let import = change("RateLimitsTable", ChangeAction::Import, None, None);
    let mut tape = around_a_table(statuses, import, None);
    tape.cloudformation.insert(0, late);
    tape.cloudformation.push(template(&body(&bare())));
    let (stack, calls) = stack(&bare(), &tape);
    assert_eq!(stack.ensure().await.unwrap().change, Change::Awaited);
    assert_eq!(count(&calls, "ExecuteChangeSet"), 0);
}

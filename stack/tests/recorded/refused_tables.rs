//! Tables that exist and are not imported.

use aws_sdk_cloudformation::types::ChangeAction;
use aws_sdk_dynamodb::Client as DynamoDb;
use aws_sdk_dynamodb::operation::describe_table::DescribeTableOutput;
use aws_sdk_dynamodb::operation::list_tags_of_resource::ListTagsOfResourceOutput;
use aws_sdk_dynamodb::types as ddb;
use aws_smithy_mocks::{Rule, mock};
use zae_limiter_stack::{Error, Mode};

use super::existing_table::{TABLE_ARN, around_a_table, import, table};
use super::{count, stack};
use crate::support::bare;

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
        let mut tape = import(&[""]);
        tape.dynamodb[0] = mock!(DynamoDb::describe_table)
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
async fn c6_a_table_of_another_stack_is_refused() {
    let tape = around_a_table(&[""], ChangeAction::Import, Some("other"));
    let (stack, calls) = stack(&bare(), &tape);
    let error = stack.ensure().await.unwrap_err();
    assert!(
        matches!(&error, Error::TableOwned { owner, .. } if owner == "other"),
        "{error}"
    );
    assert_eq!(count(&calls, "CreateChangeSet"), 0);
}

/// A table of the Terraform module, whose tags take two pages.
fn table_of_terraform() -> [Rule; 2] {
    let described = mock!(DynamoDb::describe_table).then_output(|| {
        let mut table = table();
        table.table_arn = Some(TABLE_ARN.to_owned());
        DescribeTableOutput::builder().table(table).build()
    });
    let tagged = mock!(DynamoDb::list_tags_of_resource).then_compute_output(|input| {
        assert_eq!(input.resource_arn(), Some(TABLE_ARN));
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
    let tape = || {
        let mut tape = import(&[""]);
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

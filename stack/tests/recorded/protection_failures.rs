//! Deletion protection while a stack is created, where DynamoDB or CloudFormation is slow or refuses.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use aws_sdk_cloudformation::Client as Cfn;
use aws_sdk_cloudformation::operation::update_stack::UpdateStackError;
use aws_sdk_dynamodb::Client as DynamoDb;
use aws_sdk_dynamodb::operation::describe_table::DescribeTableOutput;
use aws_sdk_dynamodb::operation::list_tags_of_resource::ListTagsOfResourceError;
use aws_sdk_dynamodb::operation::update_table::{UpdateTableError, UpdateTableOutput};
use aws_sdk_dynamodb::types::TableStatus;
use aws_smithy_mocks::mock;
use zae_limiter_stack::{Change, Error};

use super::existing_table::{TABLE_ARN, table};
use super::logged_import::Import;
use super::protection::warns_of_the_tag;
use super::tape::{Tape, created, looks, refusal, template};
use super::{body, changed, count, stack, tags};
use crate::support::{Diary, bare};

#[tokio::test(start_paused = true)]
async fn an_import_starts_only_once_the_protection_is_in_effect() {
    let import = Import::of_unprotected_table();
    let updating = Arc::new(AtomicUsize::new(0));
    let (begun, seen, told) = (Arc::clone(&updating), import.log(), import.log());
    let described = mock!(DynamoDb::describe_table).then_compute_output(move |_| {
        let mut table = table();
        table.table_arn = Some(TABLE_ARN.to_owned());
        let left = updating.load(Ordering::SeqCst);
        if left > 0 {
            updating.store(left - 1, Ordering::SeqCst);
            seen.push("updating");
            table.table_status = Some(TableStatus::Updating);
        }
        DescribeTableOutput::builder().table(table).build()
    });
    let updated = mock!(DynamoDb::update_table).then_compute_output(move |input| {
        let on = input.deletion_protection_enabled().unwrap();
        begun.store(if on { 2 } else { 0 }, Ordering::SeqCst);
        told.push(format!("protection {on}"));
        UpdateTableOutput::builder().build()
    });
    let import = import.with_dynamodb(described).with_dynamodb(updated);
    let (importing, _) = stack(&bare(), &import.tape);
    assert_eq!(importing.ensure().await.unwrap().change, Change::Imported);
    assert_eq!(
        import.calls(),
        [
            "tag",
            "protection true",
            "updating",
            "updating",
            "import",
            "protection false",
            "untag"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn protection_that_cannot_be_turned_off_is_a_warning_and_stays_tagged() {
    let only_on = mock!(DynamoDb::update_table)
        .sequence()
        .output(|| UpdateTableOutput::builder().build())
        .error(|| UpdateTableError::generic(refusal("AccessDeniedException", "no")))
        .repeatedly()
        .build();
    let import = Import::of_unprotected_table().with_dynamodb(only_on);
    let outcome = stack(&bare(), &import.tape).0.ensure().await.unwrap();
    assert_eq!(outcome.change, Change::Imported);
    assert!(
        outcome
            .warnings
            .iter()
            .any(|warning| warning.contains("could not be turned off")),
        "{outcome:?}"
    );
    assert_eq!(import.calls(), ["tag", "import"], "the next import finds the tag");
}

#[tokio::test(start_paused = true)]
async fn a_tag_that_stays_after_a_refused_protection_is_told() {
    let import = Import::of_unprotected_table()
        .refusing_protection()
        .refusing_untag();
    let diary = Diary::default();
    let (importing, _) = stack(&bare(), &import.tape);
    let error = importing.observer(diary.clone()).ensure().await.unwrap_err();
    assert!(matches!(error, Error::Denied { .. }), "{error}");
    warns_of_the_tag(&diary);
}

#[tokio::test(start_paused = true)]
async fn tags_that_must_not_be_read_hinder_no_import_and_tags_that_cannot_be_read_do() {
    let unreadable = |code: &'static str| {
        Import::of_protected_table().with_dynamodb(
            mock!(DynamoDb::list_tags_of_resource)
                .then_error(move || ListTagsOfResourceError::generic(refusal(code, "no"))),
        )
    };
    let import = unreadable("AccessDeniedException");
    let outcome = stack(&bare(), &import.tape).0.ensure().await.unwrap();
    assert_eq!(outcome.change, Change::Imported);
    assert_eq!(import.calls(), ["import"], "the protection is not ours");

    let import = unreadable("ValidationException");
    let error = stack(&bare(), &import.tape).0.ensure().await.unwrap_err();
    assert!(matches!(error, Error::Call { .. }), "{error}");
    assert!(import.calls().is_empty(), "{import:?}");
}

#[tokio::test(start_paused = true)]
async fn a_new_stack_that_cannot_be_protected_is_not_a_success() {
    let unprotected = |code: &'static str, message: &'static str| {
        let statuses: &[_] = &[
            "",
            "CREATE_COMPLETE",
            "UPDATE_IN_PROGRESS",
            "UPDATE_IN_PROGRESS",
            "UPDATE_COMPLETE",
        ];
        let refused =
            mock!(Cfn::update_stack).then_error(move || UpdateStackError::generic(refusal(code, message)));
        let rules = [
            looks(statuses, tags(&changed())),
            template(&body(&changed())),
            created(),
            refused,
        ];
        stack(&changed(), &Tape::of(rules).with_free_site())
    };
    let (denied, _) = unprotected("AccessDenied", "no");
    let error = denied.ensure().await.unwrap_err();
    assert!(matches!(error, Error::Denied { .. }), "{error}");

    let busy = "Stack:demo is in UPDATE_IN_PROGRESS state and can not be updated.";
    let (overtaken, calls) = unprotected("ValidationError", busy);
    assert_eq!(overtaken.ensure().await.unwrap().change, Change::Awaited);
    assert_eq!(count(&calls, "UpdateStack"), 1);
}

//! Deletions of stacks that are busy, absent, or cannot be read.

use aws_sdk_cloudformation::Client as Cfn;
use aws_sdk_cloudformation::operation::get_template::GetTemplateError;
use aws_sdk_dynamodb::operation::describe_table::DescribeTableError;
use aws_smithy_mocks::mock;
use zae_limiter_stack::{Change, Error};

use super::tape::{Tape, created, deletion, failure, history, looks, no_resources, refusal, template};
use super::{NAME, body, count, stack, tags};
use crate::support::bare;

#[tokio::test(start_paused = true)]
async fn a_deletion_waits_for_the_operation_of_another_process() {
    let statuses: &[_] = &[
        "UPDATE_IN_PROGRESS",
        "UPDATE_IN_PROGRESS",
        "UPDATE_COMPLETE",
        "UPDATE_COMPLETE",
        "DELETE_IN_PROGRESS",
        "DELETE_COMPLETE",
    ];
    let tape = Tape::of([
        looks(statuses, tags(&bare())),
        template(&body(&bare())),
        history(&[(NAME, "", "UPDATE_IN_PROGRESS", "User Initiated")], "x"),
        no_resources(),
        deletion(),
    ]);
    let (stack, calls) = stack(&bare(), &tape);
    assert!(stack.delete().await.unwrap().existed);
    let names = calls.names();
    let before = names.iter().take_while(|name| *name != "DeleteStack");
    assert_eq!(
        before.filter(|name| *name == "DescribeStacks").count(),
        4,
        "{names:?}"
    );
    assert_eq!(count(&calls, "DeleteStack"), 1);
}

#[tokio::test(start_paused = true)]
async fn deleting_a_stack_that_does_not_exist_touches_no_table() {
    let (absent, calls) = stack(&bare(), &Tape::of([looks(&[""], tags(&bare()))]));
    let deleted = absent.delete().await.unwrap();
    assert!(!deleted.existed && deleted.purged.is_empty(), "{deleted:?}");
    assert_eq!(calls.names(), ["DescribeStacks"]);
}

#[tokio::test(start_paused = true)]
async fn leftovers_that_must_not_be_looked_for_are_not_planned() {
    let table = |code: &'static str| {
        let mut tape = Tape::of([looks(&[""], tags(&bare()))]);
        tape.dynamodb.push(
            mock!(aws_sdk_dynamodb::Client::describe_table)
                .then_error(move || DescribeTableError::generic(refusal(code, "no"))),
        );
        stack(&bare(), &tape).0
    };
    let planned = table("AccessDeniedException").plan_delete().await.unwrap();
    assert!(!planned.existed && planned.kept.is_empty(), "{planned:?}");
    let error = table("ValidationException").plan_delete().await.unwrap_err();
    assert!(matches!(error, Error::Call { .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_stack_that_is_deleted_while_it_is_read_is_created_and_one_that_cannot_be_read_is_not() {
    let unreadable = |code: &'static str, message: &'static str| {
        let template =
            mock!(Cfn::get_template).then_error(move || GetTemplateError::generic(refusal(code, message)));
        let rules = [
            looks(&["CREATE_COMPLETE"], tags(&bare())),
            template,
            created(),
            history(&[(NAME, "", "CREATE_IN_PROGRESS", "User Initiated")], "x"),
        ];
        stack(&bare(), &Tape::of(rules).with_free_site())
    };
    let (gone, calls) = unreadable("ValidationError", "Stack with id demo does not exist");
    assert_eq!(gone.ensure().await.unwrap().change, Change::Created);
    assert_eq!(count(&calls, "CreateStack"), 1);

    let (denied, calls) = unreadable("AccessDenied", "no");
    let error = denied.ensure().await.unwrap_err();
    assert!(matches!(error, Error::Denied { .. }), "{error}");
    assert_eq!(count(&calls, "CreateStack"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_failed_stack_that_cannot_be_deleted_is_not_created_again() {
    let stuck = (
        "AggregatorRole",
        "AWS::IAM::Role",
        "Cannot delete entity, must detach all policies first.",
    );
    let statuses: &[_] = &["ROLLBACK_COMPLETE", "DELETE_IN_PROGRESS", "DELETE_FAILED"];
    let rules = [
        looks(statuses, tags(&bare())),
        template(&body(&bare())),
        failure("DELETE", stuck, "DELETE_FAILED", "x"),
        deletion(),
        created(),
    ];
    let (failed, calls) = stack(&bare(), &Tape::of(rules).with_free_site());
    let error = failed.recreate_failed(true).ensure().await.unwrap_err();
    assert!(
        matches!(&error, Error::Failed { cause: Some(cause), .. } if cause.logical_id == "AggregatorRole"),
        "{error}"
    );
    assert_eq!(
        (count(&calls, "DeleteStack"), count(&calls, "CreateStack")),
        (1, 0)
    );
}

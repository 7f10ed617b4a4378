//! A stack that another tool deploys is neither deleted nor rolled back unless told.

use std::collections::BTreeMap;

use aws_sdk_cloudformation::Client as Cfn;
use aws_sdk_cloudformation::operation::continue_update_rollback::ContinueUpdateRollbackOutput;
use aws_sdk_cloudformation::operation::list_change_sets::ListChangeSetsOutput;
use aws_sdk_cloudformation::operation::rollback_stack::RollbackStackOutput;
use aws_smithy_mocks::mock;
use zae_limiter_stack::Error;

use super::tape::{Tape, deletion, history, looks, no_resources, template};
use super::{NAME, body, count, stack, tags};
use crate::support::bare;

fn tape(statuses: &'static [&'static str], tags: BTreeMap<String, String>) -> Tape {
    let go_on =
        mock!(Cfn::continue_update_rollback).then_output(|| ContinueUpdateRollbackOutput::builder().build());
    let roll_back = mock!(Cfn::rollback_stack).then_output(|| RollbackStackOutput::builder().build());
    let change_sets = mock!(Cfn::list_change_sets).then_output(|| ListChangeSetsOutput::builder().build());
    Tape::of([
        looks(statuses, tags),
        template(&body(&bare())),
        history(&[(NAME, "", "UPDATE_IN_PROGRESS", "")], "x"),
        deletion(),
        no_resources(),
        go_on,
        roll_back,
        change_sets,
    ])
}

/// The tags of a stack that Terraform, or a tool without tags, deploys.
fn of_others() -> [BTreeMap<String, String>; 2] {
    let (mut terraformed, mut untagged) = (tags(&bare()), tags(&bare()));
    terraformed.insert("ManagedBy".to_owned(), "terraform".to_owned());
    untagged.remove("ManagedBy");
    [terraformed, untagged]
}

fn is_refused(error: &Error) {
    assert!(matches!(error, Error::ManagedElsewhere { .. }), "{error}");
    assert!(error.to_string().contains("--adopt"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_stack_of_another_tool_is_deleted_only_if_told() {
    let deleted: &[_] = &["CREATE_COMPLETE", "DELETE_IN_PROGRESS", "DELETE_COMPLETE"];
    for tags in of_others() {
        let (careful, calls) = stack(&bare(), &tape(deleted, tags.clone()));
        is_refused(&careful.delete().await.unwrap_err());
        assert_eq!(count(&calls, "DeleteStack"), 0);

        let (previews, _) = stack(&bare(), &tape(deleted, tags.clone()));
        is_refused(&previews.plan_delete().await.unwrap_err());

        let (told, calls) = stack(&bare(), &tape(deleted, tags));
        assert!(told.adopt(true).delete().await.unwrap().existed);
        assert_eq!(count(&calls, "DeleteStack"), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_stack_of_another_tool_is_rolled_back_only_if_told() {
    for (statuses, operation) in [
        (
            &[
                "UPDATE_ROLLBACK_FAILED",
                "UPDATE_ROLLBACK_IN_PROGRESS",
                "UPDATE_ROLLBACK_COMPLETE",
            ] as &'static [_],
            "ContinueUpdateRollback",
        ),
        (
            &[
                "UPDATE_FAILED",
                "UPDATE_ROLLBACK_IN_PROGRESS",
                "UPDATE_ROLLBACK_COMPLETE",
            ],
            "RollbackStack",
        ),
    ] {
        for tags in of_others() {
            let (careful, calls) = stack(&bare(), &tape(statuses, tags.clone()));
            is_refused(&careful.continue_rollback(&[]).await.unwrap_err());
            assert_eq!(count(&calls, operation), 0);

            let (told, calls) = stack(&bare(), &tape(statuses, tags));
            let status = told.adopt(true).continue_rollback(&[]).await.unwrap();
            assert_eq!(status.status, "UPDATE_ROLLBACK_COMPLETE");
            assert_eq!(count(&calls, operation), 1);
        }
    }
}

/// It has no tags before its first change set is executed.
#[tokio::test(start_paused = true)]
async fn an_empty_stack_of_ours_is_deleted_without_being_told() {
    let statuses: &[_] = &["REVIEW_IN_PROGRESS", "DELETE_IN_PROGRESS", "DELETE_COMPLETE"];
    let (deletes, calls) = stack(&bare(), &tape(statuses, BTreeMap::new()));
    assert!(deletes.delete().await.unwrap().existed);
    assert_eq!(count(&calls, "DeleteStack"), 1);
}

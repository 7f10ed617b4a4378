//! Imports that do not start leave nothing behind.

use aws_sdk_cloudformation::Client as Cfn;
use aws_sdk_cloudformation::operation::describe_change_set::DescribeChangeSetOutput;
use aws_sdk_cloudformation::operation::execute_change_set::ExecuteChangeSetError;
use aws_sdk_cloudformation::operation::list_change_sets::ListChangeSetsOutput;
use aws_sdk_cloudformation::types::{ChangeAction, ChangeSetStatus, ChangeSetSummary};
use aws_smithy_mocks::{Rule, mock};
use zae_limiter_stack::Error;

use super::existing_table::{around_a_table, import};
use super::tape::refusal;
use super::{CHANGE_SET, ID, count, stack};
use crate::support::bare;

fn change_sets(names: &'static [&'static str]) -> Rule {
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
async fn c6_a_change_set_that_would_make_the_table_anew_is_thrown_away_with_its_empty_stack() {
    let shell: &[_] = &["", "", "REVIEW_IN_PROGRESS"];
    let mut tape = around_a_table(shell, ChangeAction::Add, None);
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

#[tokio::test(start_paused = true)]
async fn an_import_that_cannot_be_started_leaves_nothing_behind_that_is_its_own() {
    for (others, deleted) in [(&[] as &[_], 1), (&["zl-of-another"], 0)] {
        let denied = mock!(Cfn::execute_change_set)
            .then_error(|| ExecuteChangeSetError::generic(refusal("AccessDenied", "no")));
        let mut tape = import(&["", "", "REVIEW_IN_PROGRESS"]);
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
    let failed = mock!(Cfn::describe_change_set).then_output(|| {
        let failed = DescribeChangeSetOutput::builder().status(ChangeSetStatus::Failed);
        failed
            .status_reason("no")
            .change_set_id(CHANGE_SET)
            .stack_id(ID)
            .build()
    });
    let mut tape = import(&["", "", "REVIEW_IN_PROGRESS"]);
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

//! CloudFormation assumes the service role in every operation that changes the stack. A call without it has no response here.

use aws_sdk_cloudformation::Client as Cfn;
use aws_sdk_cloudformation::operation::continue_update_rollback::ContinueUpdateRollbackOutput;
use aws_sdk_cloudformation::operation::create_change_set::CreateChangeSetOutput;
use aws_sdk_cloudformation::operation::create_stack::CreateStackOutput;
use aws_sdk_cloudformation::operation::delete_stack::DeleteStackOutput;
use aws_sdk_cloudformation::operation::describe_change_set::DescribeChangeSetOutput;
use aws_sdk_cloudformation::operation::rollback_stack::RollbackStackOutput;
use aws_sdk_cloudformation::operation::update_stack::UpdateStackOutput;
use aws_sdk_cloudformation::types::ChangeSetStatus;
use aws_smithy_mocks::{Rule, mock};
use zae_limiter_stack::{Change, Stack, StackOptions};

use super::tape::{Tape, change_set, discarded, history, looks, no_resources, template};
use super::{CHANGE_SET, ID, NAME, body, changed, stack, tags};
use crate::support::bare;
use crate::support::permits::SERVICE_ROLE as ROLE;

const UPDATED: &[&str] = &["CREATE_COMPLETE", "UPDATE_IN_PROGRESS", "UPDATE_COMPLETE"];

fn made() -> Rule {
    mock!(Cfn::create_change_set)
        .match_requests(|input| input.role_arn() == Some(ROLE))
        .then_output(|| {
            let made = CreateChangeSetOutput::builder().id(CHANGE_SET);
            made.stack_id(ID).build()
        })
}

/// A stack with the service role that is in these states, one after the other.
fn with_role(options: &StackOptions, statuses: &'static [&'static str], rules: Vec<Rule>) -> Stack {
    let mut tape = Tape::of(rules);
    tape.cloudformation.extend([
        looks(statuses, tags(&bare())),
        template(&body(&bare())),
        history(&[(NAME, "", "UPDATE_IN_PROGRESS", "")], "x"),
    ]);
    stack(options, &tape.with_free_site()).0.service_role(ROLE)
}

#[tokio::test(start_paused = true)]
async fn a_stack_is_created_with_the_service_role() {
    let create = mock!(Cfn::create_stack)
        .match_requests(|input| input.role_arn() == Some(ROLE))
        .then_output(|| CreateStackOutput::builder().stack_id(ID).build());
    let creates = with_role(&bare(), &["", "CREATE_COMPLETE"], vec![create.clone()]);
    assert_eq!(creates.ensure().await.unwrap().change, Change::Created);
    assert_eq!(create.num_calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_change_set_is_created_with_the_service_role() {
    let mut rules = change_set(vec![]);
    rules[0] = made();
    let updates = with_role(&changed(), UPDATED, rules);
    assert_eq!(updates.ensure().await.unwrap().change, Change::Updated);
}

#[tokio::test(start_paused = true)]
async fn an_update_without_a_change_set_has_the_service_role() {
    let nothing = mock!(Cfn::describe_change_set).then_output(|| {
        let output = DescribeChangeSetOutput::builder().status(ChangeSetStatus::Failed);
        let output = output.status_reason("The submitted information didn't contain changes.");
        output.change_set_id(CHANGE_SET).stack_id(ID).build()
    });
    let update = mock!(Cfn::update_stack)
        .match_requests(|input| input.role_arn() == Some(ROLE))
        .then_output(|| UpdateStackOutput::builder().stack_id(ID).build());
    let rules = vec![made(), nothing, discarded(), update.clone()];
    let updates = with_role(&changed(), UPDATED, rules);
    assert_eq!(updates.ensure().await.unwrap().change, Change::Updated);
    assert_eq!(update.num_calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_stack_is_deleted_with_the_service_role() {
    let delete = mock!(Cfn::delete_stack)
        .match_requests(|input| input.role_arn() == Some(ROLE))
        .then_output(|| DeleteStackOutput::builder().build());
    let statuses = &["CREATE_COMPLETE", "DELETE_IN_PROGRESS", "DELETE_COMPLETE"];
    let deletes = with_role(&bare(), statuses, vec![no_resources(), delete.clone()]);
    assert!(deletes.delete().await.unwrap().existed);
    assert_eq!(delete.num_calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_rollback_is_continued_with_the_service_role() {
    let go_on = mock!(Cfn::continue_update_rollback)
        .match_requests(|input| input.role_arn() == Some(ROLE))
        .then_output(|| ContinueUpdateRollbackOutput::builder().build());
    let statuses = &[
        "UPDATE_ROLLBACK_FAILED",
        "UPDATE_ROLLBACK_IN_PROGRESS",
        "UPDATE_ROLLBACK_COMPLETE",
    ];
    let continues = with_role(&bare(), statuses, vec![go_on.clone()]);
    continues.continue_rollback(&[]).await.unwrap();
    assert_eq!(go_on.num_calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_update_that_stopped_halfway_is_rolled_back_with_the_service_role() {
    let roll_back = mock!(Cfn::rollback_stack)
        .match_requests(|input| input.role_arn() == Some(ROLE))
        .then_output(|| RollbackStackOutput::builder().build());
    let statuses = &[
        "UPDATE_FAILED",
        "UPDATE_ROLLBACK_IN_PROGRESS",
        "UPDATE_ROLLBACK_COMPLETE",
    ];
    let continues = with_role(&bare(), statuses, vec![roll_back.clone()]);
    continues.continue_rollback(&[]).await.unwrap();
    assert_eq!(roll_back.num_calls(), 1);
}

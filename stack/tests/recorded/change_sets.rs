//! How change sets are created, executed and deleted.

use aws_sdk_cloudformation::Client as Cfn;
use aws_sdk_cloudformation::operation::describe_change_set::{
    DescribeChangeSetError, DescribeChangeSetOutput,
};
use aws_sdk_cloudformation::operation::execute_change_set::ExecuteChangeSetError;
use aws_sdk_cloudformation::operation::update_stack::{UpdateStackError, UpdateStackOutput};
use aws_sdk_cloudformation::types::{
    ChangeAction, ChangeSetStatus, PolicyAction, Replacement, ResourceChange,
};
use aws_smithy_mocks::{Rule, mock};
use zae_limiter_stack::{Change, Error};

use super::tape::{Tape, change_set, discarded, history, looks, made, refusal, template};
use super::{CHANGE_SET, ID, NAME, body, changed, count, stack, tags};
use crate::support::bare;

pub(crate) fn change(
    id: &str,
    action: ChangeAction,
    replacement: Option<Replacement>,
    policy: Option<PolicyAction>,
) -> ResourceChange {
    let change = ResourceChange::builder()
        .logical_resource_id(id)
        .action(action)
        .resource_type("AWS::DynamoDB::Table");
    change
        .set_replacement(replacement)
        .set_policy_action(policy)
        .build()
}

pub(crate) fn tape(statuses: &'static [&'static str], rules: Vec<Rule>) -> Tape {
    let events = history(&[(NAME, "", "UPDATE_IN_PROGRESS", "User Initiated")], "x");
    let mut tape = Tape::of(rules);
    tape.cloudformation
        .extend([looks(statuses, tags(&bare())), template(&body(&bare())), events]);
    tape.with_free_names()
}

pub(crate) const UPDATED: &[&str] = &["CREATE_COMPLETE", "UPDATE_IN_PROGRESS", "UPDATE_COMPLETE"];

pub(crate) fn failed(reason: &'static str) -> Vec<Rule> {
    let failed = mock!(Cfn::describe_change_set).then_output(move || {
        let output = DescribeChangeSetOutput::builder()
            .status(ChangeSetStatus::Failed)
            .status_reason(reason);
        output.change_set_id(CHANGE_SET).stack_id(ID).build()
    });
    vec![made(), failed, discarded()]
}

#[tokio::test(start_paused = true)]
async fn m3_what_change_sets_do_not_see_is_updated_without_one() {
    let nothing = "The submitted information didn't contain changes. Submit different information to create a change set.";
    let mut rules = failed(nothing);
    rules.push(mock!(Cfn::update_stack).then_output(|| UpdateStackOutput::builder().stack_id(ID).build()));
    let (seen, calls) = stack(&changed(), &tape(UPDATED, rules));
    assert_eq!(seen.ensure().await.unwrap().change, Change::Updated);
    assert_eq!(
        (count(&calls, "UpdateStack"), count(&calls, "DeleteChangeSet")),
        (1, 1)
    );

    let mut rules = failed("No updates are to be performed.");
    rules.push(mock!(Cfn::update_stack).then_error(|| {
        UpdateStackError::generic(refusal("ValidationError", "No updates are to be performed."))
    }));
    let (same, _) = stack(&changed(), &tape(&["CREATE_COMPLETE"], rules));
    assert_eq!(same.ensure().await.unwrap().change, Change::None);
}

#[tokio::test(start_paused = true)]
async fn a_change_set_that_cannot_be_made_is_an_error_with_its_reason() {
    let reason = "Template format error: Unresolved resource dependencies [X]";
    let (stack, calls) = stack(&changed(), &tape(UPDATED, failed(reason)));
    let error = stack.ensure().await.unwrap_err();
    assert!(
        matches!(&error, Error::ChangeSet { reason: said } if said == reason),
        "{error}"
    );
    assert_eq!(count(&calls, "DeleteChangeSet"), 1);
}

#[tokio::test(start_paused = true)]
async fn reverting_drift_is_asked_for_and_an_equal_stack_without_drift_is_left_alone() {
    use aws_sdk_cloudformation::types::DeploymentMode;
    let asked = || {
        mock!(Cfn::create_change_set)
            .match_requests(|input| input.deployment_mode() == Some(&DeploymentMode::RevertDrift))
            .then_output(|| {
                aws_sdk_cloudformation::operation::create_change_set::CreateChangeSetOutput::builder()
                    .id(CHANGE_SET)
                    .stack_id(ID)
                    .build()
            })
    };
    let drifted = change(
        "RateLimitsTable",
        ChangeAction::Modify,
        Some(Replacement::False),
        None,
    );
    let mut rules = change_set(vec![drifted]);
    rules[0] = asked();
    let (reverts, calls) = stack(&bare(), &tape(UPDATED, rules));
    assert_eq!(
        reverts.revert_drift(true).ensure().await.unwrap().change,
        Change::Updated
    );
    assert_eq!(count(&calls, "ExecuteChangeSet"), 1);

    let mut rules = failed("The submitted information didn't contain changes.");
    rules[0] = asked();
    let (in_sync, calls) = stack(&bare(), &tape(UPDATED, rules));
    assert_eq!(
        in_sync.revert_drift(true).ensure().await.unwrap().change,
        Change::None
    );
    assert_eq!(count(&calls, "UpdateStack"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_change_that_somebody_overtakes_is_compared_again() {
    for (code, message) in [
        ("InvalidChangeSetStatus", "ChangeSet is in OBSOLETE status"),
        ("ChangeSetNotFound", "ChangeSet does not exist"),
        (
            "ValidationError",
            "Stack:arn is in UPDATE_IN_PROGRESS state and can not be updated.",
        ),
    ] {
        let late = mock!(Cfn::execute_change_set)
            .then_error(move || ExecuteChangeSetError::generic(refusal(code, message)));
        let mut rules = vec![late];
        rules.extend(change_set(vec![]));
        // Our change is refused because the other process makes the same one.
        let first = mock!(Cfn::get_template).sequence();
        let (old, new) = (body(&bare()).to_string(), body(&changed()).to_string());
        let output = |body: String| {
            move || {
                aws_sdk_cloudformation::operation::get_template::GetTemplateOutput::builder()
                    .template_body(&body)
                    .build()
            }
        };
        rules.push(first.output(output(old)).output(output(new)).repeatedly().build());
        let statuses: &[_] = &["CREATE_COMPLETE", "UPDATE_IN_PROGRESS", "UPDATE_COMPLETE"];
        let (stack, _) = stack(&changed(), &tape(statuses, rules));
        assert_eq!(stack.ensure().await.unwrap().change, Change::Awaited, "{code}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_plan_whose_change_set_is_gone_is_obsolete() {
    let gone = || {
        mock!(Cfn::describe_change_set).then_error(|| {
            DescribeChangeSetError::generic(refusal("ChangeSetNotFound", "ChangeSet does not exist"))
        })
    };
    let (planner, _) = stack(&changed(), &tape(&["CREATE_COMPLETE"], change_set(vec![])));
    let plan = planner.plan().await.unwrap();
    let (applier, calls) = stack(&changed(), &tape(&["CREATE_COMPLETE"], vec![gone()]));
    let error = applier.apply(&plan).await.unwrap_err();
    assert!(matches!(error, Error::PlanObsolete { .. }), "{error}");
    assert_eq!(
        count(&calls, "CreateChangeSet"),
        0,
        "what was planned is done, and nothing else"
    );
}

#[tokio::test(start_paused = true)]
async fn a_change_set_that_is_not_executed_is_thrown_away() {
    let denied = mock!(Cfn::execute_change_set)
        .then_error(|| ExecuteChangeSetError::generic(refusal("AccessDenied", "no")));
    let mut rules = vec![denied];
    rules.extend(change_set(vec![]));
    let (refused, calls) = stack(&changed(), &tape(UPDATED, rules));
    let error = refused.ensure().await.unwrap_err();
    assert!(matches!(error, Error::Denied { .. }), "{error}");
    assert_eq!(count(&calls, "DeleteChangeSet"), 1);

    let pending = mock!(Cfn::describe_change_set).then_output(|| {
        let pending = DescribeChangeSetOutput::builder().status(ChangeSetStatus::CreateInProgress);
        pending.change_set_id(CHANGE_SET).stack_id(ID).build()
    });
    let (slow, calls) = stack(&changed(), &tape(UPDATED, vec![made(), pending, discarded()]));
    let error = slow.ensure().await.unwrap_err();
    assert!(matches!(error, Error::TimedOut { .. }), "{error}");
    assert_eq!(count(&calls, "DeleteChangeSet"), 1);

    let (planner, calls) = stack(&changed(), &tape(&["CREATE_COMPLETE"], change_set(vec![])));
    let plan = planner.plan().await.unwrap();
    assert_eq!(count(&calls, "DeleteChangeSet"), 0);
    planner.discard(&plan).await;
    assert_eq!(count(&calls, "DeleteChangeSet"), 1);
}

#[tokio::test(start_paused = true)]
async fn planning_while_others_are_always_faster_ends_with_the_time_allowed() {
    use aws_sdk_cloudformation::operation::create_change_set::CreateChangeSetError;
    let busy = mock!(Cfn::create_change_set).then_error(|| {
        let message = "Stack:arn is in UPDATE_IN_PROGRESS state and can not be updated.";
        CreateChangeSetError::generic(refusal("ValidationError", message))
    });
    let (planner, calls) = stack(&changed(), &tape(&["CREATE_COMPLETE"], vec![busy]));
    let planner = planner.within(std::time::Duration::from_secs(60));
    let error = planner.plan().await.unwrap_err();
    assert!(matches!(error, Error::TimedOut { .. }), "{error}");
    let asked = count(&calls, "CreateChangeSet");
    assert!((2..60).contains(&asked), "{asked} times in a minute");
}

//! A change set that would lose data is refused unless that is allowed.

use aws_sdk_cloudformation::Client as Cfn;
use aws_sdk_cloudformation::operation::describe_change_set::DescribeChangeSetOutput;
use aws_sdk_cloudformation::types::{
    Change as CfnChange, ChangeAction, ChangeSetStatus, PolicyAction, Replacement, RequiresRecreation,
    ResourceAttribute, ResourceChange, ResourceChangeDetail, ResourceTargetDefinition,
};
use aws_smithy_mocks::mock;
use zae_limiter_stack::{Change, Error, Kind};

use super::change_sets::{UPDATED, change, tape};
use super::tape::{Tape, change_set, discarded, executed, looks, made, template};
use super::{CHANGE_SET, ID, body, changed, count, stack, tags};
use crate::support::bare;

#[tokio::test(start_paused = true)]
async fn a_change_set_that_replaces_or_removes_the_table_is_refused_unless_named() {
    let dangerous = [
        change(
            "RateLimitsTable",
            ChangeAction::Modify,
            Some(Replacement::True),
            None,
        ),
        change(
            "RateLimitsTable",
            ChangeAction::Modify,
            Some(Replacement::Conditional),
            None,
        ),
        change(
            "RateLimitsTable",
            ChangeAction::Remove,
            None,
            Some(PolicyAction::Retain),
        ),
        change(
            "RateLimitsTable",
            ChangeAction::Remove,
            None,
            Some(PolicyAction::Delete),
        ),
        change(
            "RateLimitsTable",
            ChangeAction::Modify,
            Some(Replacement::False),
            Some(PolicyAction::ReplaceAndRetain),
        ),
        change(
            "RateLimitsTable",
            ChangeAction::Modify,
            None,
            Some(PolicyAction::ReplaceAndDelete),
        ),
        change("RateLimitsTable", ChangeAction::Dynamic, None, None),
        change(
            "AuditArchiveBucket",
            ChangeAction::Remove,
            None,
            Some(PolicyAction::Retain),
        ),
    ];
    // A change that only the change set tells as dangerous: stream settings may be anything.
    let options = bare()
        .to_builder()
        .tags([("team".to_owned(), "blue".to_owned())].into())
        .build()
        .unwrap();
    for change in dangerous {
        let id = change.logical_resource_id().unwrap().to_owned();
        let shown = format!("{change:?}");
        let (careful, calls) = stack(&options, &tape(UPDATED, change_set(vec![change.clone()])));
        let error = careful.ensure().await.unwrap_err();
        assert!(
            matches!(&error, Error::Guarded { refusals } if refusals[0].what == id),
            "{shown}: {error}"
        );
        assert_eq!(
            (
                count(&calls, "ExecuteChangeSet"),
                count(&calls, "DeleteChangeSet")
            ),
            (0, 1),
            "{shown}"
        );

        let (planned, calls) = stack(&options, &tape(UPDATED, change_set(vec![change.clone()])));
        assert!(planned.plan().await.unwrap().is_refused(), "{shown}");
        assert_eq!(count(&calls, "DeleteChangeSet"), 1, "it is of no use: {shown}");

        let (bold, calls) = stack(&options, &tape(UPDATED, change_set(vec![change])));
        assert_eq!(
            bold.allow_loss([id]).ensure().await.unwrap().change,
            Change::Updated,
            "{shown}"
        );
        assert_eq!(count(&calls, "ExecuteChangeSet"), 1, "{shown}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_danger_may_be_on_the_last_page() {
    let page = |id: &'static str, replacement: Replacement, next: Option<&str>| {
        let change = change(id, ChangeAction::Modify, Some(replacement), None);
        let output = DescribeChangeSetOutput::builder()
            .status(ChangeSetStatus::CreateComplete)
            .stack_id(ID);
        let output = output
            .change_set_id(CHANGE_SET)
            .changes(CfnChange::builder().resource_change(change).build());
        output.set_next_token(next.map(str::to_owned)).build()
    };
    let first = mock!(Cfn::describe_change_set)
        .match_requests(|input| input.next_token().is_none())
        .then_output(move || page("AggregatorFunction", Replacement::False, Some("more")));
    let last = mock!(Cfn::describe_change_set)
        .match_requests(|input| input.next_token() == Some("more"))
        .then_output(move || page("RateLimitsTable", Replacement::True, None));
    let (stack, calls) = stack(
        &changed(),
        &tape(UPDATED, vec![made(), first, last, executed(), discarded()]),
    );
    assert!(matches!(stack.ensure().await, Err(Error::Guarded { .. })));
    assert_eq!(count(&calls, "ExecuteChangeSet"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_change_that_is_always_made_in_place_is_not_refused_as_conditional() {
    let target = ResourceTargetDefinition::builder().attribute(ResourceAttribute::Properties);
    let target = target
        .name("DeletionProtectionEnabled")
        .requires_recreation(RequiresRecreation::Conditionally)
        .build();
    let detail = ResourceChangeDetail::builder().target(target).build();
    let change = ResourceChange::builder()
        .logical_resource_id("RateLimitsTable")
        .action(ChangeAction::Modify);
    let change = change
        .resource_type("AWS::DynamoDB::Table")
        .replacement(Replacement::Conditional)
        .details(detail)
        .build();
    let (stack, _) = stack(&changed(), &tape(UPDATED, change_set(vec![change])));
    let plan = stack.plan().await.unwrap();
    assert_eq!(plan.changes[0].kind, Kind::Change);
    assert!(!plan.is_refused());
}

#[tokio::test(start_paused = true)]
async fn a_plan_that_was_allowed_to_lose_the_table_is_guarded_where_that_is_not_allowed() {
    let loses = |id: &str| change(id, ChangeAction::Modify, Some(Replacement::True), None);
    let rules = || change_set(vec![loses("RateLimitsTable")]);
    let (planner, _) = stack(&changed(), &tape(&["CREATE_COMPLETE"], rules()));
    let plan = planner.allow_loss(["RateLimitsTable"]).plan().await.unwrap();
    assert!(!plan.is_refused(), "{plan}");

    // Nothing was allowed, or something else.
    for allowed in [&[][..], &["AuditArchiveBucket"]] {
        let (applier, calls) = stack(&changed(), &tape(UPDATED, rules()));
        let applier = applier.allow_loss(allowed.iter().copied());
        let error = applier.apply(&plan).await.unwrap_err();
        assert!(
            matches!(&error, Error::Guarded { refusals } if refusals[0].what == "RateLimitsTable"),
            "{error}"
        );
        assert_eq!(
            (count(&calls, "ExecuteChangeSet"), count(&calls, "UpdateStack")),
            (0, 0),
            "{allowed:?}"
        );
    }

    let (applier, calls) = stack(&changed(), &tape(UPDATED, rules()));
    let outcome = applier
        .allow_loss(["RateLimitsTable"])
        .apply(&plan)
        .await
        .unwrap();
    assert_eq!(outcome.change, Change::Updated);
    assert_eq!(count(&calls, "ExecuteChangeSet"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_stored_change_set_that_turns_out_to_lose_the_table_is_guarded() {
    // CloudFormation says more when the change set is read again than it said for the plan.
    let (planner, _) = stack(&changed(), &tape(&["CREATE_COMPLETE"], change_set(vec![])));
    let plan = planner.plan().await.unwrap();
    let loses = change(
        "RateLimitsTable",
        ChangeAction::Remove,
        None,
        Some(PolicyAction::Delete),
    );
    let (applier, calls) = stack(&changed(), &tape(UPDATED, change_set(vec![loses])));
    let error = applier.apply(&plan).await.unwrap_err();
    assert!(matches!(error, Error::Guarded { .. }), "{error}");
    assert_eq!(count(&calls, "ExecuteChangeSet"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_table_of_another_type_would_be_replaced_and_is_guarded() {
    let mut deployed = body(&bare());
    deployed["Resources"]["RateLimitsTable"]["Type"] = "AWS::DynamoDB::GlobalTable".into();
    let tape = Tape::of([looks(&["CREATE_COMPLETE"], tags(&bare())), template(&deployed)]).with_free_names();
    let (guarded, calls) = stack(&bare(), &tape);
    let error = guarded.ensure().await.unwrap_err();
    assert!(matches!(error, Error::Guarded { .. }), "{error}");
    assert!(
        error.to_string().contains("would be replaced by an empty one"),
        "{error}"
    );
    assert_eq!(count(&calls, "CreateChangeSet"), 0);
}

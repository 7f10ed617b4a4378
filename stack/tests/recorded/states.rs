//! Every state that a stack can be found in.

use std::collections::BTreeMap;

use aws_sdk_cloudformation::Client as Cfn;
use aws_sdk_cloudformation::operation::create_stack::{CreateStackError, CreateStackOutput};
use aws_sdk_cloudformation::operation::list_change_sets::ListChangeSetsOutput;
use aws_sdk_cloudformation::types::{
    Capability, ChangeAction, ChangeSetSummary, Replacement, ResourceChange,
};
use aws_smithy_mocks::{Rule, mock};
use zae_limiter_stack::{Change, Error, Event, Owner};

use super::support::{Diary, bare};
use super::tape::{
    Tape, change_set, created, deletion, failure, history, looks, no_resources, refusal, template,
};
use super::{ID, NAME, body, changed, count, stack, tags};

pub(crate) fn in_place() -> ResourceChange {
    let change = ResourceChange::builder()
        .logical_resource_id("RateLimitsTable")
        .action(ChangeAction::Modify);
    change
        .resource_type("AWS::DynamoDB::Table")
        .replacement(Replacement::False)
        .build()
}

/// What a stack that is as it should be answers.
pub(crate) fn converged(statuses: &'static [&'static str]) -> Tape {
    let started = history(
        &[(NAME, "", "UPDATE_IN_PROGRESS", "User Initiated")],
        "somebody-elses",
    );
    Tape::of([looks(statuses, tags(&bare())), template(&body(&bare())), started])
}

/// The same, with a change set that changes the table in place.
pub(crate) fn changeable(statuses: &'static [&'static str], token: &str) -> Tape {
    let busy = (
        "RateLimitsTable",
        "AWS::DynamoDB::Table",
        "Table is being updated",
    );
    let mut tape = Tape::of([
        looks(statuses, tags(&bare())),
        template(&body(&bare())),
        failure("UPDATE", busy, "UPDATE_ROLLBACK_COMPLETE", token),
    ]);
    tape.cloudformation.extend(change_set(vec![in_place()]));
    tape.with_free_names()
}

#[tokio::test(start_paused = true)]
async fn a_settled_stack_that_is_equal_takes_two_calls() {
    for statuses in [&["CREATE_COMPLETE"], &["UPDATE_COMPLETE"], &["IMPORT_COMPLETE"]] as [&'static [_]; 3] {
        let (stack, calls) = stack(&bare(), &converged(statuses));
        assert_eq!(stack.ensure().await.unwrap().change, Change::None);
        assert_eq!(calls.names(), ["DescribeStacks", "GetTemplate"], "{statuses:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_equal_stack_is_left_alone_while_it_cleans_up_and_after_a_rollback() {
    let all: [&'static [_]; 3] = [
        &["UPDATE_COMPLETE_CLEANUP_IN_PROGRESS"],
        &["UPDATE_ROLLBACK_COMPLETE"],
        &["IMPORT_ROLLBACK_COMPLETE"],
    ];
    for statuses in all {
        let (stack, calls) = stack(&bare(), &converged(statuses));
        assert_eq!(stack.ensure().await.unwrap().change, Change::None);
        assert_eq!(calls.names().len(), 2, "{statuses:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_operation_of_somebody_else_is_waited_for() {
    let all: [&'static [_]; 6] = [
        &["CREATE_IN_PROGRESS", "CREATE_IN_PROGRESS", "CREATE_COMPLETE"],
        &[
            "UPDATE_IN_PROGRESS",
            "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS",
            "UPDATE_COMPLETE",
        ],
        &["IMPORT_IN_PROGRESS", "IMPORT_COMPLETE"],
        &[
            "UPDATE_ROLLBACK_IN_PROGRESS",
            "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS",
            "UPDATE_ROLLBACK_COMPLETE",
        ],
        &[
            "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS",
            "UPDATE_ROLLBACK_COMPLETE",
        ],
        &["IMPORT_ROLLBACK_IN_PROGRESS", "IMPORT_ROLLBACK_COMPLETE"],
    ];
    for statuses in all {
        let diary = Diary::default();
        let (stack, _) = stack(&bare(), &converged(statuses));
        let outcome = stack.observer(diary.clone()).ensure().await.unwrap();
        assert_eq!(outcome.change, Change::Awaited, "{statuses:?}");
        assert!(outcome.changed());
        let awaited = Event::Awaiting {
            status: statuses[0].to_owned(),
        };
        assert_eq!(diary.events()[0], awaited);
        assert!(
            diary
                .events()
                .iter()
                .any(|event| matches!(event, Event::Resource(_))),
            "its events are told"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn waiting_ends_with_the_time_allowed() {
    let (stack, _) = stack(&bare(), &converged(&["CREATE_IN_PROGRESS"]));
    let error = stack
        .within(std::time::Duration::from_secs(90))
        .ensure()
        .await
        .unwrap_err();
    assert!(
        matches!(&error, Error::TimedOut { status, .. } if status == "CREATE_IN_PROGRESS"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_different_stack_is_changed_by_a_change_set() {
    let all: [&'static [_]; 4] = [
        &["CREATE_COMPLETE", "UPDATE_IN_PROGRESS", "UPDATE_COMPLETE"],
        &["UPDATE_COMPLETE", "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS"],
        &["IMPORT_COMPLETE", "UPDATE_IN_PROGRESS", "UPDATE_COMPLETE"],
        &[
            "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS",
            "UPDATE_COMPLETE",
            "UPDATE_COMPLETE",
            "UPDATE_IN_PROGRESS",
            "UPDATE_COMPLETE",
        ],
    ];
    for statuses in all {
        let (stack, calls) = stack(&changed(), &changeable(statuses, "somebody-elses"));
        assert_eq!(
            stack.ensure().await.unwrap().change,
            Change::Updated,
            "{statuses:?}"
        );
        assert_eq!(count(&calls, "ExecuteChangeSet"), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn an_absent_stack_is_created_with_named_iam_our_tags_and_a_token() {
    let create = mock!(Cfn::create_stack)
        .match_requests(|input| {
            let tagged = input
                .tags()
                .iter()
                .any(|tag| tag.key() == Some("ManagedBy") && tag.value() == Some("zae-limiter"));
            let token = input
                .client_request_token()
                .is_some_and(|token| token.starts_with("zl-"));
            tagged && token && input.capabilities() == [Capability::CapabilityNamedIam]
        })
        .then_output(|| CreateStackOutput::builder().stack_id(ID).build());
    let statuses: &[_] = &["", "CREATE_IN_PROGRESS", "CREATE_COMPLETE"];
    let events = history(&[(NAME, "", "CREATE_IN_PROGRESS", "User Initiated")], "zl");
    let tape = Tape::of([looks(statuses, tags(&bare())), create, events]).with_free_site();
    let (stack, calls) = stack(&bare(), &tape);
    assert_eq!(stack.ensure().await.unwrap().change, Change::Created);
    assert_eq!(
        count(&calls, "CreateChangeSet"),
        0,
        "a change set would leave an empty stack behind"
    );
}

#[tokio::test(start_paused = true)]
async fn somebody_who_creates_at_the_same_time_is_waited_for() {
    let taken = mock!(Cfn::create_stack).then_error(|| {
        CreateStackError::generic(refusal("AlreadyExistsException", "Stack [demo] already exists"))
    });
    let statuses: &[_] = &["", "CREATE_IN_PROGRESS", "CREATE_IN_PROGRESS", "CREATE_COMPLETE"];
    let events = history(&[(NAME, "", "CREATE_IN_PROGRESS", "User Initiated")], "x");
    let tape = Tape::of([
        looks(statuses, tags(&bare())),
        taken,
        template(&body(&bare())),
        events,
    ])
    .with_free_site();
    let (stack, _) = stack(&bare(), &tape);
    assert_eq!(stack.ensure().await.unwrap().change, Change::Awaited);
}

#[tokio::test(start_paused = true)]
async fn a_stack_that_is_being_deleted_is_made_again_when_it_is_gone() {
    let statuses: &[_] = &[
        "DELETE_IN_PROGRESS",
        "DELETE_IN_PROGRESS",
        "DELETE_COMPLETE",
        "",
        "CREATE_COMPLETE",
    ];
    let events = history(&[(NAME, "", "DELETE_IN_PROGRESS", "User Initiated")], "x");
    let tape = Tape::of([
        looks(statuses, tags(&bare())),
        template(&body(&bare())),
        created(),
        events,
    ])
    .with_free_site();
    let (stack, _) = stack(&bare(), &tape);
    assert_eq!(stack.ensure().await.unwrap().change, Change::Created);
}

#[tokio::test(start_paused = true)]
async fn an_empty_stack_in_review_gets_a_change_set_of_ours() {
    let statuses: &[_] = &["REVIEW_IN_PROGRESS", "CREATE_IN_PROGRESS", "CREATE_COMPLETE"];
    let mut tape = Tape::of([
        looks(statuses, tags(&bare())),
        history(&[(NAME, "", "CREATE_IN_PROGRESS", "")], "x"),
    ]);
    tape.cloudformation.extend(change_set(vec![]));
    let (ours, calls) = stack(&bare(), &tape.with_free_site());
    assert_eq!(ours.ensure().await.unwrap().change, Change::Created);
    assert_eq!(
        (count(&calls, "CreateStack"), count(&calls, "ExecuteChangeSet")),
        (0, 1)
    );

    // Somebody else's plans are theirs.
    let team = BTreeMap::from([("team".to_owned(), "blue".to_owned())]);
    let foreign = Tape::of([looks(&["REVIEW_IN_PROGRESS"], team)]);
    refused_as_foreign(&stack(&bare(), &foreign).0.ensure().await.unwrap_err());
}

fn refused_as_foreign(error: &Error) {
    let foreign = Owner::Foreign;
    assert!(
        matches!(error, Error::NotOurs { owner, .. } if *owner == foreign),
        "{error}"
    );
}

/// The change sets of a stack, two pages of them.
fn change_sets(first: &'static str, second: &'static str) -> [Rule; 2] {
    let page = |name: &str, next: Option<&str>| {
        let summary = ChangeSetSummary::builder().change_set_name(name).build();
        let page = ListChangeSetsOutput::builder().summaries(summary);
        page.set_next_token(next.map(str::to_owned)).build()
    };
    [
        mock!(Cfn::list_change_sets)
            .match_requests(|input| input.next_token().is_none())
            .then_output(move || page(first, Some("more"))),
        mock!(Cfn::list_change_sets)
            .match_requests(|input| input.next_token() == Some("more"))
            .then_output(move || page(second, None)),
    ]
}

#[tokio::test(start_paused = true)]
async fn an_empty_stack_in_review_without_tags_is_known_by_its_change_sets() {
    let statuses: &[_] = &["REVIEW_IN_PROGRESS", "CREATE_IN_PROGRESS", "CREATE_COMPLETE"];
    let tape = |second: &'static str| {
        let mut tape = Tape::of([
            looks(statuses, BTreeMap::new()),
            history(&[(NAME, "", "CREATE_IN_PROGRESS", "")], "x"),
        ]);
        tape.cloudformation.extend(change_set(vec![]));
        tape.cloudformation.extend(change_sets("zl-1-1", second));
        tape.with_free_site()
    };
    let (interrupted, calls) = stack(&bare(), &tape("zl-2-2"));
    assert_eq!(interrupted.ensure().await.unwrap().change, Change::Created);
    assert_eq!(count(&calls, "ExecuteChangeSet"), 1);

    let (foreign, calls) = stack(&bare(), &tape("release-7"));
    refused_as_foreign(&foreign.ensure().await.unwrap_err());
    assert_eq!(count(&calls, "CreateChangeSet"), 0);
}

#[tokio::test(start_paused = true)]
async fn h7_an_app_of_an_older_release_leaves_the_stack_as_it_is() {
    let mut newer = body(&changed());
    newer["Metadata"]["zae-limiter"]["version"] = "0.2.0".into();
    let (older, calls) = stack(
        &bare(),
        &Tape::of([looks(&["UPDATE_COMPLETE"], tags(&bare())), template(&newer)]),
    );
    let outcome = older.ensure().await.unwrap();
    assert_eq!(
        (outcome.change, outcome.version.as_str(), outcome.warnings.len()),
        (Change::None, "0.2.0", 1)
    );
    assert_eq!(calls.names().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_operation_that_shows_late_is_not_mistaken_for_the_one_before() {
    let late: &[_] = &[
        "CREATE_COMPLETE",
        "CREATE_COMPLETE",
        "CREATE_COMPLETE",
        "UPDATE_IN_PROGRESS",
        "UPDATE_COMPLETE",
    ];
    let (updated, calls) = stack(&changed(), &changeable(late, "x"));
    assert_eq!(updated.ensure().await.unwrap().change, Change::Updated);
    assert_eq!(count(&calls, "DescribeStacks"), late.len());

    let late: &[_] = &[
        "REVIEW_IN_PROGRESS",
        "REVIEW_IN_PROGRESS",
        "CREATE_IN_PROGRESS",
        "CREATE_COMPLETE",
    ];
    let mut tape = Tape::of([
        looks(late, tags(&bare())),
        history(&[(NAME, "", "CREATE_IN_PROGRESS", "")], "x"),
    ]);
    tape.cloudformation.extend(change_set(vec![]));
    let (reviewed, _) = stack(&bare(), &tape.with_free_site());
    assert_eq!(reviewed.ensure().await.unwrap().change, Change::Created);

    let late: &[_] = &[
        "CREATE_COMPLETE",
        "CREATE_COMPLETE",
        "DELETE_IN_PROGRESS",
        "DELETE_COMPLETE",
    ];
    let events = history(&[(NAME, "", "DELETE_IN_PROGRESS", "")], "x");
    let rules = [
        looks(late, tags(&bare())),
        template(&body(&bare())),
        deletion(),
        no_resources(),
        events,
    ];
    let (deleted, calls) = stack(&bare(), &Tape::of(rules));
    assert!(deleted.delete().await.unwrap().existed);
    assert_eq!(count(&calls, "DescribeStacks"), late.len());
}

#[tokio::test(start_paused = true)]
async fn an_empty_plan_has_the_answer_in_it() {
    let (planner, calls) = stack(&bare(), &converged(&["UPDATE_COMPLETE"]));
    let plan = planner.plan().await.unwrap();
    assert_eq!(calls.names(), ["DescribeStacks", "GetTemplate"]);
    let applied = planner.apply(&plan).await.unwrap();
    assert_eq!(plan.unchanged(), Some(&applied));
    let stored = zae_limiter_stack::Plan::from_json(&plan.to_json()).unwrap();
    assert_eq!(stored.unchanged(), Some(&applied));

    // Somebody who deploys left before the end: whoever comes next finishes what is not the stack's.
    let left: &[_] = &["CREATE_IN_PROGRESS", "CREATE_COMPLETE"];
    let (next, _) = stack(&bare(), &converged(left));
    let plan = next.plan().await.unwrap();
    assert_eq!(plan.unchanged().unwrap().change, Change::Awaited);

    let (other, _) = stack(&changed(), &changeable(&["UPDATE_COMPLETE"], "x"));
    assert_eq!(other.plan().await.unwrap().unchanged(), None);
}

#[tokio::test(start_paused = true)]
async fn a_plan_that_this_release_cannot_read_is_refused() {
    let (planner, calls) = stack(&bare(), &converged(&["UPDATE_COMPLETE"]));
    let plan = planner.plan().await.unwrap().to_json();
    let made = calls.names().len();
    for (text, expected) in [
        (
            plan.replacen("\"format\": 1", "\"format\": 2", 1),
            "its format is 2",
        ),
        (plan[..plan.len() / 2].to_owned(), "EOF while parsing"),
        ("{}".to_owned(), "missing field"),
    ] {
        let refused = zae_limiter_stack::Plan::from_json(&text);
        assert!(
            matches!(&refused, Err(Error::PlanUnreadable { reason }) if reason.contains(expected)),
            "{refused:?}"
        );
    }
    assert_eq!(calls.names().len(), made, "nothing was asked");
}

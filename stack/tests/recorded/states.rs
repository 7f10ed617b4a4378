//! The states that a stack can be found in, and what is done then.

use aws_sdk_cloudformation::types::{ChangeAction, Replacement, ResourceChange};
use zae_limiter_stack::{Change, Error, Event};

use super::tape::{Tape, change_set, deletion, failure, history, looks, no_resources, template};
use super::{NAME, body, changed, count, stack, tags};
use crate::support::{Diary, bare};

pub(crate) fn in_place() -> ResourceChange {
    let change = ResourceChange::builder()
        .logical_resource_id("RateLimitsTable")
        .action(ChangeAction::Modify);
    change
        .resource_type("AWS::DynamoDB::Table")
        .replacement(Replacement::False)
        .build()
}

/// What a stack that is as it should be responds with.
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

//! Stacks that do not exist yet, or exist and are empty, are created.

use std::collections::BTreeMap;

use aws_sdk_cloudformation::Client as Cfn;
use aws_sdk_cloudformation::operation::create_stack::{CreateStackError, CreateStackOutput};
use aws_sdk_cloudformation::operation::list_change_sets::ListChangeSetsOutput;
use aws_sdk_cloudformation::types::{Capability, ChangeSetSummary};
use aws_smithy_mocks::{Rule, mock};
use zae_limiter_stack::{Change, Error, Owner};

use super::tape::{Tape, change_set, created, history, looks, refusal, template};
use super::{ID, NAME, body, count, stack, tags};
use crate::support::bare;

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

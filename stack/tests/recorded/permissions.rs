//! The policies of those who deploy have what is called, and nothing else.
//!
//! [`Calls`](crate::support::calls::Calls) holds each call that the tests make against them, action and resource. Here the other
//! way round, and the policy of pipelines that plan.

use std::collections::BTreeSet;
use std::path::Path;

use super::states::{changeable, converged};
use super::tape::{Tape, looks};
use super::{NAME, changed, stack_of, tags};
use crate::support::bare;
use crate::support::permits::{Caller, deployers_actions};

/// Permissions of calls that this crate does not make itself.
const OTHERS: [&str; 7] = [
    // Stacks and change sets have tags.
    "cloudformation:TagResource",
    // Markers of objects that were deleted before go with their versions.
    "s3:DeleteObject",
    // The version record and the retention, which the limiter writes.
    "dynamodb:BatchGetItem",
    "dynamodb:GetItem",
    "dynamodb:PutItem",
    "dynamodb:Query",
    "dynamodb:UpdateItem",
];

/// The permission that each call in the sources names for the error of its being denied.
fn called(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            called(&path, found);
            continue;
        }
        let source = std::fs::read_to_string(&path).unwrap();
        for call in source.split("Failure::of(").skip(1) {
            let named = call.trim_start().strip_prefix('"');
            let named = named.and_then(|rest| rest.split_once('"'));
            found.extend(named.map(|(permission, _)| permission.to_owned()));
        }
    }
}

#[test]
fn what_is_permitted_is_called_and_what_is_called_is_permitted() {
    let mut found = BTreeSet::new();
    called(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut found);
    found.remove("sts:GetCallerIdentity");
    found.extend(OTHERS.map(str::to_owned));
    // Named by the role that is passed.
    found.insert("iam:PassRole".to_owned());
    assert_eq!(found, deployers_actions());
}

#[tokio::test(start_paused = true)]
async fn a_pipeline_with_the_plan_policy_can_plan_offline() {
    let planner = || Caller::planner(NAME);
    for (options, tape, expected) in [
        (
            bare(),
            Tape::of([looks(&[""], tags(&bare()))]),
            &["DescribeStacks"][..],
        ),
        (
            bare(),
            converged(&["CREATE_COMPLETE"]),
            &["DescribeStacks", "GetTemplate"],
        ),
        (
            changed(),
            changeable(&["UPDATE_COMPLETE"], "x"),
            &["DescribeStacks", "GetTemplate"],
        ),
    ] {
        let (plans, calls) = stack_of(planner(), &options, &tape);
        plans.plan_offline().await.unwrap();
        assert_eq!(calls.names(), expected);
    }
    let (asks, _) = stack_of(planner(), &bare(), &Tape::default().with_free_site());
    assert!(!asks.is_managed_by_terraform().await.unwrap());
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "the policies of a planner lack")]
async fn a_call_that_no_policy_permits_fails_its_test() {
    let (plans, _) = stack_of(
        Caller::planner(NAME),
        &changed(),
        &changeable(&["UPDATE_COMPLETE"], "x"),
    );
    plans.plan().await.unwrap();
}

use aws_sdk_cloudformation::types::{Capability, ChangeSetType, Tag};
use zae_limiter_stack::{Change, StackOptions};

use super::{has_item, put_item, stack, template};
use crate::support::{bare, ministack};

async fn ten_at_once(name: &'static str, options: StackOptions) -> Vec<Change> {
    let mut all = tokio::task::JoinSet::new();
    for _ in 0..10 {
        let stack = stack(name, &options);
        all.spawn(async move { stack.ensure().await.map(|outcome| outcome.change) });
    }
    all.join_all().await.into_iter().map(Result::unwrap).collect()
}

fn count(changes: &[Change], wanted: Change) -> usize {
    changes.iter().filter(|change| **change == wanted).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_ten_at_once_one_creates_and_all_succeed() {
    let changes = ten_at_once("ten", StackOptions::default()).await;
    assert_eq!(count(&changes, Change::Created), 1, "{changes:?}");
    // The others wait for it, or come when it is done.
    let others = count(&changes, Change::Awaited) + count(&changes, Change::None);
    assert_eq!(others, 9, "{changes:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_ten_updates_at_once_at_least_one_updates_and_all_succeed() {
    stack("ten-updates", &bare()).ensure().await.unwrap();
    put_item("ten-updates").await;
    let options = bare().to_builder().create_iam_roles(true).build().unwrap();
    let changes = ten_at_once("ten-updates", options.clone()).await;
    assert!(
        count(&changes, Change::Updated) >= 1 && count(&changes, Change::Created) == 0,
        "{changes:?}"
    );
    assert_eq!(
        stack("ten-updates", &options).ensure().await.unwrap().change,
        Change::None
    );
    assert!(has_item("ten-updates").await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c6_of_ten_imports_at_once_none_empties_the_table() {
    stack("ten-imports", &bare()).ensure().await.unwrap();
    put_item("ten-imports").await;
    stack("ten-imports", &bare()).delete().await.unwrap();
    let changes = ten_at_once("ten-imports", bare()).await;
    assert_eq!(count(&changes, Change::Created), 0, "{changes:?}");
    assert!(has_item("ten-imports").await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_interrupted_deployment_is_adopted() {
    let options = StackOptions::default();
    let first = stack("interrupted", &options);
    let started = tokio::spawn(async move { first.ensure().await });
    // Gone as soon as the stack is there.
    while stack("interrupted", &options).status().await.unwrap().is_none() {
        tokio::task::yield_now().await;
    }
    started.abort();
    let outcome = stack("interrupted", &options).ensure().await.unwrap();
    assert!(
        outcome.outputs.contains_key("AggregatorFunctionArn"),
        "{outcome:?}"
    );
    assert_eq!(
        stack("interrupted", &options).ensure().await.unwrap().change,
        Change::None
    );
}

#[tokio::test]
async fn m5_a_creation_that_stopped_before_its_change_set_was_executed_is_finished() {
    stack("reviewed", &bare()).ensure().await.unwrap();
    let body = template("reviewed").await.to_string();
    stack("reviewed", &bare()).delete().await.unwrap();
    put_item("reviewed").await;

    let call = ministack::clients()
        .cloudformation
        .create_change_set()
        .stack_name("reviewed")
        .template_body(body);
    let call = call
        .change_set_name("left-behind")
        .change_set_type(ChangeSetType::Create);
    let call = call.tags(Tag::builder().key("ManagedBy").value("zae-limiter").build());
    call.capabilities(Capability::CapabilityNamedIam)
        .send()
        .await
        .unwrap();
    let status = stack("reviewed", &bare()).status().await.unwrap().unwrap();
    assert_eq!(status.status, "REVIEW_IN_PROGRESS");

    let outcome = stack("reviewed", &bare()).ensure().await.unwrap();
    assert_eq!(outcome.change, Change::Imported);
    assert!(has_item("reviewed").await);
}

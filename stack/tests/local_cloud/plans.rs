use zae_limiter_stack::{Action, Basis, Change, Error, Kind, Plan, StackOptions};

use super::stack;
use crate::support::code_of;

fn options() -> StackOptions {
    StackOptions::builder()
        .enable_audit_archival(false)
        .build()
        .unwrap()
}

#[tokio::test]
async fn a_plan_is_stored_and_applied_as_it_was_planned() {
    let plan = stack("planned", &options()).plan().await.unwrap();
    assert_eq!((plan.action, plan.basis), (Action::Create, Basis::Templates));
    assert!(plan.changes.iter().all(|change| change.kind == Kind::Add));
    assert!(
        stack("planned", &options()).status().await.unwrap().is_none(),
        "planning makes nothing"
    );
    let stored = Plan::from_json(&plan.to_json()).unwrap();
    assert_eq!(stored, plan);
    assert_eq!(
        stack("planned", &options()).apply(&stored).await.unwrap().change,
        Change::Created
    );

    let changed = options()
        .to_builder()
        .lambda_memory(512)
        .create_iam_roles(true)
        .build()
        .unwrap();
    let plan = stack("planned", &changed).plan().await.unwrap();
    assert_eq!((plan.action, plan.basis), (Action::Update, Basis::ChangeSet));
    let function = plan
        .changes
        .iter()
        .find(|change| change.logical_id == "AggregatorFunction")
        .unwrap();
    let memory = function
        .properties
        .iter()
        .find(|property| property.path == "MemorySize")
        .unwrap();
    assert_eq!(
        (memory.before.clone(), memory.after.clone()),
        (Some(256.into()), Some(512.into()))
    );
    let iam: Vec<_> = plan
        .iam_changes()
        .map(|change| change.logical_id.as_str())
        .collect();
    assert!(
        iam.contains(&"AppRole") && !iam.contains(&"AggregatorFunction"),
        "{iam:?}"
    );
    let shown = plan.to_string();
    let (resources, permissions) = shown.split_once("permissions:").unwrap();
    assert!(
        resources.contains("MemorySize: 256 -> 512") && permissions.contains("+ AppRole"),
        "{shown}"
    );

    // The options of the value that applies it do not matter.
    let outcome = stack("planned", &options())
        .apply(&Plan::from_json(&plan.to_json()).unwrap())
        .await
        .unwrap();
    assert_eq!(outcome.change, Change::Updated);
    assert_eq!(
        stack("planned", &changed).ensure().await.unwrap().change,
        Change::None
    );
}

#[tokio::test]
async fn a_plan_is_refused_when_the_stack_has_moved() {
    let of_nothing = stack("moved", &options()).plan().await.unwrap();
    stack("moved", &options()).ensure().await.unwrap();
    let obsolete = |error: Error, why: &str| match &error {
        Error::PlanObsolete { why: said, .. } => assert!(said.contains(why), "{error}"),
        other => panic!("{other}"),
    };
    obsolete(
        stack("moved", &options()).apply(&of_nothing).await.unwrap_err(),
        "exists now",
    );

    let memory = |memory| options().to_builder().lambda_memory(memory).build().unwrap();
    let plan = stack("moved", &memory(512)).plan().await.unwrap();
    stack("moved", &memory(1024)).ensure().await.unwrap();
    obsolete(
        stack("moved", &options()).apply(&plan).await.unwrap_err(),
        "after the plan",
    );

    let plan = stack("moved", &memory(512)).plan().await.unwrap();
    let other_code = stack("moved", &memory(512)).code(code_of("#!/bin/sh\nexit 1\n"));
    obsolete(
        other_code.apply(&plan).await.unwrap_err(),
        "archive of the aggregator",
    );

    stack("moved", &options()).delete().await.unwrap();
    obsolete(
        stack("moved", &options()).apply(&plan).await.unwrap_err(),
        "not exist any more",
    );
}

#[tokio::test]
async fn a_plan_that_was_tampered_with_is_refused() {
    let plan = stack("tampered", &options()).plan().await.unwrap();
    let edited = plan.to_json().replace("PAY_PER_REQUEST", "PROVISIONED");
    assert!(matches!(
        Plan::from_json(&edited),
        Err(Error::PlanUnreadable { .. })
    ));
    let error = stack("another", &options()).apply(&plan).await.unwrap_err();
    assert!(matches!(error, Error::PlanUnreadable { .. }), "{error}");
}

#[tokio::test]
async fn a_stack_that_is_as_it_should_be_has_an_empty_plan() {
    stack("empty-plan", &options()).ensure().await.unwrap();
    let plan = stack("empty-plan", &options()).plan().await.unwrap();
    assert!(plan.is_empty() && plan.changes.is_empty(), "{plan}");
    assert_eq!(
        stack("empty-plan", &options()).apply(&plan).await.unwrap().change,
        Change::None
    );
    let changed = options().to_builder().lambda_memory(512).build().unwrap();
    let offline = stack("empty-plan", &changed).plan_offline().await.unwrap();
    assert_eq!(
        (offline.basis, offline.changes.len()),
        (Basis::Templates, 1),
        "{offline}"
    );
}

use zae_limiter_stack::{Change, Code, CodeError, Error, Event, Stack, StackOptions};

use super::{has_item, put_item, stack};
use crate::support::calls::Calls;
use crate::support::permits::Caller;
use crate::support::{Diary, bare, code_of, ministack, name};

#[tokio::test]
async fn h9_creating_makes_everything_and_looking_again_takes_two_calls() {
    let options = StackOptions::default();
    let diary = Diary::default();
    let code = || code_of("#!/bin/sh\n# of this test alone\n");
    let made = stack("create-all", &options)
        .code(code())
        .observer(diary.clone())
        .ensure()
        .await
        .unwrap();
    assert_eq!(made.change, Change::Created);
    assert_eq!(made.outputs["TableName"], "create-all");
    assert!(
        made.outputs.contains_key("AggregatorFunctionArn")
            && made.outputs.contains_key("ArchiverFunctionArn")
    );
    assert_eq!(made.audit_retention_days, 90);
    let events = diary.events();
    assert!(
        events.iter().any(|event| matches!(event, Event::Uploaded { .. })),
        "{events:?}"
    );
    let told = |id: &str| {
        events
            .iter()
            .any(|e| matches!(e, Event::Resource(r) if r.logical_id == id && r.status == "CREATE_COMPLETE"))
    };
    assert!(
        told("RateLimitsTable") && told("AggregatorFunction"),
        "{events:?}"
    );

    let calls = Calls::of(Caller::deployer("create-all", &options));
    let clients = calls.counted(&ministack::clients());
    let again = Stack::with_clients(name("create-all"), options, clients)
        .code(code())
        .ensure()
        .await
        .unwrap();
    assert_eq!(again.change, Change::None);
    assert_eq!(again.outputs, made.outputs);
    assert_eq!(calls.names(), ["DescribeStacks", "GetTemplate"]);
}

#[tokio::test]
async fn an_app_without_archives_leaves_the_code_as_it_is_and_changes_the_rest() {
    let options = StackOptions::default();
    stack("no-archives", &options).ensure().await.unwrap();
    let before = super::template("no-archives").await;

    let calls = Calls::of(Caller::planner("no-archives"));
    let clients = calls.counted(&ministack::clients());
    let app = Stack::with_clients(name("no-archives"), options.clone(), clients).code(Code::AsDeployed);
    assert_eq!(app.ensure().await.unwrap().change, Change::None);
    assert_eq!(calls.names().len(), 2);

    let options = options.to_builder().lambda_memory(512).build().unwrap();
    let app = Stack::with_clients(name("no-archives"), options, ministack::clients()).code(Code::AsDeployed);
    assert_eq!(app.ensure().await.unwrap().change, Change::Updated);
    let after = super::template("no-archives").await;
    let code = "/Resources/AggregatorFunction/Properties/Code";
    assert_eq!(after.pointer(code), before.pointer(code));
    assert_eq!(
        after.pointer("/Resources/AggregatorFunction/Properties/MemorySize"),
        Some(&512.into())
    );
}

#[tokio::test]
async fn an_app_without_archives_cannot_make_a_stack_with_functions_and_is_told_what_to_do() {
    let stack = Stack::with_clients(name("no-code"), StackOptions::default(), ministack::clients())
        .code(Code::AsDeployed);
    let error = stack.ensure().await.unwrap_err();
    assert!(
        matches!(error, Error::Code(CodeError::Missing { deployed: false, .. })),
        "{error}"
    );
    assert!(stack.status().await.unwrap().is_none());
}

#[tokio::test]
async fn c6_deleting_and_creating_again_keeps_the_tables_data() {
    let options = bare();
    stack("phoenix", &options).ensure().await.unwrap();
    put_item("phoenix").await;
    let deleted = stack("phoenix", &options).delete().await.unwrap();
    let kept: Vec<_> = deleted
        .kept
        .iter()
        .map(|kept| kept.physical_id.as_str())
        .collect();
    assert_eq!(kept, ["phoenix"]);
    assert!(has_item("phoenix").await);

    let plan = stack("phoenix", &options).plan().await.unwrap();
    assert_eq!(plan.action, zae_limiter_stack::Action::Import);
    let made = stack("phoenix", &options).ensure().await.unwrap();
    assert_eq!(made.change, Change::Imported);
    assert!(has_item("phoenix").await, "importing must not empty the table");
    assert_eq!(
        stack("phoenix", &options).ensure().await.unwrap().change,
        Change::None
    );
}

#[tokio::test]
async fn c6_a_table_that_does_not_fit_is_left_alone() {
    use aws_sdk_dynamodb::types::{
        AttributeDefinition, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType,
    };
    let key = KeySchemaElement::builder()
        .attribute_name("id")
        .key_type(KeyType::Hash)
        .build()
        .unwrap();
    let attribute = AttributeDefinition::builder()
        .attribute_name("id")
        .attribute_type(ScalarAttributeType::S);
    let call = ministack::clients()
        .dynamodb
        .create_table()
        .table_name("misfit")
        .key_schema(key);
    let call = call
        .attribute_definitions(attribute.build().unwrap())
        .billing_mode(BillingMode::PayPerRequest);
    call.send().await.unwrap();

    let error = stack("misfit", &bare()).ensure().await.unwrap_err();
    let Error::TableMisfits { misfits, .. } = &error else {
        panic!("{error}")
    };
    // Keys, three indexes, and the stream.
    assert_eq!(misfits.len(), 5, "{error}");
    assert!(stack("misfit", &bare()).status().await.unwrap().is_none());
}

//! Stacks that others deploy from the exported template.

use aws_sdk_cloudformation::types::{Capability, Parameter, Tag};
use zae_limiter_stack::{Change, Code, Error, Stack, StackOptions};
use zae_limiter_template::{export, stack_tags};

use super::{has_item, put_item};
use crate::support::calls::Calls;
use crate::support::permits::Caller;
use crate::support::{self, archive, ministack};

const BUCKET: &str = "archives-of-others";

/// Deploys the exported template as any other tool would.
async fn deploy(name: &str, options: &StackOptions, tagged: bool) {
    let clients = ministack::clients();
    // It may be there already.
    let _ = clients.s3.create_bucket().bucket(BUCKET).send().await;
    let zip = archive::zip("bootstrap", b"#!/bin/sh\nsleep 1\n");
    let put = clients.s3.put_object().bucket(BUCKET).key("both.zip");
    put.body(zip.into()).send().await.unwrap();
    let parameter = |(key, value): (&str, &str)| {
        Parameter::builder()
            .parameter_key(key)
            .parameter_value(value)
            .build()
    };
    let parameters = [
        ("CodeBucket", BUCKET),
        ("AggregatorCodeKey", "both.zip"),
        ("ArchiverCodeKey", "both.zip"),
    ];
    let tags = stack_tags(&support::name(name), options).into_iter();
    let tags = tags.map(|tag| Tag::builder().key(tag.key).value(tag.value).build());
    let create = clients
        .cloudformation
        .create_stack()
        .stack_name(name)
        .template_body(export::cloudformation(options).unwrap().to_json())
        .set_parameters(Some(parameters.map(parameter).into()))
        .set_tags(Some(tags.filter(|_| tagged).collect()))
        .capabilities(Capability::CapabilityNamedIam);
    create.send().await.unwrap();
    while !settled(name).await {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

async fn settled(name: &str) -> bool {
    let clients = ministack::clients();
    let found = clients.cloudformation.describe_stacks().stack_name(name);
    let found = found.send().await.unwrap();
    let status = found.stacks()[0].stack_status().unwrap().as_str().to_owned();
    assert!(
        !status.contains("ROLLBACK") && !status.contains("FAILED"),
        "{status}"
    );
    status == "CREATE_COMPLETE"
}

#[tokio::test]
async fn a_stack_of_the_exported_template_is_as_it_should_be() {
    let options = StackOptions::default();
    deploy("exported", &options, true).await;
    let calls = Calls::of(Caller::planner("exported"));
    let clients = calls.counted(&ministack::clients());
    let app = Stack::with_clients(support::name("exported"), options.clone(), clients).code(Code::AsDeployed);
    assert_eq!(app.ensure().await.unwrap().change, Change::None);
    assert_eq!(calls.names(), ["DescribeStacks", "GetTemplate"]);

    put_item("exported").await;
    let options = options.to_builder().lambda_memory(512).build().unwrap();
    let app =
        Stack::with_clients(support::name("exported"), options, ministack::clients()).code(Code::AsDeployed);
    let plan = app.plan().await.unwrap();
    assert!(
        plan.refusals[0]
            .reason
            .contains("it has parameters (AggregatorCodeKey"),
        "{plan}"
    );
    let left = app.ensure().await.unwrap_err();
    assert!(matches!(left, Error::ManagedElsewhere { .. }), "{left}");

    let app = app.adopt(true);
    let plan = app.plan().await.unwrap();
    assert!(!plan.is_refused(), "{plan}");
    assert_eq!(app.ensure().await.unwrap().change, Change::Updated);
    assert!(has_item("exported").await);
}

#[tokio::test]
async fn a_stack_of_the_exported_template_without_tags_is_adopted_and_keeps_its_data() {
    let options = StackOptions::default();
    deploy("untagged", &options, false).await;
    put_item("untagged").await;
    let app = Stack::with_clients(support::name("untagged"), options, ministack::clients())
        .code(Code::AsDeployed)
        .adopt(true);
    assert_eq!(app.ensure().await.unwrap().change, Change::Updated);
    assert!(has_item("untagged").await);
    assert_eq!(app.ensure().await.unwrap().change, Change::None);
}

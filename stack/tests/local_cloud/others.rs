use serde_json::json;
use zae_limiter_stack::{Deletion, Error, Health, Owner, Stack};

use super::stack;
use crate::support::{bare, ministack};

async fn deploy(name: &str, template: serde_json::Value, tags: &[(&str, &str)]) {
    use aws_sdk_cloudformation::types::Tag;
    let tags = tags
        .iter()
        .map(|(key, value)| Tag::builder().key(*key).value(*value).build())
        .collect();
    let call = ministack::clients()
        .cloudformation
        .create_stack()
        .stack_name(name)
        .set_tags(Some(tags));
    call.template_body(template.to_string()).send().await.unwrap();
}

async fn left_alone(name: &str, whose: Owner) {
    let before = super::template(name).await;
    let stack = stack(name, &bare())
        .allow_loss(["RateLimitsTable"])
        .recreate_failed(true);
    let errors = [
        stack.ensure().await.unwrap_err(),
        stack.plan().await.unwrap_err(),
        stack
            .delete_with(&Deletion {
                purge: true,
                ..Deletion::default()
            })
            .await
            .unwrap_err(),
        stack.drift().await.unwrap_err(),
    ];
    for error in errors {
        assert!(
            matches!(&error, Error::NotOurs { owner, .. } if *owner == whose),
            "{error}"
        );
    }
    assert_eq!(super::template(name).await, before);
}

#[tokio::test]
async fn a_foreign_stack_is_refused() {
    let queue = json!({ "Resources": { "Queue": { "Type": "AWS::SQS::Queue" } } });
    deploy("foreign", queue, &[]).await;
    left_alone("foreign", Owner::Foreign).await;
}

#[tokio::test]
async fn c7_a_stack_of_the_python_peer_is_refused() {
    let table = json!({
        "Type": "AWS::DynamoDB::Table",
        "Properties": {
            "TableName": { "Ref": "AWS::StackName" },
            "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": [{ "AttributeName": "PK", "AttributeType": "S" }],
            "KeySchema": [{ "AttributeName": "PK", "KeyType": "HASH" }],
        },
    });
    let parameter = json!({ "SchemaVersion": { "Type": "String", "Default": "0.8.0" } });
    let template = json!({ "Parameters": parameter, "Resources": { "RateLimitsTable": table } });
    deploy(
        "peer",
        template,
        &[("ManagedBy", "zae-limiter"), ("zae-limiter:name", "peer")],
    )
    .await;
    left_alone("peer", Owner::Peer).await;
}

#[tokio::test]
async fn every_stack_of_ours_is_discovered_with_the_peers_told_apart() {
    let queue = || json!({ "Resources": { "Queue": { "Type": "AWS::SQS::Queue" } } });
    deploy("unrelated", queue(), &[]).await;
    let mut old = queue();
    old["Parameters"] = json!({ "SchemaVersion": { "Type": "String", "Default": "0.8.0" } });
    deploy("ZAEL-old", old, &[]).await;
    stack("discovered", &bare()).ensure().await.unwrap();

    let found = Stack::discover(&ministack::aws()).await.unwrap();
    let one = |name: &str| found.iter().find(|found| found.stack_name == name);
    assert!(one("unrelated").is_none());
    let ours = one("discovered").unwrap();
    assert_eq!(
        (ours.user_name.as_str(), ours.owner, ours.health),
        ("discovered", Owner::Ours, Health::Healthy)
    );
    assert_eq!(
        (ours.version.as_deref(), ours.schema_version.as_deref()),
        (Some("0.1.0"), Some("0.8.0"))
    );
    assert_eq!(ours.region, "us-east-1");
    let old = one("ZAEL-old").unwrap();
    assert_eq!((old.user_name.as_str(), old.owner), ("old", Owner::Peer));
    assert!(found.is_sorted_by(|a, b| a.user_name <= b.user_name));
}

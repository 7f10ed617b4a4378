//! The function's binary as Lambda starts it, on a DynamoDB server, with a bucket on this machine for its responses.

use std::time::Duration;

use crate::support::Bucket;
use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_sdk_dynamodb::config::{Credentials, SharedCredentialsProvider};
use serde_json::{Value, json};
use zae_limiter::{RateLimiter, Repository};
use zae_limiter_limits::every_level;
use zae_limiter_testing::dynamodb_endpoint;
use zae_limiter_testing::stream::{Chaos, Cloud, Invoke, Lambda};

const BINARY: &str = env!("CARGO_BIN_EXE_zae-limiter-provisioner");
const TWO: &str = "{system: {limits: {rpm: 100}}, resources: {gpt-4: {limits: {rpm: 500}}}}";
const OTHER: &str = "{system: {limits: {rpm: 200}}, entities: {user-1: {limits: {rpm: 7, usd: $5 per day in Asia/Tokyo, \
                     parallel: 8 at once for 10min}}}}";

/// A table of its own on the server that all tests share.
async fn table(name: &str) -> Repository {
    let aws = SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(SharedCredentialsProvider::new(Credentials::from_keys(
            "test", "test", None,
        )))
        .endpoint_url(dynamodb_endpoint())
        .build();
    let limiter = RateLimiter::builder(name).sdk_config(aws).create_table(true);
    limiter.principal("tester").build_repository().await.unwrap()
}

/// The levels of a table with their limits.
async fn levels(repository: &Repository) -> Vec<String> {
    let levels = every_level(repository).await.unwrap();
    let text = |(level, record): &(zae_limiter::ConfigLevel, zae_limiter::records::ConfigRecord)| {
        let limits: Vec<_> = record.limits.iter().map(ToString::to_string).collect();
        format!("{level} {}", limits.join(" "))
    };
    // A deleted system level leaves an item without limits.
    let limited = levels.iter().filter(|(_, record)| !record.limits.is_empty());
    limited.map(text).collect()
}

fn lambda<'c>(cloud: &'c Cloud, table: &str) -> Lambda<'c> {
    let variables = [("TABLE_NAME", table), ("AWS_ENDPOINT_URL", dynamodb_endpoint())];
    Lambda::new(BINARY, cloud, &variables).with_time_limit(Duration::from_mins(2))
}

fn event(bucket: &Bucket, request_type: &str, limits: &Value) -> Value {
    json!({
        "RequestType": request_type,
        "ResponseURL": bucket.url(),
        "StackId": "arn:aws:cloudformation:us-east-1:123456789012:stack/app/1-2-3",
        "RequestId": "request-7",
        "LogicalResourceId": "Limits",
        "ResourceType": "Custom::ZaeLimiterLimits",
        "ResourceProperties": {"ServiceToken": "arn", "Limits": limits},
    })
}

/// The response to one request of CloudFormation.
async fn respond(lambda: &Lambda<'_>, request_type: &str, limits: &Value) -> Value {
    let bucket = Bucket::returning(&[200]);
    let event = event(&bucket, request_type, limits);
    lambda.invoke(&event.to_string()).await.unwrap();
    let sent = bucket.sent();
    assert!(sent[0].request_line.starts_with("put /response?"), "{sent:?}");
    assert!(
        !sent[0]
            .headers
            .iter()
            .any(|header| header.starts_with("content-type")),
        "{sent:?}"
    );
    bucket.response()
}

#[tokio::test]
async fn a_resource_is_created_updated_rolled_back_and_deleted() {
    let repository = table("life").await;
    let cloud = Cloud::start(Chaos::new(1, 0));
    let lambda = lambda(&cloud, "life");
    let created = respond(&lambda, "Create", &json!(TWO)).await;
    assert_eq!(
        created,
        json!({
            "Status": "SUCCESS",
            "PhysicalResourceId": "app:Limits",
            "StackId": "arn:aws:cloudformation:us-east-1:123456789012:stack/app/1-2-3",
            "RequestId": "request-7",
            "LogicalResourceId": "Limits",
            "Data": {"Created": 2, "Updated": 0, "Deleted": 0, "Unchanged": 0},
        })
    );
    assert_eq!(
        levels(&repository).await,
        ["system rpm:100/min", "resource gpt-4 rpm:500/min"]
    );

    let updated = respond(&lambda, "Update", &json!(OTHER)).await;
    assert_eq!(updated["PhysicalResourceId"], "app:Limits");
    assert_eq!(
        updated["Data"],
        json!({"Created": 1, "Updated": 1, "Deleted": 1, "Unchanged": 0})
    );
    assert_eq!(
        levels(&repository).await,
        [
            "system rpm:200/min",
            "entity user-1 parallel:8 at once for 10min rpm:7/min usd:$5 per day in Asia/Tokyo"
        ]
    );

    // A rollback is an update with the properties before.
    let rolled_back = respond(&lambda, "Update", &json!(TWO)).await;
    assert_eq!(rolled_back["Status"], "SUCCESS");
    assert_eq!(
        levels(&repository).await,
        ["system rpm:100/min", "resource gpt-4 rpm:500/min"]
    );

    // Lambda may deliver a request twice.
    for deleted in [2, 0] {
        let response = respond(&lambda, "Delete", &json!(TWO)).await;
        assert_eq!(response["Data"]["Deleted"], deleted);
    }
    assert!(levels(&repository).await.is_empty());
}

#[tokio::test]
async fn an_invalid_file_fails_with_its_path_and_its_removal_succeeds() {
    let repository = table("invalid").await;
    let cloud = Cloud::start(Chaos::new(1, 0));
    let lambda = lambda(&cloud, "invalid");
    let wrong = json!({"resources": {"gpt-4": {"limits": {"rpm": "many"}}}});
    let response = respond(&lambda, "Create", &wrong).await;
    assert_eq!(response["Status"], "FAILED");
    let reason = response["Reason"].as_str().unwrap();
    assert!(reason.starts_with("resources.gpt-4.limits.rpm: "), "{reason}");
    // CloudFormation deletes a resource whose creation failed.
    let response = respond(&lambda, "Delete", &wrong).await;
    assert_eq!(response["Status"], "SUCCESS");
    let response = respond(&lambda, "Delete", &json!(7)).await;
    assert_eq!(response["Status"], "SUCCESS");
    assert!(levels(&repository).await.is_empty());
    let log = lambda.log().join("\n");
    assert!(!log.contains("5ec4e7"), "the signature is in the log: {log}");
}

#[tokio::test]
async fn a_missing_table_or_setting_is_reported_and_does_not_block_a_deletion() {
    let cloud = Cloud::start(Chaos::new(1, 0));
    let without_table = lambda(&cloud, "never-made");
    let response = respond(&without_table, "Create", &json!(TWO)).await;
    assert_eq!(response["Status"], "FAILED");
    assert!(
        response["Reason"].as_str().unwrap().contains("never-made"),
        "{response}"
    );
    let response = respond(&without_table, "Delete", &json!(TWO)).await;
    assert_eq!(response["Status"], "SUCCESS", "{response}");

    let without_setting = lambda(&cloud, "");
    let response = respond(&without_setting, "Create", &json!(TWO)).await;
    assert!(
        response["Reason"]
            .as_str()
            .unwrap()
            .contains("TABLE_NAME is not set"),
        "{response}"
    );
}

#[tokio::test]
async fn a_response_is_sent_again_until_it_is_taken_and_a_lost_one_fails_the_invocation() {
    table("retries").await;
    let cloud = Cloud::start(Chaos::new(1, 0));
    let lambda = lambda(&cloud, "retries");
    let flaky = Bucket::returning(&[500, 503, 200]);
    lambda
        .invoke(&event(&flaky, "Create", &json!(TWO)).to_string())
        .await
        .unwrap();
    assert_eq!(flaky.sent().len(), 3);
    let down = Bucket::returning(&[500]);
    let failed = lambda
        .invoke(&event(&down, "Create", &json!(TWO)).to_string())
        .await;
    assert!(failed.is_err());
    assert_eq!(down.sent().len(), 5);
    lambda.recycle();
    let log = lambda.log().join("\n");
    assert!(
        log.contains("after 5 attempts: status 500") && !log.contains("5ec4e7"),
        "{log}"
    );
}

#[tokio::test]
async fn a_refused_response_is_logged_and_does_not_fail_the_invocation() {
    table("refused").await;
    let cloud = Cloud::start(Chaos::new(1, 0));
    let lambda = lambda(&cloud, "refused");
    let expired = Bucket::returning(&[403]);
    // Lambda repeats a failed invocation, and would apply a file that may be out of date by then.
    let response = lambda
        .invoke(&event(&expired, "Create", &json!(TWO)).to_string())
        .await;
    assert_eq!(response.unwrap(), "null");
    assert_eq!(expired.sent().len(), 1);
    lambda.recycle();
    let log = lambda.log().join("\n");
    assert!(
        log.contains("\"level\":\"ERROR\"") && log.contains("status 403") && !log.contains("5ec4e7"),
        "{log}"
    );
}

#[tokio::test]
async fn a_resource_with_the_longest_names_is_created_and_deleted() {
    let repository = table("long-names").await;
    let cloud = Cloud::start(Chaos::new(1, 0));
    let lambda = lambda(&cloud, "long-names");
    for (request_type, remaining) in [("Create", 2), ("Delete", 0)] {
        let bucket = Bucket::returning(&[200]);
        let mut event = event(&bucket, request_type, &json!(TWO));
        let stack = "s".repeat(128);
        event["StackId"] = json!(format!(
            "arn:aws:cloudformation:us-east-1:123456789012:stack/{stack}/1-2-3"
        ));
        event["LogicalResourceId"] = json!("L".repeat(255));
        lambda.invoke(&event.to_string()).await.unwrap();
        assert_eq!(bucket.response()["Status"], "SUCCESS", "{}", bucket.response());
        assert_eq!(levels(&repository).await.len(), remaining);
    }
}

#[tokio::test]
async fn an_unknown_request_gets_a_response() {
    let cloud = Cloud::start(Chaos::new(1, 0));
    let lambda = lambda(&cloud, "unused");
    let response = respond(&lambda, "Refresh", &json!(TWO)).await;
    assert_eq!(response["Status"], "FAILED");
    assert_eq!(response["RequestId"], "request-7");
}

#[tokio::test]
async fn terraform_plans_applies_and_destroys_with_plain_answers() {
    let repository = table("terraform").await;
    let cloud = Cloud::start(Chaos::new(1, 0));
    let lambda = lambda(&cloud, "terraform");
    let invoke = async |fields: Value| {
        let mut event = json!({"ResourceProperties": {"Limits": TWO}});
        event
            .as_object_mut()
            .unwrap()
            .extend(fields.as_object().unwrap().clone());
        lambda.invoke(&event.to_string()).await
    };
    let response =
        |response: Result<String, _>| -> Value { serde_json::from_str(&response.ok().unwrap()).unwrap() };
    let planned = response(invoke(json!({"RequestType": "Plan"})).await);
    assert_eq!(planned["Created"], 2);
    assert!(levels(&repository).await.is_empty());
    let action = |action: &str, owner: &str| json!({"tf": {"action": action}, "Owner": owner});
    let created = response(invoke(action("create", "terraform:1")).await);
    assert_eq!(created, planned);
    assert_eq!(levels(&repository).await.len(), 2);
    let again = response(invoke(action("update", "terraform:1")).await);
    assert_eq!(again["Unchanged"], 2);
    let foreign = response(invoke(action("delete", "terraform:2")).await);
    assert_eq!(foreign["Deleted"], 0);
    // A caller that names no owner changes nothing.
    for unnamed in ["create", "update", "delete"] {
        assert!(invoke(json!({"tf": {"action": unnamed}})).await.is_err());
    }
    assert_eq!(levels(&repository).await.len(), 2);
    let destroyed = response(invoke(action("delete", "terraform:1")).await);
    assert_eq!(destroyed["Deleted"], 2);
    let wrong = json!({"RequestType": "Plan", "ResourceProperties": {"Limits": "system: {}"}});
    let failed = invoke(wrong).await;
    assert!(failed.is_err());
}

//! The role of the template permits what applying a file does, and nothing else on the table.

use std::collections::BTreeSet;

use aws_sdk_dynamodb::config::Credentials;
use serde_json::Value;
use zae_limiter::{EmbeddedStore, RateLimiter, Repository, Timestamp};
use zae_limiter_limits::Comparison;
use zae_limiter_testing::connection::Recorder;

const FIRST: &str = "{system: {on_unavailable: allow, audit_retention_days: 30, limits: {rpm: 1}}, \
                     resources: {a: {limits: {rpm: 2}}, b: {limits: {rpm: 2}}}, \
                     entities: {user-1: {limits: {rpm: 3}, resources: {a: {limits: {rpm: 4}}}}}}";
const SECOND: &str = "{system: {limits: {rpm: 2}}, resources: {a: {on_unavailable: block}}, \
                      entities: {user-1: {resources: {a: {limits: {rpm: 5}}}}}}";

async fn repository(recorder: &Recorder, create: bool) -> Repository {
    let limiter = RateLimiter::builder("limiter")
        .region("us-east-1")
        .credentials(Credentials::from_keys("key", "secret", None));
    let limiter = limiter.http_client(recorder.clone()).create_table(create);
    limiter.principal("app:Limits").build_repository().await.unwrap()
}

fn like(pattern: &str, partition: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => partition.starts_with(start),
        None => partition == pattern,
    }
}

#[tokio::test]
async fn applying_and_deleting_files_needs_the_role_and_all_of_it() {
    let store = EmbeddedStore::memory().unwrap();
    let admin = Recorder::to(store.clone());
    repository(&admin, true).await;
    let recorder = Recorder::to(store);
    let repository = repository(&recorder, false).await;
    let now = Timestamp::from_seconds(1_790_000_000);
    for file in [FIRST, SECOND] {
        let comparison = Comparison::of_resource(&repository, file, "app:Limits").await;
        comparison.unwrap().apply(now).await.unwrap();
    }
    let comparison = Comparison::withdraw(&repository, SECOND, "app:Limits").await;
    comparison.unwrap().apply(now).await.unwrap();

    let template =
        zae_limiter_template::export::limits_provisioner(&zae_limiter_template::StackOptions::default())
            .unwrap();
    let role = &template.to_value()["Resources"]["ProvisionerRole"];
    let levels = &role["Properties"]["Policies"][0]["PolicyDocument"]["Statement"][0];
    let texts = |value: &Value| -> BTreeSet<String> {
        let list = value.as_array().unwrap().iter();
        list.map(|text| text.as_str().unwrap().to_owned()).collect()
    };
    let keys = texts(&levels["Condition"]["ForAllValues:StringLike"]["dynamodb:LeadingKeys"]);
    let needed = recorder.needed();
    for access in &needed {
        assert!(!access.index, "{access:?}");
        let partition = access.partition.as_deref();
        let within = partition.is_none_or(|partition| keys.iter().any(|key| like(key, partition)));
        assert!(within, "{access:?}");
    }
    let used: BTreeSet<_> = needed.iter().map(|access| access.action.clone()).collect();
    assert_eq!(used, texts(&levels["Action"]));
}

#![allow(clippy::unwrap_used)]

use aws_config::{BehaviorVersion, Region};
use aws_sdk_dynamodb::config::{Credentials, SharedCredentialsProvider};
use zae_limiter::{EmbeddedStore, Repository};
use zae_limiter_testing::connection::Connection;

use super::*;

fn aws() -> SdkConfig {
    let keys = Credentials::new("test", "test", None, None, "test");
    SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(SharedCredentialsProvider::new(keys))
        .build()
}

fn event(request_type: &str) -> Value {
    json!({
        "RequestType": request_type,
        "Owner": "terraform:limiter",
        "ResourceProperties": {"Limits": "{resources: {gpt-4: {limits: {rpm: 500}}}}"},
    })
}

#[tokio::test]
async fn a_table_that_does_not_respond_fails_the_request_before_lambda_ends_it() {
    // Connections to it are accepted by the system, and no one reads them.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let aws = aws().into_builder().endpoint_url(format!("http://{address}"));
    let provisioner = Provisioner::new(Some("limits".to_owned()), aws.build());
    let error = provisioner
        .handle(&event("Plan"), SystemTime::now() + RESERVE)
        .await
        .unwrap_err();
    assert!(
        matches!(&error, InvocationError::Request(message) if message.contains("were not applied within 0 s")),
        "{error}"
    );
}

/// A provisioner that loses this many races against files that are applied by hand.
async fn overtaken(times: usize) -> (Provisioner, Repository) {
    let store = EmbeddedStore::memory().unwrap();
    let limiter = RateLimiter::embedded_in(&store);
    let repository = limiter.name("limits").build_repository().await.unwrap();
    let connection = Connection::to(store);
    for number in 1..=times {
        let by_hand = repository.clone();
        connection.before("PutItem", async move {
            let file = format!("{{resources: {{gpt-3: {{limits: {{rpm: {number}}}}}}}}}");
            let comparison = Comparison::of(&by_hand, &file).await.unwrap();
            comparison.apply(now()).await.unwrap();
        });
    }
    let aws = aws().into_builder().http_client(connection).build();
    (Provisioner::new(Some("limits".to_owned()), aws), repository)
}

#[tokio::test]
async fn a_file_that_another_process_was_faster_than_is_compared_again() {
    let (provisioner, repository) = overtaken(4).await;
    let deadline = SystemTime::now() + RESERVE + Duration::from_secs(60);
    let done = provisioner.handle(&event("Create"), deadline).await.unwrap();
    // What was applied by hand in between is managed, and no longer declared.
    assert_eq!(
        done,
        json!({"Created": 1, "Updated": 0, "Deleted": 1, "Unchanged": 0})
    );
    assert_eq!(repository.get_resource_defaults("gpt-4").await.unwrap().len(), 1);
    assert!(
        repository
            .get_resource_defaults("gpt-3")
            .await
            .unwrap()
            .is_empty()
    );
}

#[tokio::test]
async fn a_file_that_others_are_always_faster_than_is_not_applied() {
    let (provisioner, repository) = overtaken(5).await;
    let deadline = SystemTime::now() + RESERVE + Duration::from_secs(60);
    let error = provisioner.handle(&event("Create"), deadline).await.unwrap_err();
    assert!(
        error.to_string().contains("another process has applied"),
        "{error}"
    );
    assert!(
        repository
            .get_resource_defaults("gpt-4")
            .await
            .unwrap()
            .is_empty()
    );
    assert_eq!(repository.get_resource_defaults("gpt-3").await.unwrap().len(), 1);
}

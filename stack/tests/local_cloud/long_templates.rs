//! Templates that are too long for a request.

use zae_limiter_stack::{Change, StackOptions};
use zae_limiter_template::Template;

use super::{stack, template};
use crate::support::ministack;

const NAME: &str = "a-limiter-whose-name-is-as-long-as-the-names-can-be-now";

#[tokio::test]
async fn a_long_template_is_created_planned_and_changed_through_the_artifacts_bucket() {
    assert_eq!(NAME.len(), 55);
    let clients = ministack::clients();
    let topic = clients
        .sns
        .create_topic()
        .name("t".repeat(256))
        .send()
        .await
        .unwrap();
    let options = |days: i64| {
        StackOptions::builder()
            .alarm_sns_topic(topic.topic_arn().unwrap())
            .enable_dashboard(true)
            .enable_tracing(true)
            .create_iam_roles(true)
            .tags([("team".to_owned(), "t".repeat(256))].into())
            .pitr_recovery_days(days)
            .build()
            .unwrap()
    };
    let outcome = stack(NAME, &options(7)).ensure().await.unwrap();
    assert_eq!(outcome.change, Change::Created);
    let deployed = template(NAME).await;
    let length = deployed.to_string().len();
    assert!(
        length > Template::LONGEST_BODY,
        "{length}: the test needs a longer template"
    );

    let plan = stack(NAME, &options(8)).plan().await.unwrap();
    assert!(plan.to_string().contains("RateLimitsTable"), "{plan}");
    let outcome = stack(NAME, &options(8)).apply(&plan).await.unwrap();
    assert_eq!(outcome.change, Change::Updated);
    assert_eq!(
        stack(NAME, &options(8)).ensure().await.unwrap().change,
        Change::None
    );

    let bucket = "zae-limiter-artifacts-000000000000-us-east-1";
    let stored = clients.s3.list_objects_v2().bucket(bucket).prefix("templates/");
    let stored = stored.send().await.unwrap();
    assert!(stored.key_count() >= Some(2), "{stored:?}");
}

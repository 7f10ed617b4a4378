//! Each policy permits what its holder really does, and nothing else.

mod awaited;
mod policy;
mod redriving;

use std::time::Duration;

use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use policy::just_enough;
use zae_limiter::audit::AuditSubject;
use zae_limiter::stack::StackOptions;
use zae_limiter::usage::{CapacityScope, UsageQuery, WindowKind};
use zae_limiter::versions::Migrate;
use zae_limiter::{
    ConfigChange, ConfigLevel, EmbeddedStore, EntityChange, Limit, NewEntity, PageRequest, RateLimiter,
};
use zae_limiter_aggregator::{Aggregator, DynamoDb, EventBridge};
use zae_limiter_archiver::{Archiver, S3};
use zae_limiter_function::{Batch, Function, Invocation, Level, Queue, Report};
use zae_limiter_template::deployer::{Place, deployer_policy};
use zae_limiter_template::{
    LambdaFunction, PolicyKind, StackName, function_policy_document, policy_document,
};
use zae_limiter_testing::connection::Recorder;
use zae_limiter_testing::stream::{audit_trail, bucket_changes};

const TABLE: &str = "limiter";

/// What Lambda and the runtime do with a function's role.
const LAMBDAS: [&str; 6] = [
    "dynamodb:DescribeStream",
    "dynamodb:GetRecords",
    "dynamodb:GetShardIterator",
    "dynamodb:ListStreams",
    "logs:CreateLogStream",
    "logs:PutLogEvents",
];

async fn limiter(recorder: &Recorder) -> RateLimiter {
    RateLimiter::builder(TABLE)
        .region("us-east-1")
        .credentials(Credentials::from_keys("key", "secret", None))
        .http_client(recorder.clone())
        .principal("tester")
        .await
        .unwrap()
}

/// A table that somebody else has made and filled.
async fn furnished() -> EmbeddedStore {
    let store = EmbeddedStore::memory().unwrap();
    let admin = RateLimiter::builder(TABLE)
        .region("us-east-1")
        .credentials(Credentials::from_keys("key", "secret", None))
        .http_client(Recorder::to(store.clone()))
        .principal("admin")
        .create_table(true)
        .await
        .unwrap();
    admin.repository().write_version().await.unwrap();
    admin
        .repository()
        .create_entity(NewEntity::new("project"))
        .await
        .unwrap();
    let key = NewEntity::new("key").parent("project").cascade(true);
    admin.repository().create_entity(key).await.unwrap();
    let limits = || {
        [
            Limit::per_minute("rpm", 100).unwrap(),
            Limit::per_minute("tpm", 1_000).unwrap(),
        ]
    };
    admin
        .repository()
        .set_resource_defaults("gpt-4", limits())
        .await
        .unwrap();
    admin
        .repository()
        .set_limits("key", "gpt-4", limits())
        .await
        .unwrap();
    store
}

/// All that somebody does who acquires.
async fn acquires(limiter: &RateLimiter) {
    for (entity, resource) in [("key", "gpt-4"), ("project", "gpt-4"), ("new", "gpt-4")] {
        let acquire = || {
            limiter
                .acquire(entity, resource)
                .consume("rpm", 1)
                .consume("tpm", 10)
        };
        acquire().peek().await.unwrap();
        let mut lease = acquire().wait_up_to(Duration::from_secs(1)).await.unwrap();
        lease.adjust("tpm", 5);
        lease.commit().await.unwrap();
        acquire().await.unwrap().rollback().await.unwrap();
        assert!(
            limiter
                .acquire(entity, resource)
                .consume("tpm", 5_000)
                .await
                .is_err()
        );
    }
    // Limits that come with the call.
    let limits = [Limit::per_minute("jobs", 10).unwrap()];
    let lease = limiter
        .acquire("new", "batch")
        .limits(limits)
        .consume("jobs", 1)
        .await;
    lease.unwrap().commit().await.unwrap();
    assert!(limiter.is_available().await);
    limiter.repository().resolve_limits("key", "gpt-4").await.unwrap();
}

/// All that somebody does who looks.
async fn reads(limiter: &RateLimiter) {
    let page = PageRequest::new(10);
    limiter.repository().get_entity("key").await.unwrap();
    limiter.repository().list_entities(&page).await.unwrap();
    limiter
        .repository()
        .list_children("project", &page)
        .await
        .unwrap();
    limiter
        .repository()
        .get_config(&ConfigLevel::System)
        .await
        .unwrap();
    limiter.repository().list_resources_with_defaults().await.unwrap();
    limiter
        .repository()
        .list_resources_with_entity_configs()
        .await
        .unwrap();
    limiter
        .repository()
        .list_entities_with_custom_limits(Some(&"gpt-4".parse().unwrap()), &page)
        .await
        .unwrap();
    limiter
        .repository()
        .get_resource_capacity("gpt-4", "rpm", CapacityScope::Everyone)
        .await
        .unwrap();
    limiter.acquire("key", "gpt-4").peek().await.unwrap();
    let subject = AuditSubject::Entity("key".parse().unwrap());
    limiter
        .repository()
        .list_audit_events(&subject, &page)
        .await
        .unwrap();
    for query in [
        UsageQuery::of_entity("key").unwrap(),
        UsageQuery::of_resource("gpt-4").unwrap(),
    ] {
        limiter
            .repository()
            .list_usage_snapshots(&query, &page)
            .await
            .unwrap();
        limiter
            .repository()
            .get_usage_summary(&query, WindowKind::Hourly)
            .await
            .unwrap();
    }
    limiter.repository().get_version().await.unwrap();
    limiter
        .repository()
        .migrate(Migrate::pending().dry_run())
        .await
        .unwrap();
    assert!(limiter.is_available().await);
}

/// All that somebody does who manages.
async fn manages(limiter: &RateLimiter) {
    limiter.repository().write_version().await.unwrap();
    limiter
        .repository()
        .create_entity(NewEntity::new("other").parent("project"))
        .await
        .unwrap();
    limiter
        .repository()
        .update_entity("other", EntityChange::new().name("Other"))
        .await
        .unwrap();
    let limits = || [Limit::per_minute("rpm", 10).unwrap()];
    limiter.repository().set_system_defaults(limits()).await.unwrap();
    limiter
        .repository()
        .set_resource_defaults("other", limits())
        .await
        .unwrap();
    limiter
        .repository()
        .set_limits("other", "gpt-4", limits())
        .await
        .unwrap();
    let level = ConfigLevel::System;
    let change = ConfigChange::new().audit_retention_days(30);
    limiter.repository().set_config(&level, change).await.unwrap();
    limiter.repository().delete_config(&level).await.unwrap();
    limiter
        .acquire("other", "gpt-4")
        .consume("rpm", 1)
        .await
        .unwrap()
        .commit()
        .await
        .unwrap();
    let repository = limiter.repository();
    repository.top_up("other", "gpt-4", "rpm", 1).await.unwrap();
    repository.reset("other", "gpt-4").await.unwrap();
    repository.set_parent("other", None).await.unwrap();
    limiter.repository().delete_entity("other").await.unwrap();
    limiter.repository().migrate(Migrate::pending()).await.unwrap();
}

#[tokio::test]
async fn acquiring_is_permitted_what_it_does_and_nothing_else() {
    let recorder = Recorder::to(furnished().await);
    acquires(&limiter(&recorder).await).await;
    let policy = policy_document(PolicyKind::Acquire, &StackOptions::default());
    just_enough(&policy, &recorder.needed(), &[]);
}

#[tokio::test]
async fn reading_is_permitted_what_it_does_and_nothing_else() {
    let store = furnished().await;
    acquires(&limiter(&Recorder::to(store.clone())).await).await;
    let recorder = Recorder::to(store.clone());
    reads(&limiter(&recorder).await).await;
    let policy = policy_document(PolicyKind::Read, &StackOptions::default());
    // The command's `status` reads the size of the table, the stack and its functions.
    let status = [
        "cloudformation:DescribeStacks",
        "cloudformation:GetTemplate",
        "cloudwatch:GetMetricStatistics",
        "dynamodb:DescribeTable",
        "lambda:ListEventSourceMappings",
        "sqs:GetQueueAttributes",
        "sqs:GetQueueUrl",
    ];
    just_enough(&policy, &recorder.needed(), &status);
}

#[tokio::test]
async fn managing_is_permitted_what_it_does_and_nothing_else() {
    let recorder = Recorder::to(furnished().await);
    let limiter = limiter(&recorder).await;
    acquires(&limiter).await;
    reads(&limiter).await;
    manages(&limiter).await;
    let policy = policy_document(PolicyKind::Full, &StackOptions::default());
    just_enough(&policy, &recorder.needed(), &["dynamodb:DescribeTable"]);
}

#[tokio::test]
async fn whoever_deploys_may_write_the_records_of_a_deployment() {
    let recorder = Recorder::to(furnished().await);
    let limiter = limiter(&recorder).await;
    limiter.repository().write_version().await.unwrap();
    let change = ConfigChange::new().audit_retention_days(30);
    limiter
        .repository()
        .set_config(&ConfigLevel::System, change)
        .await
        .unwrap();
    let place = Place {
        partition: "aws".into(),
        region: "us-east-1".into(),
        account: "123456789012".into(),
    };
    let policy = deployer_policy(
        &StackName::parse(TABLE).unwrap(),
        &place,
        &StackOptions::default(),
        None,
    );
    // What the reconciler does to the table itself: it looks at it and at who manages it, and protects it while it is
    // imported.
    let of_the_table = [
        "dynamodb:DescribeTable",
        "dynamodb:ListTagsOfResource",
        "dynamodb:TagResource",
        "dynamodb:UntagResource",
        "dynamodb:UpdateTable",
    ];
    let others: Vec<String> = policy
        .allowed_actions()
        .iter()
        .map(|action| action.as_str().to_owned())
        .filter(|action| !action.starts_with("dynamodb:") || of_the_table.contains(&action.as_str()))
        .collect();
    let others: Vec<&str> = others.iter().map(String::as_str).collect();
    just_enough(&policy, &recorder.needed(), &others);
}

fn aws(recorder: &Recorder) -> SdkConfig {
    let credentials = Credentials::from_keys("key", "secret", None);
    SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(SharedCredentialsProvider::new(credentials))
        .http_client(recorder.clone())
        .build()
}

fn queue(aws: &SdkConfig) -> Queue {
    Queue::new(
        aws_sdk_sqs::Client::new(aws),
        "https://sqs.us-east-1.amazonaws.com/123456789012/dead",
    )
}

/// Has a function process records, and one that it can do nothing with.
async fn process<F: Function>(function: &F, event: &str) {
    let mut event: serde_json::Value = serde_json::from_str(event).unwrap();
    let mut broken = event["Records"][0].clone();
    broken["dynamodb"]["Keys"] = serde_json::json!({ "PK": { "N": "1" } });
    event["Records"].as_array_mut().unwrap().push(broken);
    let batch: Batch = serde_json::from_str(&event.to_string()).unwrap();
    let mut report = Report::new(Level::Error, F::METRICS);
    let invocation = Invocation::within(Duration::from_secs(60));
    let done = function.handle(&batch, &invocation, &mut report).await;
    assert!(done.is_ok());
}

#[tokio::test]
async fn counting_usage_is_permitted_what_it_does_and_nothing_else() {
    let recorder = Recorder::to(furnished().await);
    let aws = aws(&recorder);
    let table = DynamoDb::new(aws_sdk_dynamodb::Client::new(&aws), TABLE);
    let aggregator = Aggregator::new(table, queue(&aws), vec![WindowKind::Hourly], 90);
    let changes = bucket_changes(1, 20, 3);
    process(&aggregator, &changes.streams[0].event()).await;
    let policy = function_policy_document(LambdaFunction::Aggregator, &StackOptions::default());
    just_enough(&policy, &recorder.needed(), &LAMBDAS);
}

#[tokio::test]
async fn sending_events_is_permitted_on_the_bus_of_the_stack_and_nowhere_else() {
    let recorder = Recorder::to(furnished().await);
    let aws = aws(&recorder);
    let table = DynamoDb::new(aws_sdk_dynamodb::Client::new(&aws), TABLE);
    let aggregator = Aggregator::new(table, queue(&aws), vec![WindowKind::Hourly], 90);
    let aggregator = aggregator.with_alerts(Some(EventBridge::new(&aws, "budgets")));
    let changes = bucket_changes(1, 200, 3);
    assert!(!changes.crossings.is_empty());
    process(&aggregator, &changes.streams[0].event()).await;
    let options = StackOptions::builder().event_bus("budgets").build().unwrap();
    let policy = function_policy_document(LambdaFunction::Aggregator, &options);
    just_enough(&policy, &recorder.needed(), &LAMBDAS);
    let json = serde_json::json!(policy).to_string();
    assert!(json.contains(":event-bus/budgets"), "{json}");
}

#[tokio::test]
async fn archiving_is_permitted_what_it_does_and_nothing_else() {
    let recorder = Recorder::to(furnished().await);
    let aws = aws(&recorder);
    let store = S3::new(aws_sdk_s3::Client::new(&aws), "archive");
    let archiver = Archiver::new(store, queue(&aws));
    process(&archiver, &audit_trail(1, 5).stream.event()).await;
    let policy = function_policy_document(LambdaFunction::Archiver, &StackOptions::default());
    just_enough(&policy, &recorder.needed(), &LAMBDAS);
}

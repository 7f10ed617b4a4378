//! The commands of the runbooks on a table without a stack, with functions as the Terraform module makes them, on a local cloud.

use std::collections::HashMap;

use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use aws_sdk_dynamodb::types::Tag;
use aws_sdk_lambda::types::{Environment, EventSourcePosition, FunctionCode, Runtime};
use serde_json::json;

use crate::local::Cloud;
use crate::tool::{RunResult, result};

/// So long that the aggregator's name is shortened to `{name}-aggr`.
const NAME: &str = "limiter-of-the-department-with-the-longest-name-we-have";
const ARCHIVE: &str = "limiter-audit-00000000000000000000000001";

fn on(cloud: &Cloud, arguments: &[&str]) -> RunResult {
    result(cloud.on(&[arguments, &["-n", NAME]].concat()))
}

pub(crate) fn aws(cloud: &Cloud) -> SdkConfig {
    let credentials = Credentials::from_keys("test", "test", None);
    SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::from_static("us-east-1"))
        .endpoint_url(format!("http://127.0.0.1:{}", cloud.port))
        .credentials_provider(SharedCredentialsProvider::new(credentials))
        .build()
}

/// The table of a deleted stack with the tag of the module, which is how a table comes to Terraform.
async fn table(cloud: &Cloud, aws: &SdkConfig) -> String {
    on(
        cloud,
        &[
            "deploy",
            "--no-aggregator",
            "--no-audit-archival",
            "--no-alarms",
            "--yes",
        ],
    )
    .expect_exit(0);
    on(cloud, &["delete", "--yes"]).expect_exit(0);
    let dynamodb = aws_sdk_dynamodb::Client::new(aws);
    let described = dynamodb.describe_table().table_name(NAME).send().await.unwrap();
    let table = described.table.unwrap();
    let tag = Tag::builder()
        .key("ManagedBy")
        .value("terraform")
        .build()
        .unwrap();
    let tagged = dynamodb
        .tag_resource()
        .resource_arn(table.table_arn.unwrap())
        .tags(tag);
    tagged.send().await.unwrap();
    table.latest_stream_arn.unwrap()
}

/// A function that reads the stream. Its mapping is disabled: the archive has no program.
async fn function(aws: &SdkConfig, name: &str, stream: &str, variables: &[(&str, &str)]) {
    let lambda = aws_sdk_lambda::Client::new(aws);
    let variables = variables
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let environment = Environment::builder().set_variables(Some(variables.collect::<HashMap<_, _>>()));
    let archive = [&b"PK\x05\x06"[..], &[0; 18]].concat();
    let code = FunctionCode::builder().zip_file(archive.into()).build();
    let created = lambda
        .create_function()
        .function_name(name)
        .role("arn:aws:iam::000000000000:role/limiter")
        .runtime(Runtime::Providedal2023)
        .handler("bootstrap")
        .code(code)
        .environment(environment.build());
    created.send().await.unwrap();
    let mapping = lambda
        .create_event_source_mapping()
        .function_name(name)
        .event_source_arn(stream)
        .enabled(false)
        .starting_position(EventSourcePosition::TrimHorizon);
    mapping.send().await.unwrap();
}

/// A dead letter of the aggregator with the first write of a bucket.
fn letter() -> String {
    let record = json!({
        "eventID": "1", "eventName": "INSERT", "awsRegion": "us-east-1",
        "eventSourceARN": "arn:aws:dynamodb:us-east-1:1:table/t/stream/2026-01-31T12:00:00.000",
        "dynamodb": {
            "ApproximateCreationDateTime": 1_769_903_998, "SequenceNumber": "1", "SizeBytes": 1,
            "Keys": { "PK": { "S": "ENTITY#user-1" }, "SK": { "S": "#BUCKET#gpt-4" } },
            "NewImage": { "b_rpm_tc": { "N": "1000" }, "ev": { "N": "1" } },
        },
    });
    json!({ "function": "aggregator", "reason": "a test", "sequenceNumber": "1", "record": record })
        .to_string()
}

#[tokio::test]
async fn dead_letters_and_the_archive_of_a_table_of_terraform_are_found() {
    let cloud = Cloud::new();
    cloud.up().expect_exit(0);
    let aws = aws(&cloud);
    let stream = table(&cloud, &aws).await;

    for command in [&["drift"][..], &["outputs"], &["upgrade", "--yes"]] {
        let error = on(&cloud, &[command, &["--output", "json"]].concat())
            .expect_exit(1)
            .error();
        assert_eq!(error["error"], "stack_missing", "{command:?}");
        assert!(
            error["message"].as_str().unwrap().contains("terraform plan"),
            "{error}"
        );
    }
    let refused = on(
        &cloud,
        &["deploy", "--no-aggregator", "--no-audit-archival", "--yes"],
    )
    .expect_exit(1);
    assert!(refused.stderr.contains("Terraform manages table"), "{refused:?}");

    let none = on(&cloud, &["usage", "redrive", "--output", "json"]).expect_exit(1);
    assert_eq!(none.error()["error"], "aggregator_missing");
    assert!(none.stderr.contains("Terraform module"), "{none:?}");

    let sqs = aws_sdk_sqs::Client::new(&aws);
    let mut queues = Vec::new();
    for function in ["aggregator", "archiver"] {
        let created = sqs.create_queue().queue_name(format!("{NAME}-{function}-dlq"));
        queues.push(created.send().await.unwrap().queue_url.unwrap());
    }
    let aggregator = format!("{NAME}-aggr");
    let settings = [
        ("TABLE_NAME", NAME),
        ("DLQ_URL", &queues[0]),
        ("SNAPSHOT_WINDOWS", "daily"),
        ("SNAPSHOT_TTL_DAYS", "90"),
    ];
    function(&aws, &aggregator, &stream, &settings).await;
    let settings = [("ARCHIVE_BUCKET_NAME", ARCHIVE), ("DLQ_URL", &queues[1])];
    function(&aws, &format!("{NAME}-archiver"), &stream, &settings).await;
    let sent = sqs.send_message().queue_url(&queues[0]).message_body(letter());
    sent.send().await.unwrap();

    let status = on(&cloud, &["status", "--output", "json"]).expect_exit(0).json();
    assert_eq!(status["terraform"], true, "{status}");
    assert_eq!(status["functions"][0]["name"], aggregator.as_str(), "{status}");
    assert_eq!(status["functions"][0]["dead_letters"], 1, "{status}");
    let check = on(&cloud, &["check"]).expect_exit(0);
    assert!(!check.stdout.contains("foreign"), "{check:?}");

    let counted = on(&cloud, &["usage", "redrive", "--output", "json"])
        .expect_exit(0)
        .json();
    assert_eq!(counted, json!({ "counted": 1, "snapshots": 1, "kept": [] }));
    let usage = on(
        &cloud,
        &["usage", "list", "-e", "user-1", "-w", "daily", "--output", "json"],
    );
    assert_eq!(usage.expect_exit(0).json()["snapshots"][0]["counters"]["rpm"], 1);
    // Also by name, as for a function that was named by hand.
    let named = ["usage", "redrive", "--function", &aggregator, "--output", "json"];
    assert_eq!(on(&cloud, &named).expect_exit(0).json()["counted"], 0);

    on(&cloud, &["system", "set-defaults", "-l", "rpm:10"]).expect_exit(0);
    let s3 = aws_sdk_s3::config::Builder::from(&aws).force_path_style(true);
    let s3 = aws_sdk_s3::Client::from_conf(s3.build());
    s3.create_bucket().bucket(ARCHIVE).send().await.unwrap();
    on(&cloud, &["audit", "archive", "--since", "1d"]).expect_exit(0);
    let objects = s3.list_objects_v2().bucket(ARCHIVE).send().await.unwrap();
    assert!(
        objects.key_count().unwrap() > 0,
        "the events are in the bucket of the archiver"
    );
}

//! Stream records of a bucket, counted by our aggregator or by the peer's.

use std::time::Duration;

use aws_credential_types::Credentials;
use aws_sdk_dynamodb::config::{BehaviorVersion, Region};
use serde_json::{Value, json};
use zae_limiter::usage::WindowKind;
use zae_limiter_aggregator::{Aggregator, DynamoDb};
use zae_limiter_function::{
    Batch, CallError, DeadLetter, DeadLetters, Function as _, Invocation, Level, Report,
};
use zae_limiter_testing::{dynamodb_endpoint, peer_output, workspace};

use crate::peer::table::Table;

/// user-1 on gpt-4 has used 5 rpm and 1,200 tpm by 2026-01-31T10:00:00Z.
fn records() -> Value {
    const TEN: u64 = 1_769_853_600;
    let image = |events: u64, requests: u64, tokens: u64| {
        let mut image = json!({
            "PK": {"S": "ENTITY#user-1"}, "SK": {"S": "#BUCKET#gpt-4"}, "entity_id": {"S": "user-1"},
            "resource": {"S": "gpt-4"}, "cascade": {"BOOL": false}, "ev": {"N": events.to_string()},
            "rf": {"N": (TEN * 1_000).to_string()},
        });
        for (limit, consumed) in [("rpm", requests), ("tpm", tokens)] {
            for (field, value) in [
                ("tk", 9_000_000 - consumed),
                ("cp", 9_000_000),
                ("bx", 9_000_000),
                ("ra", 9_000_000),
                ("rp", 60_000),
                ("tc", consumed),
            ] {
                image[format!("b_{limit}_{field}")] = json!({ "N": value.to_string() });
            }
        }
        image
    };
    let (before, after) = (image(0, 0, 0), image(1, 5_000, 1_200_000));
    json!([{
        "eventID": "1", "eventName": "MODIFY", "awsRegion": "us-east-1", "eventSource": "aws:dynamodb",
        "eventSourceARN": "arn:aws:dynamodb:us-east-1:123456789012:table/usage/stream/2026-01-31T00:00:00.000",
        "dynamodb": {
            "ApproximateCreationDateTime": TEN, "SequenceNumber": "1", "SizeBytes": 1,
            "StreamViewType": "NEW_AND_OLD_IMAGES", "Keys": {"PK": after["PK"], "SK": after["SK"]},
            "OldImage": before, "NewImage": after,
        },
    }])
}

/// A record that cannot be counted fails the test.
struct NoLetters;

impl DeadLetters for NoLetters {
    async fn send(&self, letter: &DeadLetter<'_>) -> Result<(), CallError> {
        panic!("{}", letter.reason)
    }
}

pub(crate) async fn counted_by_us(table: &Table) {
    let config = aws_sdk_dynamodb::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::from_static("us-east-1"))
        .credentials_provider(Credentials::from_keys("test", "test", None))
        .endpoint_url(dynamodb_endpoint());
    let client = aws_sdk_dynamodb::Client::from_conf(config.build());
    let store = DynamoDb::new(client, table.name);
    let aggregator = Aggregator::new(store, NoLetters, vec![WindowKind::Hourly], 90);
    let batch: Batch = serde_json::from_value(json!({ "Records": records() })).unwrap();
    let invocation = Invocation::within(Duration::from_secs(60));
    let mut report = Report::new(Level::Info, &[]);
    let response = aggregator.handle(&batch, &invocation, &mut report).await.unwrap();
    assert!(response.batch_item_failures.is_empty(), "{:?}", report.notes());
}

pub(crate) fn counted_by_the_peer(table: &Table) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("records.json");
    let told = json!({ "windows": ["hourly"], "batches": [records()] });
    std::fs::write(&path, told.to_string()).unwrap();
    let script = workspace().join("tests/tests/peer/aggregate.py");
    let errors = peer_output(
        &script,
        &[table.name, dynamodb_endpoint(), path.to_str().unwrap()],
    );
    assert_eq!(serde_json::from_slice::<Value>(&errors).unwrap(), json!([]));
}

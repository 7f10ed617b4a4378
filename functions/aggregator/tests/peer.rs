//! The Python peer reads what the aggregator writes.

use std::path::Path;
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::{Value as Json, json};
use zae_limiter_aggregator::{Aggregator, DynamoDb};
use zae_limiter_function::{
    Batch, CallError, DeadLetter, DeadLetters, Function as _, Invocation, Level, Report,
};
use zae_limiter_schema::WindowKind;
use zae_limiter_testing::{MiniStack, peer_output};

const TABLE: &str = "usage";

/// The index holds whole items, as in the peer's own stack.
fn create_table() {
    let mut table = zae_limiter_testing::stream::create_table(TABLE);
    for index in table["GlobalSecondaryIndexes"].as_array_mut().unwrap() {
        index["Projection"]["ProjectionType"] = "ALL".into();
    }
    MiniStack::shared().create_table(&table);
}

struct NoLetters;

impl DeadLetters for NoLetters {
    async fn send(&self, letter: &DeadLetter<'_>) -> Result<(), CallError> {
        Err(CallError::Denied(letter.reason.clone()))
    }
}

/// A bucket that had consumed nothing, or what the images say.
fn record(number: u64, at: i64, old: Option<&Json>, new: &Json) -> Json {
    let mut record = json!({
        "eventID": "1", "eventName": "INSERT", "awsRegion": "us-east-1",
        "eventSourceARN": "arn:aws:dynamodb:us-east-1:1:table/usage/stream/2026-01-31T12:00:00.000",
        "dynamodb": {
            "ApproximateCreationDateTime": at, "SequenceNumber": number.to_string(), "SizeBytes": 1,
            "Keys": {"PK": {"S": "ENTITY#user-1"}, "SK": {"S": "#BUCKET#gpt-4"}},
            "NewImage": new,
        },
    });
    if let Some(old) = old {
        record["eventName"] = "MODIFY".into();
        record["dynamodb"]["OldImage"] = old.clone();
    }
    record
}

fn image(rpm: u64, tpm: u64, events: u64) -> Json {
    json!({
        "b_rpm_tc": {"N": (rpm * 1_000).to_string()}, "b_tpm_tc": {"N": (tpm * 1_000).to_string()},
        "ev": {"N": events.to_string()},
        // Refusals are none of the peer's counters.
        "rj": {"N": (events * 3).to_string()},
        "ro": {"N": (events * 2).to_string()},
    })
}

fn snapshot(kind: &str, start: &str, end: &str, (rpm, tpm, events): (u64, u64, u64)) -> Json {
    json!({
        "entity_id": "user-1", "resource": "gpt-4", "window_type": kind, "window_start": start, "window_end": end,
        "counters": {"rpm": rpm, "tpm": tpm}, "total_events": events,
    })
}

#[tokio::test]
async fn the_peer_reads_the_same_usage_by_entity_and_by_resource() {
    let client = Client::new(&MiniStack::shared().aws());
    let reader = client.clone();
    create_table();
    let aggregator = Aggregator::new(
        DynamoDb::new(client, TABLE),
        NoLetters,
        WindowKind::ALL.to_vec(),
        90,
    );
    // The last second of January, and the first hour of February, whose day and month begin with it.
    let (january, february) = (1_769_903_999, 1_769_904_000);
    let [none, one, two, three] =
        [(0, 0, 0), (1, 500, 1), (2, 900, 2), (4, 850, 3)].map(|(rpm, tpm, events)| image(rpm, tpm, events));
    let records = json!({ "Records": [
        record(7, january, None, &one),
        record(8, january, Some(&one), &two),
        record(9, february, Some(&two), &three),
        record(10, february + 3_600, Some(&none), &one),
    ]});
    let batch: Batch = serde_json::from_value(records).unwrap();
    let mut report = Report::new(Level::Info, &[]);
    let invocation = Invocation::within(Duration::from_secs(20));
    let response = aggregator.handle(&batch, &invocation, &mut report).await.unwrap();
    assert!(response.batch_item_failures.is_empty(), "{:?}", report.notes());

    for (window, refusals) in [
        ("2026-01-31", "6"),
        ("2026-02-01", "6"),
        ("2026-02-01T00:00:00Z", "3"),
    ] {
        let item = reader.get_item().table_name(TABLE);
        let item = item.key("PK", AttributeValue::S("ENTITY#user-1".to_owned()));
        let item = item.key("SK", AttributeValue::S(format!("#USAGE#gpt-4#{window}")));
        let found = item.send().await.unwrap().item.unwrap();
        assert_eq!(found["_rf"], AttributeValue::S(refusals.to_owned()), "{window}");
    }

    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peer_usage.py");
    let printed = peer_output(&script, &[TABLE, &MiniStack::shared().endpoint()]);
    let found: Json = serde_json::from_slice(&printed).unwrap();
    // A correction downwards: 50 tokens were given back in the first hour of February.
    let hourly = json!([
        snapshot("hourly", "2026-01-31T23:00:00Z", "2026-01-31T23:59:59Z", (2, 900, 2)),
        {
            "entity_id": "user-1", "resource": "gpt-4", "window_type": "hourly", "total_events": 1,
            "window_start": "2026-02-01T00:00:00Z", "window_end": "2026-02-01T00:59:59Z",
            "counters": {"rpm": 2, "tpm": -50},
        },
        snapshot("hourly", "2026-02-01T01:00:00Z", "2026-02-01T01:59:59Z", (1, 500, 1)),
    ]);
    let daily = json!([
        snapshot(
            "daily",
            "2026-01-31T00:00:00Z",
            "2026-01-31T23:59:59Z",
            (2, 900, 2)
        ),
        snapshot(
            "daily",
            "2026-02-01T00:00:00Z",
            "2026-02-01T23:59:59Z",
            (3, 450, 2)
        ),
    ]);
    let monthly = json!([
        snapshot(
            "monthly",
            "2026-01-01T00:00:00Z",
            "2026-01-31T23:59:59Z",
            (2, 900, 2)
        ),
        snapshot(
            "monthly",
            "2026-02-01T00:00:00Z",
            "2026-02-28T23:59:59Z",
            (3, 450, 2)
        ),
    ]);
    for (window, expected) in [("hourly", hourly), ("daily", daily), ("monthly", monthly)] {
        assert_eq!(found[window], json!([expected, expected]), "{window}");
    }
}

//! Usage, counted by the aggregator from the table's stream, while its invocations are cut off and repeated.

use std::time::Duration;

use aws_config::{BehaviorVersion, Region};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::Credentials;
use serde_json::{Value as Json, json};
use zae_limiter_aggregator::{Aggregator, DynamoDb};
use zae_limiter_function::{
    Batch, CallError, DeadLetter, DeadLetters, Function as _, Invocation, Level, Report,
};
use zae_limiter_schema::WindowKind;

use crate::client::TABLE;
use crate::wire;

const STREAMS: &str = "DynamoDBStreams_20120810";

struct NoDeadLetters;

impl DeadLetters for NoDeadLetters {
    async fn send(&self, letter: &DeadLetter<'_>) -> Result<(), CallError> {
        panic!("no record of this run is a dead letter: {}", letter.reason)
    }
}

pub(crate) fn client(endpoint: &str) -> Client {
    let config = aws_sdk_dynamodb::Config::builder()
        .behavior_version(BehaviorVersion::v2026_01_12())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("test", "test", None, None, "tests"))
        .endpoint_url(endpoint);
    Client::from_conf(config.build())
}

/// Every record of the stream so far, in order.
pub(crate) fn records(port: u16, stream: &str) -> Vec<Json> {
    let ask = |operation: &str, body: Json| wire::call(port, &format!("{STREAMS}.{operation}"), &body);
    let described = ask("DescribeStream", json!({ "StreamArn": stream }));
    let shards = described["StreamDescription"]["Shards"]
        .as_array()
        .unwrap()
        .clone();
    let mut records = Vec::new();
    for shard in shards {
        let iterator = ask(
            "GetShardIterator",
            json!({ "StreamArn": stream, "ShardId": shard["ShardId"], "ShardIteratorType": "TRIM_HORIZON" }),
        );
        let mut iterator = iterator["ShardIterator"].clone();
        while iterator.is_string() {
            let page = ask("GetRecords", json!({ "ShardIterator": iterator, "Limit": 1000 }));
            let found = page["Records"].as_array().unwrap().clone();
            if found.is_empty() {
                break;
            }
            records.extend(found);
            iterator = page["NextShardIterator"].clone();
        }
    }
    for record in &mut records {
        record["eventSourceARN"] = stream.into();
    }
    records
}

/// Feeds the records to the aggregator. Every third invocation is cut off somewhere and repeated, every fifth batch is
/// delivered twice. Returns how many batches there were and how many invocations were cut off.
pub(crate) async fn count(endpoint: &str, records: &[Json]) -> (usize, usize) {
    let table = DynamoDb::new(client(endpoint), TABLE);
    let aggregator = Aggregator::new(table, NoDeadLetters, vec![WindowKind::Hourly], 90);
    // The mapping's filter lets nothing but buckets through.
    let buckets = |record: &&Json| {
        let key = record["dynamodb"]["Keys"]["SK"]["S"].as_str();
        key.is_some_and(|key| key.starts_with("#BUCKET#")) && record["eventName"] != "REMOVE"
    };
    let records: Vec<Json> = records.iter().filter(buckets).cloned().collect();
    let mut cut_off = 0;
    let batches = records.chunks(100);
    let number = batches.len();
    for (at, records) in batches.enumerate() {
        let batch: Batch = serde_json::from_value(json!({ "Records": records })).unwrap();
        if at % 3 == 2 {
            let cut = Duration::from_millis(u64::try_from(at % 40).unwrap());
            cut_off += usize::from(
                tokio::time::timeout(cut, invoke(&aggregator, &batch))
                    .await
                    .is_err(),
            );
        }
        invoke(&aggregator, &batch).await;
        if at % 5 == 4 {
            invoke(&aggregator, &batch).await;
        }
    }
    (number, cut_off)
}

async fn invoke(aggregator: &Aggregator<DynamoDb, NoDeadLetters>, batch: &Batch) {
    let mut report = Report::new(Level::Info, &[]);
    let invocation = Invocation::within(Duration::from_mins(2));
    let answer = aggregator.handle(batch, &invocation, &mut report).await.unwrap();
    assert!(answer.batch_item_failures.is_empty(), "{:?}", report.notes());
}

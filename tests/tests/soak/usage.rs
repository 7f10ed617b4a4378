//! Usage, counted by the aggregator from the table's stream, while its processes are killed and started again.

use aws_config::{BehaviorVersion, Region};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::Credentials;
use serde_json::{Value as Json, json};

use crate::function::Function;
use crate::wire;

const STREAMS: &str = "DynamoDBStreams_20120810";

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

/// As many records as a batch has, half of what the stack's mapping may deliver at once.
const BATCH: usize = 500;

/// Feeds the records to the function. Some of its processes, at most 60, are killed in the middle of a batch, which is then
/// delivered again, and every fifth batch is delivered twice. Returns how many batches there were and how many processes were
/// killed.
pub(crate) fn count(endpoint: &str, records: &[Json]) -> (usize, usize) {
    // The mapping's filter lets nothing but buckets through.
    let buckets = |record: &&Json| {
        let key = record["dynamodb"]["Keys"]["SK"]["S"].as_str();
        key.is_some_and(|key| key.starts_with("#BUCKET#")) && record["eventName"] != "REMOVE"
    };
    let records: Vec<Json> = records.iter().filter(buckets).cloned().collect();
    let batches = records.chunks(BATCH);
    let number = batches.len();
    let crash_each = number.div_ceil(60).max(2);
    let mut function = Function::start(endpoint);
    for (at, records) in batches.enumerate() {
        if at % crash_each == crash_each - 1 {
            function.crash(records, 1 + at % 7);
        }
        function.count(records);
        if at % 5 == 4 {
            function.count(records);
        }
    }
    (number, function.killed)
}

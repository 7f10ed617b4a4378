//! Stream records, and what they mean.

use serde_json::{Value as Json, json};
use zae_limiter_aggregator::{Entry, Malformed, Progress, Reading, SnapshotUpdate, UsageDelta};
use zae_limiter_function::EventRecord;
use zae_limiter_schema::AttributeValue;

const STREAM: &str = "arn:aws:dynamodb:eu-west-1:123456789012:table/limiter/stream/2026-01-31T12:00:00.000";
/// 2026-01-31T23:59:58Z.
pub(crate) const EVENING: i64 = 1_769_903_998;

/// The text of a record.
pub(crate) fn record(kind: &str, number: &str, at: i64, old: &Json, new: &Json) -> String {
    let keys = json!({"PK": {"S": "ENTITY#user-1"}, "SK": {"S": "#BUCKET#gpt-4"}});
    keyed(&keys, kind, number, at, old, new)
}

pub(crate) fn keyed(keys: &Json, kind: &str, number: &str, at: i64, old: &Json, new: &Json) -> String {
    let record = json!({
        "eventID": "1", "eventName": kind, "awsRegion": "eu-west-1", "eventSource": "aws:dynamodb",
        "eventSourceARN": STREAM,
        "dynamodb": {
            "ApproximateCreationDateTime": at, "SequenceNumber": number, "SizeBytes": 1,
            "StreamViewType": "NEW_AND_OLD_IMAGES",
            "Keys": keys, "OldImage": old, "NewImage": new,
        },
    });
    record.to_string()
}

pub(crate) fn modify(old: &Json, new: &Json) -> String {
    record("MODIFY", "100", EVENING, old, new)
}

pub(crate) fn read(record: &str) -> Result<Reading, Malformed> {
    let record: EventRecord = serde_json::from_str(record).unwrap();
    Reading::of(&record)
}

pub(crate) fn delta(record: &str) -> Option<UsageDelta> {
    read(record).unwrap().delta
}

pub(crate) fn consuming(number: u64, at: i64, from: i64, to: i64) -> UsageDelta {
    let image = |tokens: i64| json!({"b_rpm_tc": {"N": (tokens * 1000).to_string()}, "o_abcd": {"N": tokens.to_string()}});
    delta(&record(
        "MODIFY",
        &number.to_string(),
        at,
        &image(from),
        &image(to),
    ))
    .unwrap()
}

pub(crate) fn entries(deltas: &[UsageDelta]) -> Vec<Entry<'_>> {
    let deltas = deltas.iter().enumerate();
    deltas.map(|(index, delta)| Entry { delta, index }).collect()
}

pub(crate) fn set<'u>(update: &'u SnapshotUpdate, name: &str) -> Option<&'u str> {
    let all = update.set.iter().chain(&update.set_if_absent);
    all.filter(|(known, _)| known == name)
        .find_map(|(_, value)| match value {
            AttributeValue::S(text) => Some(text.as_str()),
            _ => None,
        })
}

/// The progress of a snapshot after an update.
pub(crate) fn after(update: &SnapshotUpdate) -> Progress {
    Progress::from_attributes(|name| set(update, name)).unwrap()
}

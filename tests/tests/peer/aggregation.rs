//! The peer's aggregator and ours, fed the same stream records.
//!
//! Where the peer counts right, both write the same counters. Where it does not, each difference is a case here and a
//! row in docs/guide/usage-differences.md.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_config::{BehaviorVersion, Region};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::Credentials;
use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::{Value as Json, json};
use zae_limiter::RateLimiter;
use zae_limiter_aggregator::{Aggregator, DynamoDb};
use zae_limiter_function::{
    Batch, CallError, DeadLetter, DeadLetters, Function as _, Invocation, Level, Report,
};
use zae_limiter_schema::WindowKind;
use zae_limiter_testing::{dynamodb_endpoint, peer_output};

/// 2026-01-31T00:00:00Z.
const MIDNIGHT: i64 = 1_769_817_600;
const HOUR: i64 = 3_600;

/// Counters by "window start entity resource".
type Snapshots = BTreeMap<String, BTreeMap<String, i64>>;

/// Why records were sent to the dead-letter queue.
#[derive(Default, Clone)]
struct Letters(Arc<Mutex<Vec<String>>>);

impl DeadLetters for Letters {
    async fn send(&self, letter: &DeadLetter<'_>) -> Result<(), CallError> {
        self.0.lock().unwrap().push(letter.reason.clone());
        Ok(())
    }
}

fn client() -> Client {
    let config = aws_sdk_dynamodb::Config::builder()
        .behavior_version(BehaviorVersion::v2026_01_12())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("test", "test", None, None, "tests"))
        .endpoint_url(dynamodb_endpoint());
    Client::from_conf(config.build())
}

/// A bucket as both write it, with these counters in millitokens.
fn image(entity: &str, resource: &str, refilled_at: i64, events: u64, counters: &[(&str, i64)]) -> Json {
    let number = |number: i64| json!({ "N": number.to_string() });
    let mut image = json!({
        "PK": {"S": format!("ENTITY#{entity}")}, "SK": {"S": format!("#BUCKET#{resource}")},
        "entity_id": {"S": entity}, "resource": {"S": resource}, "cascade": {"BOOL": false},
        "rf": number(refilled_at * 1_000), "ev": {"N": events.to_string()},
    });
    for (limit, consumed) in counters {
        for (field, value) in [
            ("tc", *consumed),
            ("tk", 1_000_000_000 - consumed),
            ("cp", 1_000_000_000),
            ("bx", 1_000_000_000),
            ("ra", 1_000_000_000),
            ("rp", 60_000),
        ] {
            image[format!("b_{limit}_{field}")] = number(value);
        }
    }
    image
}

/// A change at this time; an insertion, if there is no image before it.
fn record(number: u64, at: i64, old: Option<&Json>, new: &Json) -> Json {
    let mut record = json!({
        "eventID": number.to_string(), "eventName": "INSERT", "awsRegion": "us-east-1", "eventSource": "aws:dynamodb",
        "eventSourceARN": "arn:aws:dynamodb:us-east-1:123456789012:table/usage/stream/2026-01-31T00:00:00.000",
        "dynamodb": {
            "ApproximateCreationDateTime": at, "SequenceNumber": number.to_string(), "SizeBytes": 1,
            "StreamViewType": "NEW_AND_OLD_IMAGES",
            "Keys": {"PK": new["PK"], "SK": new["SK"]}, "NewImage": new,
        },
    });
    if let Some(old) = old {
        record["eventName"] = "MODIFY".into();
        record["dynamodb"]["OldImage"] = old.clone();
    }
    record
}

/// What both aggregators make of the same batches: ours, the peer's, and what ours could not count.
async fn counted(
    name: &str,
    windows: &[WindowKind],
    batches: &[Vec<Json>],
) -> (Snapshots, Snapshots, Vec<String>) {
    let letters = Letters::default();
    let (ours, theirs) = (format!("usage-ours-{name}"), format!("usage-peer-{name}"));
    for table in [&ours, &theirs] {
        RateLimiter::builder(table)
            .endpoint_url(dynamodb_endpoint())
            .region("us-east-1")
            .credentials(Credentials::new("test", "test", None, None, "tests"))
            .create_table(true)
            .await
            .unwrap();
    }

    let aggregator = Aggregator::new(
        DynamoDb::new(client(), &ours),
        letters.clone(),
        windows.to_vec(),
        90,
    );
    for records in batches {
        let batch: Batch = serde_json::from_value(json!({ "Records": records })).unwrap();
        let mut report = Report::new(Level::Info, &[]);
        let invocation = Invocation::within(Duration::from_secs(60));
        let response = aggregator.handle(&batch, &invocation, &mut report).await.unwrap();
        assert!(response.batch_item_failures.is_empty(), "{:?}", report.notes());
    }

    let path =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("records-{name}-{}.json", std::process::id()));
    let windows: Vec<_> = windows.iter().map(|window| window.as_str()).collect();
    std::fs::write(
        &path,
        json!({ "windows": windows, "batches": batches }).to_string(),
    )
    .unwrap();
    let (table, told) = (theirs.clone(), path.clone());
    let errors = tokio::task::spawn_blocking(move || {
        peer_output(
            &crate::peer::script("aggregate.py"),
            &[&table, dynamodb_endpoint(), told.to_str().unwrap()],
        )
    });
    let errors: Json = serde_json::from_slice(&errors.await.unwrap()).unwrap();
    std::fs::remove_file(path).unwrap();
    assert_eq!(errors, json!([]), "the peer's errors");
    let letters = letters.0.lock().unwrap().clone();
    (snapshots(&ours).await, snapshots(&theirs).await, letters)
}

async fn snapshots(table: &str) -> Snapshots {
    let mut found = Snapshots::new();
    let mut pages = client().scan().table_name(table).into_paginator().send();
    while let Some(page) = pages.next().await {
        for item in page.unwrap().items.unwrap_or_default() {
            let text = |name: &str| item.get(name).and_then(|value| value.as_s().ok()).cloned();
            if !text("SK").is_some_and(|key| key.starts_with("#USAGE#")) {
                continue;
            }
            let part = |name: &str| text(name).unwrap();
            let place = [
                part("window"),
                part("window_start"),
                part("entity_id"),
                part("resource"),
            ]
            .join(" ");
            let counter = |(name, value): (&String, &AttributeValue)| {
                let limit = ["rpm", "tpm", "total_events"].contains(&name.as_str());
                limit.then(|| (name.clone(), value.as_n().unwrap().parse().unwrap()))
            };
            found.insert(place, item.iter().filter_map(counter).collect());
        }
    }
    found
}

fn expected(snapshots: &[(&str, &[(&str, i64)])]) -> Snapshots {
    let counters = |counters: &[(&str, i64)]| {
        counters
            .iter()
            .map(|(limit, tokens)| ((*limit).to_owned(), *tokens))
            .collect()
    };
    let snapshots = snapshots
        .iter()
        .map(|(place, found)| ((*place).to_owned(), counters(found)));
    snapshots.collect()
}

/// Whole tokens, in windows of their own, by buckets that exist, each record once: where the peer counts right.
#[tokio::test]
async fn both_count_the_same_where_the_peer_is_right() {
    let buckets = if crate::peer::long() { 40 } else { 6 };
    let mut random = Steps(2026);
    let (mut batches, mut number) = (vec![], 100);
    for bucket in 0..buckets {
        let (entity, resource) = (
            format!("user-{}", bucket / 2),
            ["gpt-4", "openai/gpt-3.5"][bucket % 2],
        );
        let (mut rpm, mut tpm) = (0, 0);
        let mut old = image(&entity, resource, MIDNIGHT + HOUR, 0, &[("rpm", 0), ("tpm", 0)]);
        for event in 1..=8_u64 {
            // Never in the first hour of the day, and the refill at the time of the event.
            let at = MIDNIGHT + HOUR + i64::try_from(event).unwrap() * 2 * HOUR + random.up_to(HOUR);
            rpm += 1_000;
            // Adjustments give tokens back now and then.
            tpm += (random.up_to(500) - 100) * 1_000;
            let new = image(&entity, resource, at, event, &[("rpm", rpm), ("tpm", tpm)]);
            number += 1;
            batches.push(vec![record(number, at, Some(&old), &new)]);
            old = new;
        }
    }
    // Batches of seven records.
    let records: Vec<Json> = batches.into_iter().flatten().collect();
    let batches: Vec<Vec<Json>> = records.chunks(7).map(<[Json]>::to_vec).collect();
    let (ours, theirs, dead) = counted("same", &[WindowKind::Hourly, WindowKind::Daily], &batches).await;
    assert_eq!(dead, Vec::<String>::new());
    let without_events = |snapshots: Snapshots| -> Snapshots {
        let each = snapshots.into_iter().map(|(place, mut counters)| {
            counters.remove("total_events");
            (place, counters)
        });
        each.collect()
    };
    assert_eq!(ours.len(), buckets * (8 + 1));
    assert_eq!(without_events(ours), without_events(theirs));
}

/// One difference on purpose.
struct Difference {
    /// As in the first column of the page.
    what: &'static str,
    windows: &'static [WindowKind],
    batches: Vec<Vec<Json>>,
    ours: Snapshots,
    theirs: Snapshots,
}

/// What the first record says in an hour of its own.
const AT_TEN: &str = "hourly 2026-01-31T10:00:00Z user-1 gpt-4";

#[allow(clippy::too_many_lines, reason = "it is a table")]
fn differences() -> Vec<Difference> {
    use WindowKind::{Daily, Hourly};
    let ten = MIDNIGHT + 10 * HOUR;
    let rpm =
        |refilled_at, events, consumed| image("user-1", "gpt-4", refilled_at, events, &[("rpm", consumed)]);
    let (none, five) = (rpm(ten, 0, 0), rpm(ten, 1, 5_000));
    let both = |rpm, tpm| image("user-1", "gpt-4", ten, 1, &[("rpm", rpm), ("tpm", tpm)]);
    vec![
        Difference {
            what: "the acquire that creates a bucket",
            windows: &[Hourly],
            batches: vec![vec![record(1, ten, None, &five)]],
            ours: expected(&[(AT_TEN, &[("rpm", 5), ("total_events", 1)])]),
            theirs: expected(&[]),
        },
        Difference {
            what: "a batch that is delivered again",
            windows: &[Hourly],
            batches: vec![vec![record(1, ten, Some(&none), &five)]; 2],
            ours: expected(&[(AT_TEN, &[("rpm", 5), ("total_events", 1)])]),
            theirs: expected(&[(AT_TEN, &[("rpm", 10), ("total_events", 2)])]),
        },
        Difference {
            what: "the day and its first hour",
            windows: &[Hourly, Daily],
            batches: vec![vec![
                record(
                    1,
                    MIDNIGHT + 60,
                    Some(&rpm(MIDNIGHT, 0, 0)),
                    &rpm(MIDNIGHT + 60, 1, 5_000),
                ),
                record(
                    2,
                    MIDNIGHT + HOUR + 60,
                    Some(&rpm(MIDNIGHT + 60, 1, 5_000)),
                    &rpm(MIDNIGHT + HOUR + 60, 2, 12_000),
                ),
            ]],
            ours: expected(&[
                (
                    "hourly 2026-01-31T00:00:00Z user-1 gpt-4",
                    &[("rpm", 5), ("total_events", 1)],
                ),
                (
                    "hourly 2026-01-31T01:00:00Z user-1 gpt-4",
                    &[("rpm", 7), ("total_events", 1)],
                ),
                (
                    "daily 2026-01-31T00:00:00Z user-1 gpt-4",
                    &[("rpm", 12), ("total_events", 2)],
                ),
            ]),
            theirs: expected(&[
                (
                    "hourly 2026-01-31T00:00:00Z user-1 gpt-4",
                    &[("rpm", 17), ("total_events", 3)],
                ),
                (
                    "hourly 2026-01-31T01:00:00Z user-1 gpt-4",
                    &[("rpm", 7), ("total_events", 1)],
                ),
            ]),
        },
        Difference {
            what: "the window of a change",
            windows: &[Hourly],
            batches: vec![vec![record(1, ten + 2 * HOUR, Some(&none), &five)]],
            ours: expected(&[(
                "hourly 2026-01-31T12:00:00Z user-1 gpt-4",
                &[("rpm", 5), ("total_events", 1)],
            )]),
            theirs: expected(&[(AT_TEN, &[("rpm", 5), ("total_events", 1)])]),
        },
        Difference {
            what: "parts of tokens",
            windows: &[Hourly],
            batches: vec![vec![
                record(1, ten, Some(&none), &rpm(ten, 1, 1_500)),
                record(2, ten, Some(&rpm(ten, 1, 1_500)), &rpm(ten, 2, 2_000)),
            ]],
            ours: expected(&[]),
            theirs: expected(&[(AT_TEN, &[("rpm", 1), ("total_events", 2)])]),
        },
        Difference {
            what: "a limit that is new on the bucket",
            windows: &[Hourly],
            batches: vec![vec![record(1, ten, Some(&none), &both(1_000, 9_000))]],
            ours: expected(&[(AT_TEN, &[("rpm", 1), ("tpm", 9), ("total_events", 1)])]),
            theirs: expected(&[(AT_TEN, &[("rpm", 1), ("total_events", 1)])]),
        },
        Difference {
            what: "the number of events",
            windows: &[Hourly],
            batches: vec![vec![record(
                1,
                ten,
                Some(&image("user-1", "gpt-4", ten, 0, &[("rpm", 0), ("tpm", 0)])),
                &both(1_000, 9_000),
            )]],
            ours: expected(&[(AT_TEN, &[("rpm", 1), ("tpm", 9), ("total_events", 1)])]),
            theirs: expected(&[(AT_TEN, &[("rpm", 1), ("tpm", 9), ("total_events", 2)])]),
        },
    ]
}

#[tokio::test]
async fn every_difference_is_on_purpose_and_listed() {
    let page = zae_limiter_testing::workspace().join("docs/guide/usage-differences.md");
    let page = std::fs::read_to_string(page).unwrap();
    let listed = page.lines().filter(|line| line.starts_with("| ")).count();
    let differences = differences();
    // The heading is a row as well.
    assert_eq!(listed, differences.len() + 1, "rows of the page");
    for (number, difference) in differences.into_iter().enumerate() {
        let what = difference.what;
        assert!(
            page.contains(&format!("| {what} |")),
            "the page does not list {what:?}"
        );
        let name = format!("difference-{number}");
        let (ours, theirs, dead) = counted(&name, difference.windows, &difference.batches).await;
        let unreadable = if what == "parts of tokens" { 2 } else { 0 };
        assert_eq!(dead.len(), unreadable, "{what}: {dead:?}");
        assert_eq!(ours, difference.ours, "{what}: ours");
        assert_eq!(theirs, difference.theirs, "{what}: the peer's");
    }
}

/// The same numbers in every run.
struct Steps(u64);

impl Steps {
    fn up_to(&mut self, bound: i64) -> i64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        i64::try_from(self.0 >> 33).unwrap() % bound
    }
}

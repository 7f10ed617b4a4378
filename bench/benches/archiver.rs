//! How much the archiver takes: records a second, memory, start, and puts.
//!
//! Runs the packed binary as Lambda does, against S3 in this process, and prints figures. Times are of this machine; counts
//! are not, and it ends with a failure if they, or the memory, are more than they may be.

#![allow(clippy::unwrap_used, missing_docs)]

use std::time::Duration;

use zae_limiter_schema::{Timestamp, Ulid};
use zae_limiter_testing::stream::{Chaos, Cloud, ItemChange, Lambda, Measured, Stream, packed, starts};

const VARIABLES: [(&str, &str); 1] = [("ARCHIVE_BUCKET_NAME", "archive")];
const EVENTS: u32 = 1_000;
const ROUNDS: u32 = 10;

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    println!("archiver ({})", packed("archiver").display());
    runtime.block_on(throughput());
    runtime.block_on(start());
}

/// Somebody sets four limits.
fn image(id: Ulid, at: Timestamp) -> String {
    let limit = |name: &str| {
        format!(
            concat!(
                r#"{{"M":{{"name":{{"S":"{0}"}},"capacity":{{"N":"100000"}},"burst":{{"N":"200000"}},"#,
                r#""refill_amount":{{"N":"100000"}},"refill_period_seconds":{{"N":"60"}}}}}}"#
            ),
            name
        )
    };
    let limits = [
        "requests-per-minute",
        "tokens-per-minute",
        "tokens-per-day",
        "concurrency",
    ]
    .map(limit)
    .join(",");
    format!(
        concat!(
            r##"{{"PK":{{"S":"AUDIT#user"}},"SK":{{"S":"#AUDIT#{0}"}},"event_id":{{"S":"{0}"}},"timestamp":{{"S":"{1}"}},"##,
            r#""action":{{"S":"limits_set"}},"entity_id":{{"S":"user"}},"resource":{{"S":"gpt-4"}},"#,
            r#""principal":{{"S":"arn:aws:iam::123456789012:user/ops"}},"ttl":{{"N":"1999999999"}},"#,
            r#""details":{{"M":{{"limits":{{"L":[{2}]}}}}}}}}"#
        ),
        id, at, limits
    )
}

/// The event of 1,000 changes.
fn event(round: u32) -> String {
    let at = Timestamp::from_seconds(1_769_889_600);
    let mut stream = Stream::new(at, 10_u128.pow(21));
    for number in 0..EVENTS {
        let id = Ulid::new(at, u128::from(round * EVENTS + number));
        let (sk, new) = (format!("#AUDIT#{id}"), image(id, at));
        stream.push(&ItemChange {
            kind: "INSERT",
            pk: "AUDIT#user",
            sk: &sk,
            at: at.seconds(),
            old: None,
            new: Some(&new),
        });
    }
    stream.event()
}

async fn throughput() {
    let cloud = Cloud::start(Chaos::new(0, 0));
    let lambda = Lambda::new(packed("archiver"), &cloud, &VARIABLES).with_time_limit(Duration::from_mins(1));
    let events: Vec<_> = (0..ROUNDS).map(event).collect();
    let measured = Measured::of(&lambda, &cloud, EVENTS, &events).await;
    println!(
        "  a batch of 1,000 events, {} KB: {measured}",
        events[0].len() / 1_000
    );
    let objects = cloud.objects();
    let bytes: usize = objects.values().map(|object| object.body.len()).sum();
    println!(
        "    {} objects of {} bytes; a put for each event",
        objects.len(),
        bytes / objects.len()
    );
    assert_eq!(
        (objects.len(), measured.calls),
        ((ROUNDS * EVENTS) as usize, EVENTS as usize),
        "one object and one put for each event"
    );
}

async fn start() {
    let cloud = Cloud::start(Chaos::new(0, 0));
    let lambda = Lambda::new(packed("archiver"), &cloud, &VARIABLES);
    let starts = starts(&lambda, 10).await;
    println!(
        "  start until the first poll: median {:?}, slowest {:?} of {}",
        starts[5],
        starts[9],
        starts.len()
    );
}

//! How much the aggregator takes: records a second, memory, start, and writes.
//!
//! Runs the binary as Lambda does, against DynamoDB in this process, and prints figures. Times are of this machine and of
//! this build; counts and ratios are not.

#![allow(clippy::unwrap_used, missing_docs)]

use std::time::{Duration, Instant};

use zae_limiter_schema::Timestamp;
use zae_limiter_stream_driver::{Change, Chaos, Cloud, Database, Function as _, Lambda, Stream};

/// The binary of this build, or another, such as the one that `make functions` packs.
fn binary() -> String {
    std::env::var("AGGREGATOR_BINARY")
        .unwrap_or_else(|_| env!("CARGO_BIN_EXE_zae-limiter-aggregator").to_owned())
}

const VARIABLES: [(&str, &str); 3] = [
    ("TABLE_NAME", Database::TABLE),
    ("SNAPSHOT_WINDOWS", "hourly,daily,monthly"),
    ("SNAPSHOT_TTL_DAYS", "90"),
];

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    println!("aggregator");
    for buckets in [1, 50, 500] {
        runtime.block_on(throughput(buckets));
    }
    runtime.block_on(start());
}

/// A full image of a bucket with four limits and some slots, about as large as they get.
fn image(consumed: u64) -> String {
    let limit = |name: &str| {
        format!(
            concat!(
                r#""b_{0}_tk":{{"N":"{1}"}},"b_{0}_cp":{{"N":"100000000"}},"b_{0}_bx":{{"N":"200000000"}},"#,
                r#""b_{0}_ra":{{"N":"100000000"}},"b_{0}_rp":{{"N":"60000"}},"b_{0}_tc":{{"N":"{2}"}}"#
            ),
            name,
            200_000_000 - consumed * 1_000,
            consumed * 1_000
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
            r#"{{"PK":{{"S":"ENTITY#user"}},"SK":{{"S":"{0}"}},"entity_id":{{"S":"user"}},"resource":{{"S":"r"}},"#,
            r#""rf":{{"N":"1769889600000"}},"cascade":{{"BOOL":false}},"cf":{{"S":"3f9a77b0c1d2e3f4"}},"#,
            r#""ev":{{"N":"{2}"}},"o_ab12":{{"N":"1769889600000"}},"o_cd34":{{"N":"{2}"}},{1}}}"#
        ),
        "#BUCKET#r", limits, consumed
    )
}

/// The event of 1,000 acquires, each a write of its own.
fn event(buckets: u64, round: u64) -> String {
    let mut stream = Stream::new(Timestamp::from_seconds(1_769_800_000), 10_u128.pow(21));
    for acquire in 0..1_000 {
        let (bucket, before) = (acquire % buckets, acquire / buckets);
        let (old, new) = (image(before), image(before + 1));
        let (pk, at) = (format!("ENTITY#user-{round}-{bucket}"), 1_769_889_600);
        let old = (before > 0).then_some(old.as_str());
        stream.push(&Change {
            kind: "MODIFY",
            pk: &pk,
            sk: "#BUCKET#r",
            at,
            old,
            new: Some(&new),
        });
    }
    stream.event()
}

const ROUNDS: u32 = 10;

async fn throughput(buckets: u64) {
    let cloud = Cloud::start(Chaos::new(0, 0));
    let lambda = Lambda::new(binary(), &cloud, &VARIABLES).with_time_limit(Duration::from_mins(1));
    lambda.invoke(r#"{"Records":[]}"#).await.unwrap();
    let events: Vec<_> = (0..ROUNDS).map(|round| event(buckets, round.into())).collect();
    let started = Instant::now();
    for event in &events {
        assert_eq!(lambda.invoke(event).await.unwrap(), r#"{"batchItemFailures":[]}"#);
    }
    let rate = f64::from(ROUNDS * 1_000) / started.elapsed().as_secs_f64();
    let writes = cloud.calls() / usize::try_from(ROUNDS).unwrap();
    println!(
        "  1,000 acquires on {buckets:>3} buckets, 4 limits, 3 windows, {} KB: {rate:>7.0} records/s, peak {} MB, \
         {writes} writes ({} per window; one per limit, window and record would be {})",
        events[0].len() / 1_000,
        lambda.peak_memory() / 1_000_000,
        writes / 3,
        1_000 * 4 * 3,
    );
    assert!(
        lambda.peak_memory() < 64_000_000,
        "a batch of 1,000 fits in 64 MB"
    );
}

async fn start() {
    let cloud = Cloud::start(Chaos::new(0, 0));
    let lambda = Lambda::new(binary(), &cloud, &VARIABLES);
    for _ in 0..10 {
        lambda.invoke(r#"{"Records":[]}"#).await.unwrap();
        lambda.recycle();
    }
    let mut starts = lambda.starts();
    starts.sort();
    println!(
        "  start until the first poll: median {:?}, slowest {:?} of {}",
        starts[5],
        starts[9],
        starts.len()
    );
}

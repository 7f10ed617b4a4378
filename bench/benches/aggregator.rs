//! How much the aggregator takes: records a second, memory, start, and writes.
//!
//! Runs the packed binary as Lambda does, against DynamoDB in this process, and prints figures. Times are of this machine;
//! counts are not, and it ends with a failure if they, or the memory, are more than they may be.

#![allow(clippy::unwrap_used, missing_docs)]

use std::time::Duration;

use zae_limiter_bench::Disturbance;
use zae_limiter_schema::Timestamp;
use zae_limiter_testing::stream::{
    Chaos, Cloud, Database, ItemChange, Lambda, Measured, Stream, packed, starts,
};

const VARIABLES: [(&str, &str); 3] = [
    ("TABLE_NAME", Database::TABLE),
    ("SNAPSHOT_WINDOWS", "hourly,daily,monthly"),
    ("SNAPSHOT_TTL_DAYS", "90"),
];
const WINDOWS: usize = 3;
const LIMITS: usize = 4;
const ACQUIRES: u32 = 1_000;
const ROUNDS: u64 = 10;

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    println!("aggregator ({})", packed("aggregator").display());
    let mut disturbance = Disturbance::default();
    for buckets in [1, 50, 500] {
        let events: Vec<_> = (0..ROUNDS).map(|round| event(buckets as u64, round)).collect();
        let measured = disturbance.undisturbed(|| runtime.block_on(throughput(&events)));
        report(buckets, events[0].len(), &measured);
    }
    println!(
        "  disturbed rounds: {} repeated, {} count",
        disturbance.repeated, disturbance.kept
    );
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
    for acquire in 0..u64::from(ACQUIRES) {
        let (bucket, before) = (acquire % buckets, acquire / buckets);
        let (old, new) = (image(before), image(before + 1));
        let (pk, at) = (format!("ENTITY#user-{round}-{bucket}"), 1_769_889_600);
        let old = (before > 0).then_some(old.as_str());
        stream.push(&ItemChange {
            kind: if old.is_some() { "MODIFY" } else { "INSERT" },
            pk: &pk,
            sk: "#BUCKET#r",
            at,
            old,
            new: Some(&new),
        });
    }
    stream.event()
}

async fn throughput(events: &[String]) -> Measured {
    let cloud = Cloud::start(Chaos::new(0, 0));
    let lambda =
        Lambda::new(packed("aggregator"), &cloud, &VARIABLES).with_time_limit(Duration::from_mins(1));
    Measured::of(&lambda, &cloud, ACQUIRES, events).await
}

fn report(buckets: usize, bytes: usize, measured: &Measured) {
    println!(
        "  a batch of 1,000 acquires, buckets: {buckets}, {LIMITS} limits, {WINDOWS} windows, {} KB: {measured}",
        bytes / 1_000,
    );
    println!(
        "    {} writes: {} for each bucket and window; one per limit, window and record would be {}",
        measured.calls,
        measured.calls / (buckets * WINDOWS),
        LIMITS * WINDOWS * ACQUIRES as usize,
    );
    assert!(
        measured.calls <= buckets * WINDOWS,
        "{} writes for {buckets} buckets in {WINDOWS} windows: there may be one for each",
        measured.calls
    );
}

async fn start() {
    let cloud = Cloud::start(Chaos::new(0, 0));
    let lambda = Lambda::new(packed("aggregator"), &cloud, &VARIABLES);
    let starts = starts(&lambda, 10).await;
    println!(
        "  start until the first poll: median {:?}, slowest {:?} of {}",
        starts[5],
        starts[9],
        starts.len()
    );
}

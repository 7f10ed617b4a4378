//! The aggregator's binary over Lambda's runtime API, in processes that may end at any time.

use std::collections::BTreeSet;

use serde_json::Value;
use zae_limiter_testing::stream::{Chaos, Cloud, Database, Lambda, Ledger, Mapping, Options, bucket_changes};

const BINARY: &str = env!("CARGO_BIN_EXE_zae-limiter-aggregator");
const VARIABLES: [(&str, &str); 3] = [
    ("TABLE_NAME", Database::TABLE),
    ("SNAPSHOT_WINDOWS", "hourly,daily,monthly"),
    ("SNAPSHOT_TTL_DAYS", "90"),
];

#[tokio::test]
async fn totals_equal_consumption_through_crashes_outages_and_lost_responses() {
    // The library is put through 100,000 changes in any case, on a clock that does not have to be waited for.
    let (changes, buckets, batch_size) = match std::env::var("ZAE_FLEET").as_deref() {
        Ok("long") => (100_000, 500, 1_000),
        _ => (4_000, 60, 300),
    };
    let workload = bucket_changes(3, changes, buckets);
    let cloud = Cloud::start(Chaos::new(3, 40));
    let lambda = Lambda::new(BINARY, &cloud, &VARIABLES);
    for stream in &workload.streams {
        let options = Options {
            rewinds: 10,
            replays: 1,
            batch_size,
            ..Options::aggregator()
        };
        let mut mapping = Mapping::new(stream, options, 3);
        // How the weather turns out depends on the timing of calls: what the test is about is arranged.
        cloud.begin_crash(5);
        cloud.begin_outage(3);
        mapping.run(&lambda).await;
        assert_eq!(mapping.discarded, []);
        lambda.recycle();
    }
    cloud.settle();
    let found = Ledger::of(cloud.database().snapshots());
    assert_eq!(workload.ledger.differences(&found), [] as [String; 0]);
    let letters: BTreeSet<_> = cloud.letters().into_iter().collect();
    assert_eq!(letters.len(), workload.malformed);
    println!(
        "{changes} changes, {} calls, {} faults, {} processes",
        cloud.calls(),
        cloud.faults(),
        lambda.starts().len()
    );
    let (faults, starts, streams) = (cloud.faults(), lambda.starts().len(), workload.streams.len());
    assert!(faults > 50, "{faults} faults");
    assert!(starts >= 2 * streams, "{starts} processes for {streams} streams");
}

#[tokio::test]
async fn an_invocation_prints_json_lines_with_its_request_id_and_metrics_and_no_debug() {
    let workload = bucket_changes(5, 200, 10);
    let cloud = Cloud::start(Chaos::new(5, 0));
    let lambda = Lambda::new(BINARY, &cloud, &VARIABLES);
    Mapping::new(&workload.streams[0], Options::aggregator(), 5)
        .run(&lambda)
        .await;
    lambda.recycle();
    let lines: Vec<Value> = lambda
        .log()
        .iter()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let last = lines
        .iter()
        .find(|line| line["message"] == "batch processed")
        .unwrap();
    assert_eq!(last["requestId"], "request-1");
    assert_eq!(last["FunctionName"], "function-under-test");
    assert_eq!(last["_aws"]["CloudWatchMetrics"][0]["Namespace"], "ZaeLimiter");
    assert!(last["Deltas"].as_u64().unwrap() > 0 && last["Lag"].as_u64().is_some());
    assert!(lines.iter().all(|line| line["level"] != "DEBUG"));
}

#[tokio::test]
async fn a_wrong_setting_ends_the_process_with_a_line_that_names_it() {
    let cloud = Cloud::start(Chaos::new(5, 0));
    let lambda = Lambda::new(
        BINARY,
        &cloud,
        &[("TABLE_NAME", "t"), ("SNAPSHOT_WINDOWS", "weekly")],
    );
    assert!(!lambda.ends_well());
    let log = lambda.log();
    assert!(log[0].contains(r#"SNAPSHOT_WINDOWS is \"weekly\""#), "{log:?}");
}

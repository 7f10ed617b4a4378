//! The aggregator's binary over Lambda's runtime API, in processes that may end at any time.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use zae_limiter_schema::Timestamp;
use zae_limiter_testing::stream::{
    Chaos, Cloud, Database, Lambda, Ledger, Mapping, Options, QuotaCrossing, bucket_changes,
};

const BINARY: &str = env!("CARGO_BIN_EXE_zae-limiter-aggregator");
const VARIABLES: [(&str, &str); 4] = [
    ("EVENT_BUS", "budgets"),
    ("TABLE_NAME", Database::TABLE),
    ("SNAPSHOT_WINDOWS", "hourly,daily,monthly"),
    ("SNAPSHOT_TTL_DAYS", "90"),
];

/// What events say that was crossed. All copies of an event are the same.
fn crossings(entries: &[Value]) -> BTreeSet<QuotaCrossing> {
    let (mut crossings, mut by_id) = (BTreeSet::new(), BTreeMap::new());
    for entry in entries {
        assert_eq!(
            (&entry["Source"], &entry["DetailType"], &entry["EventBusName"]),
            (
                &json!("zae-limiter"),
                &json!("Quota threshold crossed"),
                &json!("budgets")
            )
        );
        assert_eq!(
            entry["Resources"],
            json!(["arn:aws:dynamodb:us-east-1:123456789012:table/limiter"])
        );
        let detail: Value = serde_json::from_str(entry["Detail"].as_str().unwrap()).unwrap();
        let text = |name: &str| detail[name].as_str().unwrap().to_owned();
        let number = |name: &str| detail[name].as_i64().unwrap();
        let first = by_id.entry(text("id")).or_insert_with(|| detail.clone());
        assert_eq!(*first, detail);
        crossings.insert(QuotaCrossing {
            entity: text("entity"),
            resource: text("resource"),
            percent: number("threshold"),
            amount: number("cap"),
            period_end: Timestamp::parse(&text("period_end")).unwrap().millis(),
        });
    }
    assert_eq!(crossings.len(), by_id.len(), "each crossing has one ID");
    crossings
}

#[tokio::test]
async fn totals_equal_consumption_and_every_crossing_is_sent_through_crashes_outages_and_lost_responses() {
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
    assert_eq!(crossings(&cloud.events()), workload.crossings);
    println!(
        "{changes} changes, {} calls, {} faults, {} processes",
        cloud.calls(),
        cloud.faults(),
        lambda.starts().len()
    );
    assert!(cloud.refused_events() > 5, "parts of calls were refused");
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

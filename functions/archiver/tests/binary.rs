//! The archiver's binary as Lambda starts it.

use serde_json::Value;
use zae_limiter_testing::stream::{Chaos, Cloud, Lambda, Mapping, Options, audit_trail};

const BINARY: &str = env!("CARGO_BIN_EXE_zae-limiter-archiver");

#[tokio::test]
async fn an_invocation_prints_json_lines_with_its_request_id_and_metrics_and_no_debug() {
    let trail = audit_trail(5, 150);
    let cloud = Cloud::start(Chaos::new(5, 0));
    let lambda = Lambda::new(BINARY, &cloud, &[("ARCHIVE_BUCKET_NAME", "archive")]);
    Mapping::new(&trail.stream, Options::archiver(), 5)
        .run(&lambda)
        .await;
    lambda.recycle();
    let lines: Vec<Value> = lambda
        .log()
        .iter()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(lines.iter().all(|line| line["level"] != "DEBUG"));
    let batches = || lines.iter().filter(|line| line["message"] == "batch processed");
    let first = batches().next().unwrap();
    assert_eq!(first["requestId"], "request-1");
    assert_eq!(first["_aws"]["CloudWatchMetrics"][0]["Namespace"], "ZaeLimiter");
    assert!(first["Lag"].as_u64().is_some() && first["Failures"].as_u64().is_some());
    let sum = |metric: &str| batches().map(|line| line[metric].as_u64().unwrap()).sum::<u64>();
    // A batch that a slow machine delivers twice is counted twice.
    assert!(sum("Objects") >= trail.events.len() as u64);
    assert!(sum("DeadLetters") >= trail.malformed as u64);
}

#[tokio::test]
async fn a_missing_setting_ends_the_process_with_a_line_that_names_it() {
    let cloud = Cloud::start(Chaos::new(5, 0));
    let lambda = Lambda::new(BINARY, &cloud, &[]);
    assert!(!lambda.ends_well());
    let log = lambda.log();
    assert!(log[0].contains("ARCHIVE_BUCKET_NAME is not set"), "{log:?}");
}

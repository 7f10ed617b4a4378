//! The command with the feature `bundled-functions`.

use std::path::{Path, PathBuf};

use aws_config::SdkConfig;
use aws_sdk_eventbridge::types::Target;
use serde_json::{Value, json};

use crate::local::{Cloud, ministack};
use crate::terraform_table::aws;
use crate::tool::{Bench, RunResult, command, result};

/// An archive that was there when the command was built.
fn aggregator() -> Vec<u8> {
    let project = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/functions");
    let directory = std::env::var_os("ZAE_LIMITER_FUNCTIONS").map_or_else(project, PathBuf::from);
    std::fs::read(directory.join(ARCHITECTURE).join("aggregator.zip")).unwrap()
}

/// The architecture that `make functions` builds for on this machine.
const ARCHITECTURE: &str = if cfg!(target_arch = "aarch64") {
    "arm64"
} else {
    "x86_64"
};

fn in_an_empty_directory(bench: &Bench, arguments: &[&str]) -> RunResult {
    let mut command = command();
    command.current_dir(bench.path("")).args(arguments);
    result(command)
}

#[test]
fn a_bundled_package_can_be_exported() {
    let bench = Bench::new();
    let export = ["lambda-export", "--architecture", ARCHITECTURE];
    let to_file = [&export[..], &["--output", "lambda.zip"]].concat();
    let exported = in_an_empty_directory(&bench, &to_file).expect_exit(0);
    assert!(exported.stdout.contains("wrote lambda.zip"), "{exported:?}");
    assert!(std::fs::read(bench.path("lambda.zip")).unwrap() == aggregator());
    let info = ["--function", "archiver", "--info", "--output", "json"];
    let info = [&export[..], &info].concat();
    let info = in_an_empty_directory(&bench, &info).expect_exit(0).json();
    assert_eq!(
        (&info["source"], &info["written"]),
        (&json!("bundled"), &json!(null))
    );
}

#[test]
fn a_code_directory_takes_precedence_over_the_bundled_packages() {
    let bench = Bench::new();
    bench.write("aggregator.zip", "PK\u{3}\u{4}mine");
    let arguments = [
        "lambda-export",
        "--code-directory",
        ".",
        "--info",
        "--output",
        "json",
    ];
    let info = in_an_empty_directory(&bench, &arguments).expect_exit(0).json();
    assert_eq!(info["bytes"], 8);
    let missing = ["lambda-export", "--function", "archiver", "--code-directory", "."];
    in_an_empty_directory(&bench, &missing).expect_exit(2);
}

#[test]
fn a_stack_with_functions_is_deployed_from_anywhere() {
    let cloud = Cloud::new();
    cloud.up().expect_exit(0);
    let architecture = format!("lambda_architecture={ARCHITECTURE}");
    let mut deploy = cloud.on(&["deploy", "-n", "demo", "--yes", "--output", "json"]);
    deploy.args(["--set", &architecture]);
    deploy.current_dir(cloud.bench.path(""));
    let deployed = result(deploy).expect_exit(0);
    let events: Vec<serde_json::Value> = deployed
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let uploaded = events.iter().filter(|event| event["event"] == "uploaded").count();
    assert_eq!(uploaded, 2, "{deployed:?}");
    assert_eq!(
        events.last().unwrap()["outputs"]["AggregatorFunctionName"],
        "demo-aggregator"
    );
}

#[test]
fn an_upgrade_of_the_functions_alone_is_refused_if_more_would_change() {
    let cloud = Cloud::new();
    let ministack = ministack();
    let mut up = cloud.command(&["local", "up", "--name", "demo", "--port", &cloud.port]);
    up.arg("--ministack")
        .arg(ministack)
        .current_dir(cloud.bench.path(""));
    result(up).expect_exit(0);
    let upgrade = |option: &str, value: &str| {
        let arguments = ["upgrade", "-n", "demo", "--yes", "--lambda-only", option, value];
        let mut upgrade = cloud.on(&arguments);
        upgrade.current_dir(cloud.bench.path(""));
        result(upgrade)
    };
    let more = upgrade("--log-retention-days", "7").expect_exit(2);
    assert!(more.stderr.contains("AggregatorLogGroup"), "{more:?}");
    let alone = upgrade("--lambda-memory", "512").expect_exit(0);
    assert!(alone.stdout.contains("stack demo was updated"), "{alone:?}");
}

/// A queue that a rule on the default bus fills with the events of budgets.
async fn queue_of_budgets(aws: &SdkConfig) -> (aws_sdk_sqs::Client, String) {
    let (sqs, events) = (
        aws_sdk_sqs::Client::new(aws),
        aws_sdk_eventbridge::Client::new(aws),
    );
    let created = sqs.create_queue().queue_name("budgets").send().await.unwrap();
    let pattern = json!({
        "source": ["zae-limiter"], "detail-type": ["Quota threshold crossed"], "detail": {"table": ["demo"]},
    });
    let rule = events
        .put_rule()
        .name("budgets")
        .event_pattern(pattern.to_string());
    rule.send().await.unwrap();
    let queue = Target::builder()
        .id("queue")
        .arn("arn:aws:sqs:us-east-1:000000000000:budgets")
        .build()
        .unwrap();
    let targets = events.put_targets().rule("budgets").targets(queue);
    assert_eq!(targets.send().await.unwrap().failed_entry_count, 0);
    (sqs, created.queue_url.unwrap())
}

/// The function in its process reads the table's real stream and sends to a real bus.
#[test]
fn a_budget_that_is_used_up_reaches_a_queue_through_a_rule() {
    let cloud = Cloud::new();
    cloud.up().expect_exit(0);
    let architecture = format!("lambda_architecture={ARCHITECTURE}");
    let options = ["--set", &architecture, "--set", "event_bus=default"];
    let mut deploy = cloud.on(&[&["deploy", "-n", "demo", "--yes"][..], &options].concat());
    deploy.current_dir(cloud.bench.path(""));
    result(deploy).expect_exit(0);
    let on = |arguments: &[&str]| result(cloud.on(&[arguments, &["-n", "demo"]].concat())).expect_exit(0);

    let runtime = tokio::runtime::Runtime::new().unwrap();
    let aws = aws(&cloud);
    let (sqs, url) = runtime.block_on(queue_of_budgets(&aws));
    let limit = "spend:10 per year alert at 80% 100%";
    on(&["resource", "set-defaults", "gpt-4", "-l", limit]);
    on(&["acquire", "user-1", "gpt-4", "-c", "spend:7"]);
    on(&["acquire", "user-1", "gpt-4", "-c", "spend:1"]);
    on(&["acquire", "user-1", "gpt-4", "-c", "spend:2"]);

    let mut found = Vec::new();
    for _ in 0..60 {
        let received = sqs.receive_message().queue_url(&url).wait_time_seconds(1);
        let received = runtime.block_on(received.send()).unwrap();
        let bodies = received.messages.unwrap_or_default().into_iter();
        found.extend(bodies.map(|message| serde_json::from_str::<Value>(&message.body.unwrap()).unwrap()));
        if found.iter().any(|event| event["detail"]["threshold"] == 100) {
            break;
        }
    }
    let thresholds: Vec<_> = found
        .iter()
        .map(|event| event["detail"]["threshold"].as_u64())
        .collect();
    assert!(
        thresholds.contains(&Some(80)) && thresholds.contains(&Some(100)),
        "{found:?}"
    );
    for event in &found {
        let detail = &event["detail"];
        assert_eq!(
            (
                &detail["entity"],
                &detail["resource"],
                &detail["limit"],
                &detail["cap"]
            ),
            (&json!("user-1"), &json!("gpt-4"), &json!("spend"), &json!(10)),
            "{event}"
        );
        let used = detail["used"].as_u64().unwrap();
        assert_eq!(used * 10, detail["threshold"].as_u64().unwrap(), "{event}");
        assert_eq!(detail["id"].as_str().unwrap().len(), 32);
        assert_eq!(
            event["resources"][0].as_str().unwrap().rsplit('/').next(),
            Some("demo")
        );
    }
}

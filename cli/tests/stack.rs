//! The stack's whole life on a local cloud, and the data commands over a real connection.

use serde_json::{Value, json};

use crate::local::Cloud;
use crate::tool::{RunResult, result};

/// Without functions, whose archives need a build of their own.
const OPTIONS: [&str; 2] = ["--no-aggregator", "--no-audit-archival"];

fn on(cloud: &Cloud, arguments: &[&str]) -> RunResult {
    result(cloud.on(arguments))
}

/// A command on the stack `demo` with the options of these tests.
fn demo(cloud: &Cloud, command: &str, more: &[&str]) -> RunResult {
    on(cloud, &[&[command, "-n", "demo"], &OPTIONS[..], more].concat())
}

/// One cloud for all of it: each step is the ground of the next.
#[test]
fn a_stack_is_planned_deployed_used_watched_and_deleted() {
    let cloud = Cloud::new();
    cloud.up().expect_exit(0);
    what_is_not_there_is_told(&cloud);
    a_plan_is_stored_and_deployed_as_it_is(&cloud);
    a_change_is_told_in_json_lines(&cloud);
    a_mode_says_what_a_deployment_may_do(&cloud);
    the_stack_tells_how_it_is(&cloud);
    a_stack_with_termination_protection_is_not_deleted(&cloud);
    a_foreign_reader_of_the_stream_fails_the_check(&cloud);
    data_commands_work_over_a_connection(&cloud);
    an_upgrade_starts_from_what_was_deployed(&cloud);
    it_is_deleted_with_its_data_if_asked(&cloud);
    a_leftover_table_is_purged_only_after_asking(&cloud);
    nobody_has_to_wait(&cloud);
}

fn what_is_not_there_is_told(cloud: &Cloud) {
    let none = on(cloud, &["list", "--output", "json"]).expect_exit(0).json();
    let endpoint = format!("http://127.0.0.1:{}", cloud.port);
    assert_eq!(
        none,
        json!({ "account": "000000000000", "region": "us-east-1", "endpoint": endpoint, "stacks": [], "count": 0 })
    );
    let place = format!("account 000000000000, region us-east-1, endpoint {endpoint}");
    let none = on(cloud, &["list"]).expect_exit(0).stdout;
    assert_eq!(none, format!("0 stacks in {place}\n"));
    let missing = on(cloud, &["status", "-n", "demo"]).expect_exit(1);
    assert!(
        missing
            .stdout
            .contains(&format!("there is no stack demo in {place}")),
        "{missing:?}"
    );
    for command in [&["drift"][..], &["upgrade", "--yes"]] {
        let missing = on(cloud, &[command, &["-n", "demo", "--output", "json"]].concat()).expect_exit(1);
        let error = missing.error();
        assert_eq!(error["error"], "stack_missing");
        let message = error["message"].as_str().unwrap();
        assert!(
            message.contains(&format!("stack demo does not exist in {place}")),
            "{message}"
        );
    }
    // Every error about something that may be in another account or region.
    for command in [
        &["resource", "list"][..],
        &["limits", "plan", "-"],
        &["outputs"],
        &["usage", "redrive"],
        &["audit", "archive", "--since", "2026-01-01"],
    ] {
        let missing = on(cloud, &[command, &["-n", "demo"]].concat()).expect_exit(1);
        assert!(missing.stderr.contains(&place), "{command:?}: {missing:?}");
    }
}

fn a_plan_is_stored_and_deployed_as_it_is(cloud: &Cloud) {
    let plan = demo(cloud, "plan", &["--detailed-exitcode"]).expect_exit(2);
    assert!(
        plan.stdout
            .contains("demo (account 000000000000, region us-east-1): create the stack")
            && plan.stdout.contains("+ RateLimitsTable")
            && plan.stdout.contains("BillingMode: \"PAY_PER_REQUEST\""),
        "{plan:?}"
    );
    assert!(
        plan.stdout.ends_with("\noutputs: 15 to add\n"),
        "outputs are counted: {plan:?}"
    );
    let offline = demo(cloud, "plan", &["--offline"]).expect_exit(0);
    assert_eq!(
        offline.stdout, plan.stdout,
        "a new stack is the same by templates"
    );
    let file = cloud.bench.path("demo.plan");
    let file = file.to_str().unwrap();
    let json = demo(cloud, "plan", &["--json", "--out", file])
        .expect_exit(0)
        .json();
    assert_eq!(json["action"], "create");

    let refused = demo(cloud, "deploy", &[]).expect_exit(2);
    assert!(refused.stderr.contains("pass --yes"), "{refused:?}");
    let other = on(cloud, &["deploy", "-n", "other", "--plan", file, "--yes"]).expect_exit(2);
    assert!(
        other
            .stderr
            .contains("the plan is for stack demo, and --name is other"),
        "{other:?}"
    );
    // The plan has the name.
    let deployed = on(cloud, &["deploy", "--plan", file, "--yes"]).expect_exit(0);
    assert!(deployed.stdout.contains("stack demo was created"), "{deployed:?}");
    assert!(deployed.stdout.contains("TableName: demo"), "{deployed:?}");
    assert!(
        deployed.stderr.contains("CREATE_COMPLETE"),
        "timed lines where there is no terminal: {deployed:?}"
    );
    assert!(
        demo(cloud, "plan", &["--detailed-exitcode"])
            .expect_exit(0)
            .stdout
            .contains("no changes")
    );
    for how in [&[][..], &["--offline"]] {
        let tagged = demo(cloud, "plan", &[&["--tag", "team=a"], how].concat()).expect_exit(0);
        assert!(
            tagged.stdout.ends_with("tags:\n  + team: \"a\"\n"),
            "{how:?}: {tagged:?}"
        );
    }
    let obsolete = on(
        cloud,
        &[
            "deploy", "-n", "demo", "--plan", file, "--yes", "--output", "json",
        ],
    )
    .expect_exit(1);
    assert_eq!(obsolete.error()["error"], "plan_obsolete");
}

fn a_change_is_told_in_json_lines(cloud: &Cloud) {
    let lines = demo(
        cloud,
        "deploy",
        &["--set", "pitr_recovery_days=7", "--yes", "--output", "json"],
    )
    .expect_exit(0);
    let events: Vec<Value> = lines
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(events.first().unwrap()["event"], "plan");
    assert!(
        events
            .iter()
            .any(|event| event["event"] == "resource" && event["status"] == "UPDATE_COMPLETE"),
        "{lines:?}"
    );
    assert_eq!(events.last().unwrap()["event"], "done");
    assert_eq!(events.last().unwrap()["change"], "updated");
}

/// The stack has 7 days of recovery. Each mode meets a declaration of 8 days, then the same one.
fn a_mode_says_what_a_deployment_may_do(cloud: &Cloud) {
    let deploy = |mode: &str, days: &str| {
        let days = format!("pitr_recovery_days={days}");
        let more = ["--set", &days, "--mode", mode, "--yes", "--output", "json"];
        demo(cloud, "deploy", &more)
    };
    let second = deploy("auto", "8").expect_exit(1).error();
    let said = second["message"].as_str().unwrap();
    assert_eq!(second["error"], "refused");
    assert!(
        said.contains("pitr_recovery_days is 7, here 8") && said.contains("other options"),
        "{said}"
    );
    let observed = deploy("observe", "8").expect_exit(0).stdout;
    assert!(
        observed.contains(r#""change":"none""#) && observed.contains("is 7, should be 8"),
        "{observed}"
    );
    let exact = deploy("require-exact", "8").expect_exit(1).error();
    assert!(
        exact["message"].as_str().unwrap().contains("is 7, should be 8"),
        "{exact}"
    );
    for mode in ["auto", "observe", "require-exact"] {
        let same = deploy(mode, "7").expect_exit(0).stdout;
        assert!(same.contains(r#""change":"none""#), "{mode}: {same}");
    }
    let plan = demo(
        cloud,
        "plan",
        &["--set", "pitr_recovery_days=7", "--detailed-exitcode"],
    );
    assert!(plan.expect_exit(0).stdout.contains("no changes"));
    let asks = demo(cloud, "deploy", &["--mode", "auto"]).expect_exit(2);
    assert!(asks.stderr.contains("pass --yes"), "{asks:?}");
}

/// Neither functions nor fewer days to be set back to come back by themselves.
fn an_upgrade_starts_from_what_was_deployed(cloud: &Cloud) {
    let same = on(cloud, &["upgrade", "-n", "demo", "--yes"]).expect_exit(0);
    assert!(same.stdout.contains("nothing was changed"), "{same:?}");
    let asks = on(cloud, &["upgrade", "-n", "demo", "--audit-retention-days", "30"]).expect_exit(2);
    assert!(asks.stderr.contains("pass --yes"), "{asks:?}");
    let retention = ["upgrade", "-n", "demo", "--yes", "--audit-retention-days", "30"];
    let changed = on(cloud, &retention).expect_exit(0);
    assert!(
        changed.stdout.contains("more: `zae-limiter outputs -n demo`"),
        "{changed:?}"
    );
    let outputs = on(cloud, &["outputs", "-n", "demo"]).expect_exit(0).stdout;
    assert!(outputs.contains("AuditRetentionDays: 30\n"), "{outputs}");
    let system = [
        "config", "get", "-n", "demo", "--level", "system", "--output", "json",
    ];
    assert_eq!(
        on(cloud, &system).expect_exit(0).json()["audit_retention_days"],
        30
    );
    let options = ["--set", "pitr_recovery_days=7", "--audit-retention-days", "30"];
    let plan = demo(cloud, "plan", &[&options[..], &["--detailed-exitcode"]].concat());
    assert!(plan.expect_exit(0).stdout.contains("no changes"));
}

fn the_stack_tells_how_it_is(cloud: &Cloud) {
    let status = on(cloud, &["status", "-n", "demo", "--output", "json"])
        .expect_exit(0)
        .json();
    assert_eq!(
        (
            status["stack"]["health"].clone(),
            status["table"]["compatible"].clone()
        ),
        (json!("healthy"), json!(true))
    );
    let text = on(cloud, &["status", "-n", "demo"]).expect_exit(0).stdout;
    assert!(text.contains("Table:    available (format 0.8.0)"), "{text}");
    assert!(
        text.contains("Place:    account 000000000000, region us-east-1"),
        "{text}"
    );
    assert!(
        text.contains(" items, ") && status["table"]["items"].is_u64(),
        "{text}"
    );
    let listed = on(cloud, &["list"]).expect_exit(0);
    assert!(
        listed.stdout.contains("demo") && listed.stdout.contains("1 stack"),
        "{listed:?}"
    );
    let drift = on(
        cloud,
        &["drift", "-n", "demo", "--detailed-exitcode", "--output", "json"],
    )
    .expect_exit(0)
    .json();
    assert_eq!(drift["verdict"], "in_sync", "{drift}");
    let system = on(
        cloud,
        &[
            "config", "get", "-n", "demo", "--level", "system", "--output", "json",
        ],
    )
    .expect_exit(0)
    .json();
    assert_eq!(
        system["audit_retention_days"], 90,
        "what no resource holds is written into the table"
    );
}

fn a_stack_with_termination_protection_is_not_deleted(cloud: &Cloud) {
    let deploy = |more: &[&str]| {
        let options = ["--set", "pitr_recovery_days=7", "--yes"];
        demo(cloud, "deploy", &[&options[..], more].concat()).expect_exit(0);
        let status = on(cloud, &["status", "-n", "demo", "--output", "json"]).expect_exit(0);
        status.json()["stack"]["termination_protection"].clone()
    };
    assert_eq!(deploy(&[]), false);
    assert_eq!(deploy(&["--termination-protection"]), true);
    assert_eq!(deploy(&[]), true, "a deployment leaves it as it is");
    let refused = on(cloud, &["delete", "-n", "demo", "--yes"]).expect_exit(1);
    assert!(
        refused.stderr.contains("termination protection")
            && refused.stderr.contains("--no-termination-protection"),
        "{refused:?}"
    );
    assert_eq!(deploy(&["--no-termination-protection"]), false);
}

fn a_foreign_reader_of_the_stream_fails_the_check(cloud: &Cloud) {
    let check = on(cloud, &["check", "-n", "demo"]).expect_exit(0);
    assert_eq!(check.stdout, "table demo is compatible\n");
    let stream = on(cloud, &["status", "-n", "demo", "--output", "json"]).json();
    let stream = stream["stack"]["outputs"]["StreamArn"]
        .as_str()
        .unwrap()
        .to_owned();
    let lambda = aws_sdk_lambda::Client::from_conf(
        aws_sdk_lambda::Config::builder()
            .behavior_version(aws_sdk_lambda::config::BehaviorVersion::latest())
            .region(aws_sdk_lambda::config::Region::from_static("us-east-1"))
            .credentials_provider(aws_credential_types::Credentials::from_keys("test", "test", None))
            .endpoint_url(format!("http://127.0.0.1:{}", cloud.port))
            .build(),
    );
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mapping = runtime.block_on(async {
        let archive = [&b"PK\x05\x06"[..], &[0; 18]].concat();
        let code = aws_sdk_lambda::types::FunctionCode::builder().zip_file(archive.into());
        let function = lambda.create_function().function_name("peer-aggregator");
        let function = function
            .role("arn:aws:iam::000000000000:role/peer")
            .code(code.build());
        let function = function
            .runtime(aws_sdk_lambda::types::Runtime::Providedal2023)
            .handler("bootstrap");
        function.send().await.unwrap();
        let mapping = lambda
            .create_event_source_mapping()
            .function_name("peer-aggregator");
        let mapping = mapping
            .event_source_arn(&stream)
            .enabled(false)
            .starting_position(aws_sdk_lambda::types::EventSourcePosition::Latest);
        mapping.send().await.unwrap().uuid.unwrap()
    });
    let check = on(cloud, &["check", "-n", "demo"]).expect_exit(1);
    assert!(check.stdout.contains("foreign stream reader: "), "{check:?}");
    assert!(
        check.stdout.contains("peer-aggregator") && check.stdout.contains(&mapping),
        "{check:?}"
    );
    let report = on(cloud, &["check", "-n", "demo", "--output", "json"]).json();
    assert_eq!(
        (
            report["compatible"].clone(),
            report["stream_readers"][0]["own"].clone()
        ),
        (json!(true), json!(false))
    );
    runtime.block_on(async {
        let unmapped = lambda.delete_event_source_mapping().uuid(mapping);
        unmapped.send().await.unwrap();
        let deleted = lambda.delete_function().function_name("peer-aggregator");
        deleted.send().await.unwrap();
    });
    on(cloud, &["check", "-n", "demo"]).expect_exit(0);
}

fn data_commands_work_over_a_connection(cloud: &Cloud) {
    on(
        cloud,
        &["system", "set-defaults", "-n", "demo", "-l", "rpm:5/day"],
    )
    .expect_exit(0);
    let many = [
        "acquire", "user-1", "gpt-4", "-n", "demo", "-c", "rpm:1", "--count", "8", "--output", "json",
    ];
    let summary = on(cloud, &many).expect_exit(0).json();
    assert_eq!(
        (summary["admitted"].clone(), summary["limited"].clone()),
        (json!(5), json!(3))
    );
    assert!(
        summary["capacity_per_acquire"]["write"].as_f64().unwrap() > 0.0,
        "{summary}"
    );
    on(
        cloud,
        &["acquire", "user-1", "gpt-4", "-n", "demo", "-c", "rpm:1"],
    )
    .expect_exit(75);
    let audit = on(
        cloud,
        &["audit", "list", "-n", "demo", "-e", "$SYSTEM", "--output", "json"],
    )
    .expect_exit(0)
    .json();
    assert_eq!(audit["count"], 2);
    let text = "system: {limits: {rpm: 5/day}}\nresources: {gpt-4: {limits: {rpm: 9}}}\n";
    let file = cloud.bench.write("limits.yaml", text);
    on(cloud, &["limits", "apply", "-n", "demo", &file, "--yes"]).expect_exit(0);
    let plan = on(cloud, &["limits", "plan", "-n", "demo", &file]).expect_exit(0);
    assert!(plan.stdout.starts_with("no changes"), "{plan:?}");
}

fn it_is_deleted_with_its_data_if_asked(cloud: &Cloud) {
    for arguments in [
        &["delete", "-n", "demo"][..],
        &["delete", "-n", "demo", "--purge"],
    ] {
        let refused = on(cloud, arguments).expect_exit(2);
        assert!(refused.stderr.contains("pass --yes"), "{refused:?}");
    }
    on(cloud, &["status", "-n", "demo"]).expect_exit(0);
    let gone = on(cloud, &["delete", "-n", "demo", "--yes", "--purge"]).expect_exit(0);
    assert!(gone.stdout.contains("stack demo was deleted"), "{gone:?}");
    assert!(
        gone.stdout.contains("deleted with its data: table demo"),
        "{gone:?}"
    );
    assert!(!gone.stdout.contains("SQS"), "it has no queues: {gone:?}");
    let none = on(cloud, &["delete", "-n", "demo", "--yes"]).expect_exit(0);
    assert!(
        none.stdout
            .contains("stack demo does not exist in account 000000000000"),
        "{none:?}"
    );
}

/// The table that a deleted stack has left is data as well: its purge asks too.
fn a_leftover_table_is_purged_only_after_asking(cloud: &Cloud) {
    demo(cloud, "deploy", &["--yes"]).expect_exit(0);
    let kept = on(cloud, &["delete", "-n", "demo", "--yes"]).expect_exit(0);
    assert!(kept.stdout.contains("kept: table demo"), "{kept:?}");
    let refused = on(cloud, &["delete", "-n", "demo", "--purge"]).expect_exit(2);
    assert!(refused.stderr.contains("pass --yes"), "{refused:?}");
    on(cloud, &["version", "-n", "demo"]).expect_exit(0);
    let gone = on(cloud, &["delete", "-n", "demo", "--purge", "--yes"]).expect_exit(0);
    assert!(
        gone.stdout.contains("deleted with its data: table demo"),
        "{gone:?}"
    );
    on(cloud, &["version", "-n", "demo"]).expect_exit(1);
}

fn nobody_has_to_wait(cloud: &Cloud) {
    let arguments = [&["deploy", "-n", "other", "--yes", "--no-wait"], &OPTIONS[..]].concat();
    let left = on(cloud, &arguments).expect_exit(0);
    assert!(
        left.stdout
            .contains("`zae-limiter deploy -n other` attaches to it again"),
        "{left:?}"
    );
    let attached = on(
        cloud,
        &[&["deploy", "-n", "other", "--yes"], &OPTIONS[..]].concat(),
    )
    .expect_exit(0);
    assert!(attached.stdout.contains("TableName: other"), "{attached:?}");
}

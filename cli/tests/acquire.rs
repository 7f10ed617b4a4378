use serde_json::json;

use crate::tool::Bench;

fn bench(limits: &[&str]) -> Bench {
    let bench = Bench::new();
    let mut arguments = vec!["system", "set-defaults"];
    for limit in limits {
        arguments.extend(["-l", limit]);
    }
    bench.ok(&arguments);
    bench
}

#[test]
fn an_admitted_call_reports_used_and_available_tokens() {
    let bench = bench(&["rpm:100", "tpm:1000"]);
    let lease = bench.json(&[
        "acquire", "user-1", "gpt-4", "-c", "rpm:1", "-c", "tpm:500", "--adjust", "tpm:120",
    ]);
    assert_eq!(lease["admitted"], true);
    assert_eq!(lease["admission"], "counted");
    assert_eq!(lease["entity_id"], "user-1");
    assert_eq!(lease["consumed"], json!({ "rpm": 1, "tpm": 620 }));
    assert_eq!(lease["limits"][0]["limit_name"], "rpm");
    assert_eq!(lease["limits"][0]["available"], 99);
    let available = bench.json(&["available", "user-1", "gpt-4"]);
    assert_eq!(available["limits"]["tpm"]["capacity"], 1000);
    let left = available["limits"]["tpm"]["available"].as_i64().unwrap();
    assert!((380..1000).contains(&left), "{left}");
}

#[test]
fn a_call_may_charge_several_resources_all_or_none() {
    let bench = Bench::new();
    bench.ok(&[
        "resource",
        "set-defaults",
        "gpt-4",
        "-l",
        "rpm:100/day",
        "-l",
        "tpm:1000/day",
    ]);
    bench.ok(&["resource", "set-defaults", "budget", "-l", "usd:100/day"]);
    bench.ok(&["entity", "create", "org"]);
    bench.ok(&["entity", "create", "user-1", "--parent", "org", "--cascade"]);
    let call = [
        "acquire",
        "user-1",
        "gpt-4",
        "-c",
        "rpm:1",
        "-c",
        "budget/usd:60",
        "--no-cascade",
        "budget",
    ];
    let lease = bench.json(&[&call[..], &["--adjust", "tpm:5", "--adjust", "budget/usd:3"]].concat());
    assert_eq!(lease["consumed"], json!({ "rpm": 1, "tpm": 5 }));
    assert_eq!(
        lease["also"],
        json!([{ "resource": "budget", "consumed": { "usd": 63 } }])
    );
    let left = |entity, resource, limit: &str| {
        bench.json(&["available", entity, resource])["limits"][limit]["available"].clone()
    };
    assert_eq!(
        (left("user-1", "budget", "usd"), left("org", "budget", "usd")),
        (json!(37), json!(100))
    );
    assert_eq!(left("org", "gpt-4", "rpm"), 99);
    let refused = bench.run(&call).expect_exit(75);
    assert!(
        refused.stdout.contains("budget") && refused.stdout.contains("gpt-4"),
        "{}",
        refused.stdout
    );
    assert_eq!(left("user-1", "gpt-4", "rpm"), 99);
}

#[test]
fn a_rejected_call_exits_with_75_and_prints_the_json_of_the_python_package() {
    let bench = bench(&["rpm:2/day"]);
    bench.ok(&["acquire", "user-1", "gpt-4", "-c", "rpm:2"]);
    let result = bench
        .run(&["acquire", "user-1", "gpt-4", "-c", "rpm:1", "--output", "json"])
        .expect_exit(75);
    let refusal = result.json();
    assert_eq!(refusal["error"], "rate_limit_exceeded");
    assert!(refusal["retry_after_seconds"].as_f64().unwrap() > 3600.0);
    assert!(refusal["retry_after_ms"].is_u64());
    let limit = &refusal["limits"][0];
    for field in [
        "entity_id",
        "resource",
        "limit_name",
        "capacity",
        "burst",
        "available",
        "requested",
        "exceeded",
        "retry_after_seconds",
    ] {
        assert!(limit.get(field).is_some(), "{field} in {refusal}");
    }
    let table = bench
        .run(&["acquire", "user-1", "gpt-4", "-c", "rpm:1"])
        .expect_exit(75);
    assert!(
        table.stdout.contains("limited:") && table.stdout.contains("exceeded"),
        "{table:?}"
    );
}

#[test]
fn a_lease_is_shown_as_a_table_too() {
    let bench = bench(&["rpm:1000"]);
    let text = bench.ok(&["acquire", "user-1", "gpt-4", "-c", "rpm:1"]);
    assert!(text.starts_with("admitted: user-1/gpt-4 used rpm:1\n"), "{text}");
    assert!(
        text.contains("Available") && text.contains("999") && text.contains("1,000"),
        "{text}"
    );
}

#[test]
fn repeated_acquires_are_counted_and_measured() {
    let bench = bench(&["rpm:25/day"]);
    let summary = bench.json(&[
        "acquire",
        "user-1",
        "gpt-4",
        "-c",
        "rpm:1",
        "--count",
        "40",
        "--concurrency",
        "4",
    ]);
    assert_eq!(summary["admitted"], 25);
    assert_eq!(summary["limited"], 15);
    assert_eq!(summary["errors"], 0);
    for percentile in ["p50", "p90", "p99", "max"] {
        assert!(
            summary["latency_ms"][percentile].as_f64().unwrap() > 0.0,
            "{summary}"
        );
    }
    assert!(summary["calls_per_acquire"].as_f64().unwrap() > 0.0);
    let written = summary["capacity_per_acquire"]["write"].as_f64().unwrap();
    assert!(written > 0.0 && written <= 2.0, "{summary}");
    let text = bench.ok(&["acquire", "user-1", "gpt-4", "-c", "rpm:1", "--count", "3"]);
    assert!(text.contains("0 admitted, 3 rate limited, 0 errors"), "{text}");
}

#[test]
fn tokens_can_be_waited_for() {
    let bench = bench(&["rps:1/sec"]);
    bench.ok(&["acquire", "user-1", "gpt-4", "-c", "rps:1"]);
    bench.ok(&["acquire", "user-1", "gpt-4", "-c", "rps:1", "--wait", "10s"]);
}

#[test]
fn limits_can_come_with_the_call() {
    let bench = Bench::new();
    bench.ok(&["acquire", "user-1", "gpt-4", "-c", "rpm:1", "-l", "rpm:1/day"]);
    bench
        .run(&["acquire", "user-1", "gpt-4", "-c", "rpm:1", "-l", "rpm:1/day"])
        .expect_exit(75);
}

#[test]
fn available_reports_when_tokens_will_be_available() {
    let bench = bench(&["rpm:10/day:20"]);
    let fresh = bench.json(&["available", "user-1", "gpt-4"]);
    assert_eq!(
        fresh["limits"]["rpm"],
        json!({ "available": 20, "capacity": 10, "burst": 20 })
    );
    bench.ok(&["acquire", "user-1", "gpt-4", "-c", "rpm:20"]);
    let text = bench.ok(&["available", "user-1", "gpt-4"]);
    assert!(text.contains("Entity") && text.contains("Burst"), "{text}");
}

#[test]
fn a_cascading_child_charges_its_parent() {
    let bench = bench(&["rpm:10/day"]);
    bench.ok(&["entity", "create", "project-1"]);
    bench.ok(&["entity", "create", "key-1", "--parent", "project-1", "--cascade"]);
    bench.ok(&["acquire", "key-1", "gpt-4", "-c", "rpm:4"]);
    let available = bench.json(&["available", "key-1", "gpt-4"]);
    let entities: Vec<_> = available["levels"]
        .as_array()
        .unwrap()
        .iter()
        .map(|level| level["entity_id"].clone())
        .collect();
    assert_eq!(entities, ["key-1", "project-1"]);
    assert_eq!(
        bench.json(&["available", "project-1", "gpt-4"])["limits"]["rpm"]["available"],
        6
    );
}

#[test]
fn a_refusal_by_entity_and_parent_names_the_entity_of_each_limit() {
    let bench = Bench::new();
    bench.ok(&["system", "set-defaults", "-l", "tpm:100/day"]);
    bench.ok(&["entity", "create", "acme"]);
    bench.ok(&["entity", "create", "user-1", "--parent", "acme", "--cascade"]);
    bench.ok(&["acquire", "user-1", "gpt-4", "-c", "tpm:100"]);
    let refused = bench
        .run(&["acquire", "user-1", "gpt-4", "-c", "tpm:1", "--output", "json"])
        .expect_exit(75);
    let text = format!("{}{}", refused.stdout, refused.stderr);
    assert!(text.contains("[user-1 tpm, acme tpm]"), "{text}");
}

use serde_json::json;

use crate::tool::Bench;

#[test]
fn system_defaults_are_set_shown_and_deleted() {
    let bench = Bench::new();
    let set = bench.json(&[
        "system",
        "set-defaults",
        "-l",
        "rpm:100",
        "-l",
        "tpm:10000/hour:15000",
        "--on-unavailable",
        "allow",
    ]);
    assert_eq!(set["level"], "system");
    assert_eq!(set["configured"], true);
    assert_eq!(set["on_unavailable"], "allow");
    let tpm = json!({ "name": "tpm", "capacity": 10000, "burst": 15000, "refill_amount": 10000, "refill_period_seconds": 3600 });
    assert_eq!(set["limits"][1], tpm);
    let shown = bench.ok(&["system", "get-defaults"]);
    assert!(
        shown.contains("tpm") && shown.contains("10,000 per hour") && shown.contains("on_unavailable: allow"),
        "{shown}"
    );
    assert_eq!(
        bench.json(&["system", "delete-defaults", "--yes"])["deleted"],
        true
    );
    let gone = bench.json(&["system", "get-defaults"]);
    assert_eq!(
        (gone["configured"].clone(), gone["limits"].clone()),
        (json!(false), json!([]))
    );
    assert!(
        bench
            .ok(&["system", "delete-defaults", "--yes"])
            .contains("nothing to delete")
    );
}

#[test]
fn all_kinds_of_limits_are_set_shown_and_enforced() {
    let bench = Bench::new();
    let set = bench.json(&[
        "system",
        "set-defaults",
        "-l",
        "rpm:100",
        "-l",
        "spend:10 per month in Europe/Berlin alert at 80% 100%",
        "-l",
        "parallel:2 at once for 10min",
    ]);
    assert_eq!(
        set["limits"],
        json!([
            { "name": "parallel", "concurrency": 2, "expires_after_seconds": 600 },
            { "name": "rpm", "capacity": 100, "burst": 100, "refill_amount": 100, "refill_period_seconds": 60 },
            { "name": "spend", "quota": 10, "per": "month in Europe/Berlin", "alert_at": [80, 100] },
        ])
    );
    let shown = bench.ok(&["system", "get-defaults"]);
    for part in [
        "all per month in Europe/Berlin, alert at 80% 100%",
        "2 at once for 10min",
        "100 per minute",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    bench.ok(&["acquire", "user-1", "gpt-4", "-c", "spend:8", "-c", "parallel:1"]);
    let refused = bench
        .run(&["acquire", "user-1", "gpt-4", "-c", "spend:3", "--output", "json"])
        .expect_exit(75);
    assert!(refused.json()["limits"][2]["resets_at"].is_string());
    let wrong = bench.run(&["system", "set-defaults", "-l", "spend:10 per fortnight"]);
    let wrong = wrong.expect_exit(2);
    assert!(wrong.stderr.contains("fortnight"), "{}", wrong.stderr);
}

#[test]
fn resource_defaults_are_set_listed_and_deleted() {
    let bench = Bench::new();
    bench.ok(&["resource", "set-defaults", "openai/gpt-4", "-l", "rps:5/sec"]);
    bench.ok(&["resource", "set-defaults", "gpt-3.5", "-l", "rpm:5"]);
    assert_eq!(
        bench.json(&["resource", "list"])["resources"],
        json!(["gpt-3.5", "openai/gpt-4"])
    );
    assert_eq!(
        bench.ok(&["resource", "list"]),
        "gpt-3.5\nopenai/gpt-4\n2 resources\n"
    );
    let shown = bench.json(&["resource", "get-defaults", "openai/gpt-4"]);
    assert_eq!(shown["limits"][0]["refill_period_seconds"], 1);
    assert!(
        bench
            .ok(&["resource", "get-defaults", "openai/gpt-4"])
            .contains("5 per second")
    );
    bench.ok(&["resource", "delete-defaults", "gpt-3.5", "-y"]);
    assert_eq!(bench.json(&["resource", "list"])["count"], 1);
}

#[test]
fn entity_limits_are_for_one_resource_or_all() {
    let bench = Bench::new();
    let all = bench.json(&["entity", "set-limits", "user-1", "-l", "rpm:10"]);
    assert_eq!(
        (all["level"].clone(), all["resource"].clone()),
        (json!("entity_default"), json!("_default_"))
    );
    let one = bench.json(&["entity", "set-limits", "user-1", "-r", "gpt-4", "-l", "rpm:20"]);
    assert_eq!(
        (one["level"].clone(), one["config_version"].clone()),
        (json!("entity"), json!(1))
    );
    assert_eq!(
        bench.json(&["entity", "get-limits", "user-1", "-r", "gpt-4"])["limits"][0]["capacity"],
        20
    );
    bench.ok(&["entity", "delete-limits", "user-1", "-r", "gpt-4", "--yes"]);
    assert!(
        bench
            .ok(&["entity", "get-limits", "user-1", "-r", "gpt-4"])
            .contains("no limits are set at this level")
    );
    assert_eq!(
        bench.json(&["available", "user-1", "gpt-4"])["limits"]["rpm"]["capacity"],
        10
    );
}

#[test]
fn config_reads_and_writes_every_level() {
    let bench = Bench::new();
    bench.ok(&[
        "config",
        "set",
        "--level",
        "system",
        "--limits",
        r#"["rpm:100"]"#,
        "--audit-retention-days",
        "30",
    ]);
    let kept = bench.json(&[
        "config",
        "set",
        "--level",
        "system",
        "--on-unavailable",
        "allow",
        "--strict-version",
        "false",
    ]);
    assert_eq!(kept["limits"][0]["name"], "rpm", "what is not mentioned stays");
    assert_eq!(
        (
            kept["audit_retention_days"].clone(),
            kept["strict_version"].clone()
        ),
        (json!(30), json!(false))
    );
    bench.ok(&[
        "config",
        "set",
        "--level",
        "resource",
        "--resource",
        "gpt-4",
        "--limits",
        r#"{"rpm": 5}"#,
    ]);
    assert_eq!(
        bench.json(&["config", "get", "--level", "resource", "--identifier", "gpt-4"])["limits"][0]["capacity"],
        5
    );
    let entity = [
        "--level",
        "entity",
        "--identifier",
        "user-1",
        "--resource",
        "gpt-4",
    ];
    let set = [
        &["config", "set"],
        &entity[..],
        &["--limits", r#"{"rpm": {"capacity": 7, "period": "day"}}"#],
    ]
    .concat();
    bench.ok(&set);
    let shown = bench.json(&[&["config", "get"], &entity[..]].concat());
    assert_eq!(shown["limits"][0]["refill_period_seconds"], 86_400);
}

#[test]
fn config_names_the_missing_level_argument() {
    let bench = Bench::new();
    for (arguments, told) in [
        (&["--level", "system", "--resource", "gpt-4"][..], "remove them"),
        (&["--level", "resource"], "--resource NAME"),
        (&["--level", "entity"], "--identifier ID"),
    ] {
        let result = bench
            .run(&[&["config", "get"], arguments].concat())
            .expect_exit(2);
        assert!(result.stderr.contains(told), "{result:?}");
    }
    let result = bench
        .run(&["config", "set", "--level", "system", "--limits", "{"])
        .expect_exit(2);
    assert!(result.stderr.contains("--limits is invalid"), "{result:?}");
    let result = bench
        .run(&[
            "config",
            "set",
            "--level",
            "resource",
            "--resource",
            "a",
            "--auto-update",
            "true",
        ])
        .expect_exit(2);
    assert!(result.stderr.contains("auto_update"), "{result:?}");
    let result = bench.run(&["config", "set", "--level", "system"]).expect_exit(2);
    assert!(result.stderr.contains("change something"), "{result:?}");
}

#[test]
fn capacity_sums_the_buckets_of_a_resource() {
    let bench = Bench::new();
    bench.ok(&["resource", "set-defaults", "gpt-4", "-l", "rpm:1000/day"]);
    for (entity, tokens) in [("user-1", "rpm:250"), ("user-2", "rpm:500")] {
        bench.ok(&["acquire", entity, "gpt-4", "-c", tokens]);
    }
    let capacity = bench.json(&["resource", "capacity", "gpt-4"]);
    let rpm = &capacity["limits"][0];
    assert_eq!(
        (rpm["total_capacity"].clone(), rpm["total_available"].clone()),
        (json!(2000), json!(1250))
    );
    assert_eq!(rpm["entities"][1]["utilization_pct"], 50.0);
    let text = bench.ok(&["resource", "capacity", "gpt-4", "--limit", "rpm"]);
    assert!(
        text.contains("(all)") && text.contains("1,250") && text.contains("37.5%"),
        "{text}"
    );
    let result = bench.run(&["resource", "capacity", "other"]).expect_exit(2);
    assert!(result.stderr.contains("--limit"), "{result:?}");
}

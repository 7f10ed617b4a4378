//! Top-ups, resets, limits until a time, and another parent.

use serde_json::{Value, json};

use crate::tool::Bench;

fn team() -> Bench {
    let bench = Bench::new();
    let limits = ["-l", "rpm:100", "-l", "spend:500 per year"];
    bench.ok(&[&["entity", "set-limits", "team-1", "-r", "gpt-4"], &limits[..]].concat());
    bench.ok(&["acquire", "team-1", "gpt-4", "-c", "spend:500"]);
    bench
}

fn events(bench: &Bench) -> Vec<Value> {
    let events = bench.json(&["audit", "list", "--entity-id", "team-1"]);
    events["events"].as_array().unwrap().clone()
}

#[test]
fn a_quota_is_topped_up_once() {
    let bench = team();
    bench
        .run(&["acquire", "team-1", "gpt-4", "-c", "spend:1"])
        .expect_exit(75);
    let top_up = [
        "top-up",
        "team-1",
        "gpt-4",
        "spend:200",
        "--reason",
        "approved",
        "--idempotency-key",
        "one",
    ];
    let made = bench.json(&top_up);
    assert_eq!(
        (&made["added"], &made["left"], &made["repeated"]),
        (&json!(200), &json!(200), &json!(false))
    );
    let again = bench.json(&top_up);
    assert_eq!(
        (&again["event_id"], &again["repeated"]),
        (&made["event_id"], &json!(true))
    );
    let shown = bench.ok(&["top-up", "team-1", "gpt-4", "spend:50"]);
    assert!(
        shown.starts_with("topped up spend of team-1 on gpt-4 by 50\nleft: 250 until "),
        "{shown}"
    );
    bench.ok(&["acquire", "team-1", "gpt-4", "-c", "spend:250"]);
    let event = events(&bench)
        .into_iter()
        .find(|event| event["event_id"] == made["event_id"])
        .unwrap();
    assert_eq!(
        (&event["action"], &event["details"]["reason"]),
        (&json!("topped_up"), &json!("approved"))
    );

    let other = bench.run(&[
        "top-up",
        "team-1",
        "gpt-4",
        "spend:9",
        "--idempotency-key",
        "one",
        "--output",
        "json",
    ]);
    assert_eq!(other.expect_exit(1).error()["error"], "idempotency_key_reused");
}

#[test]
fn a_budget_is_written_and_shown_as_money() {
    let bench = Bench::new();
    bench.ok(&[
        "entity",
        "set-limits",
        "team-1",
        "-r",
        "budget",
        "-l",
        "usd:$10 per year",
        "-l",
        "n:9 at once for 1h",
    ]);
    let shown = bench.ok(&["entity", "get-limits", "team-1", "-r", "budget"]);
    assert!(
        shown.contains("$10.00") && shown.contains("9 at once for 1h"),
        "{shown}"
    );
    let stored = bench.json(&["entity", "get-limits", "team-1", "-r", "budget"]);
    assert_eq!(stored["limits"][1]["quota"], 10_000_000);
    let taken = bench.ok(&[
        "acquire",
        "team-1",
        "budget",
        "-c",
        "usd:$9.50",
        "--adjust",
        "usd:-$0.50",
    ]);
    assert!(
        taken.contains("used usd:$9.00") && taken.contains("$0.50"),
        "{taken}"
    );
    let refused = bench
        .run(&["acquire", "team-1", "budget", "-c", "usd:$2"])
        .expect_exit(75);
    assert!(refused.stdout.contains("$2.00"), "{refused:?}");
    let made = bench.ok(&["top-up", "team-1", "budget", "usd:$5"]);
    assert!(
        made.starts_with("topped up usd of team-1 on budget by $5.00\nleft: $6.00 until "),
        "{made}"
    );
    let left = bench.ok(&["available", "team-1", "budget"]);
    assert!(left.contains("Topped up") && left.contains("$6.00"), "{left}");

    let buckets = bench.ok(&["buckets", "team-1"]);
    let usd = buckets.lines().find(|line| line.contains("usd")).unwrap();
    assert!(
        usd.contains("$6.00") && usd.contains("$9.00") && usd.contains("$15.00"),
        "{buckets}"
    );
    let json = bench.json(&["buckets", "team-1"]);
    let limits = &json["buckets"][0]["limits"];
    assert_eq!(
        (&limits[0]["kind"], &limits[0]["held"], &limits[0]["burst"]),
        (&json!("concurrency"), &json!(0), &json!(9))
    );
    let usd = &limits[1];
    assert_eq!(
        (
            &usd["kind"],
            &usd["used"],
            &usd["available"],
            &usd["burst"],
            &usd["capacity"]
        ),
        (
            &json!("quota"),
            &json!(9_000_000),
            &json!(6_000_000),
            &json!(15_000_000),
            &json!(10_000_000)
        )
    );
    assert!(usd["resets_at"].is_string(), "{usd}");
    let nothing = bench.ok(&["buckets", "team-2"]);
    assert_eq!(nothing.trim(), "0 buckets: team-2 has used nothing yet");
    let capacity = bench.ok(&["resource", "capacity", "budget", "--limit", "usd"]);
    assert!(
        capacity.contains("$15.00") && capacity.contains("60.0%"),
        "{capacity}"
    );
}

#[test]
fn limits_are_reset() {
    let bench = team();
    bench.run(&["reset", "team-1", "gpt-4"]).expect_exit(2);
    let reset = bench.json(&[
        "reset", "team-1", "gpt-4", "--limit", "spend", "--reason", "a loop", "--yes",
    ]);
    assert_eq!(
        (&reset["limits"], &reset["permits_revoked"]),
        (&json!(["spend"]), &json!(false))
    );
    bench.ok(&["acquire", "team-1", "gpt-4", "-c", "spend:500"]);
    let shown = bench.ok(&["reset", "team-1", "gpt-4", "--all", "--yes"]);
    assert_eq!(shown.trim(), "reset rpm, spend of team-1 on gpt-4");
    let shown = bench.ok(&["reset", "team-2", "gpt-4", "--all", "--yes"]);
    assert!(shown.starts_with("nothing to reset"), "{shown}");
}

#[test]
fn limits_end_and_show_what_applies_afterwards() {
    let bench = team();
    let set = [
        "entity",
        "set-limits",
        "team-1",
        "-r",
        "gpt-4",
        "-l",
        "rpm:900",
        "--reason",
        "launch",
    ];
    let stored = bench.json(&[&set[..], &["--until", "7d"]].concat());
    assert_eq!(
        stored["limits"].as_array().unwrap().len(),
        2,
        "what applies afterwards"
    );
    assert_eq!(stored["temporary_limits"]["limits"][0]["capacity"], 900);
    let shown = bench.ok(&["entity", "get-limits", "team-1", "-r", "gpt-4"]);
    assert!(shown.contains("until ") && shown.contains("900"), "{shown}");
    let available = bench.ok(&["available", "team-1", "gpt-4"]);
    assert!(available.contains("900"), "{available}");
    assert_eq!(events(&bench)[0]["details"]["reason"], "launch");

    let past = bench
        .run(&[&set[..], &["--until", "2020-01-01"]].concat())
        .expect_exit(2);
    assert!(past.stderr.contains("must be later than now"), "{past:?}");
    let stored = bench.json(&set);
    assert_eq!(stored.get("temporary_limits"), None);
    assert_eq!(stored["limits"][0]["capacity"], 900);
}

#[test]
fn an_entity_gets_another_parent() {
    let bench = Bench::new();
    bench.ok(&["entity", "create", "org-1"]);
    bench.ok(&["entity", "create", "team-1"]);
    let moved = bench.json(&["entity", "set-parent", "team-1", "org-1", "--reason", "merger"]);
    assert_eq!(moved["parent_id"], "org-1");
    assert_eq!(
        events(&bench)[0]["details"],
        json!({ "parent_id": "org-1", "reason": "merger" })
    );
    bench
        .run(&["entity", "set-parent", "org-1", "team-1"])
        .expect_exit(1);
    bench.run(&["entity", "set-parent", "team-1"]).expect_exit(2);
    assert_eq!(
        bench.json(&["entity", "set-parent", "team-1", "--none"])["parent_id"],
        Value::Null
    );
}

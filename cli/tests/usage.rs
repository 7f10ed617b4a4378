use serde_json::json;
use zae_limiter::Timestamp;
use zae_limiter::usage::WindowKind;

use crate::table::{put, snapshot};
use crate::tool::{Bench, result};

/// Hours that an aggregator would have counted: entity, start, calls and tokens.
const HOURS: [(&str, &str, i64, i64); 3] = [
    ("user-1", "2026-01-31T12:00:00Z", 2, 1500),
    ("user-1", "2026-01-31T13:00:00Z", 4, 2500),
    ("user-2", "2026-01-31T13:00:00Z", 1, 100),
];

/// Writes [`HOURS`] into the table as an aggregator does.
fn counted(bench: &Bench) {
    bench.ok(&["system", "set-defaults", "-l", "rpm:100"]);
    let snapshots = HOURS.map(|(entity, start, calls, tokens)| {
        let hour = WindowKind::Hourly.window_at(Timestamp::parse(start).unwrap());
        snapshot(entity, &hour, calls, &[("tpm", tokens)], calls * 10)
    });
    put(bench, snapshots);
}

#[test]
fn usage_is_listed_plotted_and_summed() {
    let bench = Bench::new();
    counted(&bench);
    let list = bench.json(&["usage", "list", "-e", "user-1", "-w", "hourly"]);
    assert_eq!(list["count"], 2);
    assert_eq!(
        list["snapshots"][0],
        json!({ "entity_id": "user-1", "resource": "gpt-4", "window": "hourly",
            "window_start": "2026-01-31T13:00:00Z", "window_end": "2026-01-31T14:00:00Z",
            "total_events": 4, "refusals": 40, "observed": 0, "counters": { "tpm": 2500 } })
    );
    let table = bench.ok(&["usage", "list", "-r", "gpt-4"]);
    assert!(
        table.contains("Refused")
            && table.contains("tpm=2,500")
            && table.contains("user-2")
            && table.ends_with("3 snapshots\n"),
        "{table}"
    );
    let chart = bench.ok(&["usage", "list", "-r", "gpt-4", "--plot"]);
    assert!(chart.contains("gpt-4 tpm, hourly, total 4,100"), "{chart}");
    let first = bench.json(&["usage", "list", "-r", "gpt-4", "--end", "2026-01-31T12:00:00Z"]);
    assert_eq!(first["count"], 1);
    let one = bench.json(&["usage", "list", "-r", "gpt-4", "-l", "1"]);
    assert_eq!((&one["count"], &one["truncated"]), (&json!(1), &json!(true)));
    let sum = bench.json(&["usage", "summary", "-e", "user-1", "-r", "gpt-4"]);
    assert_eq!(
        (
            &sum["total_events"],
            &sum["refusals"],
            &sum["limits"]["tpm"]["total"]
        ),
        (&json!(6), &json!(60), &json!(4000))
    );
    let text = bench.ok(&["usage", "summary", "-r", "gpt-4"]);
    assert!(text.contains("4,100"), "{text}");
}

#[test]
fn times_are_utc_unless_local_time_is_given() {
    let bench = Bench::new();
    counted(&bench);
    let list = ["usage", "list", "-e", "user-2"];
    assert!(bench.ok(&list).contains("2026-01-31 13:00"));
    let mut local = bench.command(&list);
    local.arg("--local-time").env("TZ", "EST5");
    let local = result(local).expect_exit(0).stdout;
    assert!(local.contains("2026-01-31 08:00"), "{local}");
}

/// An empty list says what it means, and names what shows more.
#[test]
fn a_table_without_usage_says_so() {
    let bench = Bench::new();
    let why = "no acquire was counted in this time; `zae-limiter resource capacity` shows what is in use now";
    let list = bench.json(&["usage", "list", "--entity-id", "user-1"]);
    assert_eq!(
        list,
        json!({ "snapshots": [], "count": 0, "truncated": false, "note": why })
    );
    assert_eq!(
        bench.ok(&["usage", "list", "-r", "gpt-4", "--plot"]),
        format!("0 snapshots; {why}\n")
    );
    let sum = bench.json(&["usage", "summary", "-e", "user-1", "--start", "7d"]);
    assert_eq!(
        (&sum["snapshots"], &sum["limits"], &sum["note"]),
        (&json!(0), &json!({}), &json!(why))
    );
    assert_eq!(
        bench.ok(&["usage", "summary", "-r", "gpt-4", "-w", "daily"]),
        format!("no daily usage; {why}\n")
    );
    counted(&bench);
    assert_eq!(bench.json(&["usage", "list", "-r", "gpt-4"]).get("note"), None);
}

#[test]
fn usage_on_a_file_is_counted_before_it_is_printed() {
    let bench = Bench::new();
    bench.ok(&[
        "system",
        "set-defaults",
        "-l",
        "rpd:3/day",
        "-l",
        "tpd:1000000/day",
    ]);
    for tokens in ["100", "250"] {
        let tokens = format!("tpd:{tokens}");
        bench.ok(&["acquire", "user-1", "gpt-4", "-c", "rpd:1", "-c", &tokens]);
    }
    bench
        .run(&["acquire", "user-1", "gpt-4", "-c", "rpd:2"])
        .expect_exit(75);
    // By month, and the sum of two is right too.
    let sum = bench.json(&["usage", "summary", "-e", "user-1", "-w", "monthly"]);
    let total = |limit: &str| sum["limits"][limit]["total"].clone();
    assert_eq!((total("rpd"), total("tpd")), (json!(2), json!(350)), "{sum}");
    assert_eq!(
        (&sum["total_events"], &sum["refusals"]),
        (&json!(2), &json!(1)),
        "{sum}"
    );
    let list = bench.ok(&["usage", "list", "-r", "gpt-4", "-w", "monthly"]);
    assert!(list.contains("user-1"), "{list}");
}

#[test]
fn usage_needs_an_entity_or_a_resource_and_a_valid_time_range() {
    let bench = Bench::new();
    bench.run(&["usage", "list"]).expect_exit(2);
    let result = bench
        .run(&["usage", "list", "-e", "user-1", "--start", "yesterday"])
        .expect_exit(2);
    assert!(result.stderr.contains("2026-01-31T12:00:00Z"), "{result:?}");
    let result = bench
        .run(&["usage", "list", "-e", "user-1", "-w", "weekly"])
        .expect_exit(2);
    assert!(result.stderr.contains("hourly, daily or monthly"), "{result:?}");
    let result = bench
        .run(&[
            "usage",
            "list",
            "-e",
            "user-1",
            "--start",
            "2026-02-01",
            "--end",
            "2026-01-01",
        ])
        .expect_exit(2);
    assert!(result.stderr.contains("must not be after"), "{result:?}");
}

use serde_json::json;

use crate::tool::Bench;

/// Nobody aggregates on an embedded table: what there is to see is that there is nothing.
#[test]
fn a_table_without_usage_says_so() {
    let bench = Bench::new();
    let list = bench.json(&["usage", "list", "--entity-id", "user-1"]);
    assert_eq!(list, json!({ "snapshots": [], "count": 0, "truncated": false }));
    assert!(
        bench
            .ok(&["usage", "list", "-r", "gpt-4", "--plot"])
            .starts_with("0 snapshots")
    );
    let sum = bench.json(&["usage", "summary", "-e", "user-1", "--start", "7d"]);
    assert_eq!(
        (sum["snapshots"].clone(), sum["limits"].clone()),
        (json!(0), json!({}))
    );
    assert_eq!(
        bench.ok(&["usage", "summary", "-r", "gpt-4", "-w", "daily"]),
        "no daily usage\n"
    );
}

#[test]
fn usage_is_of_somebody_or_something_and_of_a_time() {
    let bench = Bench::new();
    bench.run(&["usage", "list"]).ended(2);
    let said = bench
        .run(&["usage", "list", "-e", "user-1", "--start", "yesterday"])
        .ended(2);
    assert!(said.stderr.contains("2026-01-31T12:00:00Z"), "{said:?}");
    let said = bench
        .run(&["usage", "list", "-e", "user-1", "-w", "weekly"])
        .ended(2);
    assert!(said.stderr.contains("hourly, daily or monthly"), "{said:?}");
    let said = bench
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
        .ended(2);
    assert!(said.stderr.contains("must not be after"), "{said:?}");
}

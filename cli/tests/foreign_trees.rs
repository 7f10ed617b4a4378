//! Trees that only the Python package can store.

use aws_sdk_dynamodb::types::AttributeValue;

use crate::table::{put, text};
use crate::tool::Bench;

/// Two entities, each the parent of the other.
fn store_cycle(bench: &Bench) {
    bench.ok(&["system", "set-defaults", "-l", "rpm:100"]);
    let child_of = |(id, parent): (&str, &str)| {
        vec![
            ("PK", text(format!("ENTITY#{id}"))),
            ("SK", text("#META")),
            ("entity_id", text(id)),
            ("name", text(id)),
            ("parent_id", text(parent)),
            ("cascade", AttributeValue::Bool(true)),
            ("metadata", AttributeValue::M([].into())),
            ("created_at", text("2026-01-31T12:34:56Z")),
            ("GSI1PK", text(format!("PARENT#{parent}"))),
            ("GSI1SK", text(format!("CHILD#{id}"))),
        ]
    };
    put(bench, [("a", "b"), ("b", "a")].map(child_of));
}

#[test]
fn a_cycle_is_shown_refused_and_repaired() {
    let bench = Bench::new();
    store_cycle(&bench);
    assert_eq!(bench.json(&["entity", "list"])["count"], 2);
    assert_eq!(bench.json(&["entity", "children", "a"])["count"], 1);
    let acquire = ["acquire", "a", "gpt-4", "-c", "rpm:1"];
    let refused = bench
        .run(&[&acquire[..], &["--output", "json"]].concat())
        .expect_exit(1);
    assert_eq!(refused.error()["error"], "hierarchy", "{refused:?}");
    bench.run(&["entity", "delete", "a", "--yes"]).expect_exit(1);
    bench.ok(&["entity", "update", "b", "--no-parent"]);
    bench.ok(&acquire);
}

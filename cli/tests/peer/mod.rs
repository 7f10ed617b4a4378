//! The command line of the Python peer (`zae-limiter` 0.9.1) and ours on one table: each shows what the other wrote, and
//! finds nothing where the other deleted it. The peer's command has no command for buckets; the libraries' tests have.

mod table;
mod usage;

use serde_json::{Value, json};
use table::Table;

/// What both command lines are told: their arguments are the same.
const WRITES: [&[&str]; 7] = [
    &[
        "system",
        "set-defaults",
        "-l",
        "rpm:100",
        "-l",
        "tpm:10000:15000",
        "--on-unavailable",
        "allow",
    ],
    &["resource", "set-defaults", "gpt-4", "-l", "rpm:500"],
    &["entity", "create", "org-1", "--display-name", "Organization One"],
    &["entity", "create", "user-1", "--parent", "org-1", "--cascade"],
    &[
        "entity",
        "set-limits",
        "user-1",
        "-r",
        "gpt-4",
        "-l",
        "rpm:50:80",
        "-l",
        "tpm:5000",
    ],
    &["entity", "set-limits", "user-1", "-l", "rpm:20"],
    &["entity", "set-limits", "org-1", "-r", "gpt-4", "-l", "rpm:1000"],
];

const DELETIONS: [&[&str]; 4] = [
    &["entity", "delete-limits", "user-1", "-r", "gpt-4", "--yes"],
    &["entity", "delete-limits", "user-1", "--yes"],
    &["resource", "delete-defaults", "gpt-4", "--yes"],
    &["system", "delete-defaults", "--yes"],
];

#[track_caller]
fn assert_lines(printed: &str, lines: &[&str]) {
    for line in lines {
        let found = printed.lines().any(|printed| printed.trim() == *line);
        assert!(found, "no line {line:?} in:\n{printed}");
    }
}

/// Each command of the peer prints these lines.
#[track_caller]
fn assert_prints(table: &Table, expected: &[(&[&str], &[&str])]) {
    let commands: Vec<&[&str]> = expected.iter().map(|(arguments, _)| *arguments).collect();
    for (printed, (_, lines)) in table.peer(&commands).iter().zip(expected) {
        assert_lines(printed, lines);
    }
}

/// The columns of the peer's table row with this text.
#[track_caller]
fn row(printed: &str, text: &str) -> Vec<String> {
    let line = printed.lines().find(|line| line.contains(text));
    let line = line.unwrap_or_else(|| panic!("no {text:?} in:\n{printed}"));
    let columns = line.split(['│', '|']).map(|column| column.trim().to_owned());
    columns.filter(|column| !column.is_empty()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_peer_shows_what_we_write_and_no_longer_what_we_delete() {
    let table = Table::create("command-line-ours").await;
    for arguments in WRITES {
        table.ours(arguments);
    }
    usage::counted_by_us(&table).await;

    // A command, and lines that it prints.
    let shown: [(&[&str], &[&str]); 12] = [
        (
            &["system", "get-defaults"],
            &[
                "rpm: 100/min (burst: 100)",
                "tpm: 10,000/min (burst: 15,000)",
                "on_unavailable: allow",
            ],
        ),
        (
            &["resource", "get-defaults", "gpt-4"],
            &["rpm: 500/min (burst: 500)"],
        ),
        (&["resource", "list"], &["gpt-4"]),
        (
            &["entity", "show", "user-1"],
            &["Entity: user-1", "Parent:     org-1", "Cascade:    True"],
        ),
        (
            &["entity", "show", "org-1"],
            &["Name:       Organization One", "Parent:     (none)"],
        ),
        (
            &["entity", "get-limits", "user-1", "-r", "gpt-4"],
            &["rpm: 50/min (burst: 80)", "tpm: 5,000/min (burst: 5,000)"],
        ),
        (&["entity", "get-limits", "user-1"], &["rpm: 20/min (burst: 20)"]),
        (
            &["entity", "list", "--with-custom-limits", "gpt-4"],
            &["org-1", "user-1"],
        ),
        (&["entity", "list-resources"], &["gpt-4"]),
        (&["version"], &["Status: COMPATIBLE"]),
        (&["check"], &["Result: COMPATIBLE"]),
        (&["status"], &["Available:     ✓ Yes", "Table:         ACTIVE"]),
    ];
    assert_prints(&table, &shown);

    let [events, snapshots, summary, by_resource] = table
        .peer(&[
            &["audit", "list", "-e", "user-1"],
            &["usage", "list", "-e", "user-1"],
            &["usage", "summary", "-e", "user-1", "-w", "hourly"],
            &["usage", "list", "-r", "gpt-4"],
        ])
        .try_into()
        .unwrap();
    assert_lines(&events, &["Total: 3 events"]);
    assert_eq!(row(&events, "gpt-4")[1], "limits_set");
    assert_eq!(row(&events, "entity_created")[1], "entity_created");
    assert_eq!(
        row(&snapshots, "hourly"),
        [
            "2026-01-31T10:00:00Z",
            "hourly",
            "gpt-4",
            "user-1",
            "1",
            "rpm=5, tpm=1,200"
        ]
    );
    assert_eq!(row(&summary, "tpm"), ["tpm", "1,200", "1,200.00"]);
    // It reads snapshots from the index, which has them only in a stack with `gsi2_projection: all`.
    assert_lines(&by_resource, &["No usage snapshots found"]);

    for arguments in DELETIONS {
        table.ours(arguments);
    }
    let gone: [(&[&str], &[&str]); 5] = [
        (
            &["entity", "get-limits", "user-1", "-r", "gpt-4"],
            &["No limits configured for entity 'user-1' on resource 'gpt-4'"],
        ),
        (
            &["entity", "get-limits", "user-1"],
            &["No limits configured for entity 'user-1' on resource '_default_'"],
        ),
        (
            &["resource", "get-defaults", "gpt-4"],
            &["No defaults configured for resource 'gpt-4'"],
        ),
        (&["resource", "list"], &["No resources with configured defaults"]),
        (&["system", "get-defaults"], &["No system defaults configured"]),
    ];
    assert_prints(&table, &gone);
}

/// A limit as our command prints it.
fn limit(name: &str, capacity: u64, burst: u64) -> Value {
    json!({
        "name": name, "capacity": capacity, "burst": burst, "refill_amount": capacity, "refill_period_seconds": 60,
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn we_show_what_the_peer_writes_and_no_longer_what_it_deletes() {
    let table = Table::create("command-line-peer").await;
    table.peer(&WRITES);
    usage::counted_by_the_peer(&table);

    let system = table.ours(&["system", "get-defaults"]);
    assert_eq!(
        (&system["limits"], &system["on_unavailable"]),
        (
            &json!([limit("rpm", 100, 100), limit("tpm", 10_000, 15_000)]),
            &json!("allow")
        )
    );
    let limits = |arguments: &[&str]| table.ours(arguments)["limits"].clone();
    assert_eq!(
        limits(&["resource", "get-defaults", "gpt-4"]),
        json!([limit("rpm", 500, 500)])
    );
    assert_eq!(
        limits(&["entity", "get-limits", "user-1", "-r", "gpt-4"]),
        json!([limit("rpm", 50, 80), limit("tpm", 5_000, 5_000)])
    );
    assert_eq!(
        limits(&["entity", "get-limits", "user-1"]),
        json!([limit("rpm", 20, 20)])
    );
    assert_eq!(table.ours(&["resource", "list"])["resources"], json!(["gpt-4"]));
    let child = table.ours(&["entity", "show", "user-1"]);
    assert_eq!(
        (&child["parent_id"], &child["cascade"]),
        (&json!("org-1"), &json!(true))
    );
    assert_eq!(
        table.ours(&["entity", "show", "org-1"])["name"],
        "Organization One"
    );
    let children = table.ours(&["entity", "children", "org-1"]);
    assert_eq!(children["entities"][0]["entity_id"], "user-1");
    let entities = table.ours(&["entity", "list", "--with-custom-limits", "gpt-4"]);
    assert_eq!(entities["count"], 2, "{entities}");
    let events = table.ours(&["audit", "list", "-e", "user-1"]);
    let actions: Vec<_> = events["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| (event["action"].as_str().unwrap(), event["resource"].as_str()))
        .collect();
    assert_eq!(
        actions,
        [
            ("limits_set", Some("_default_")),
            ("limits_set", Some("gpt-4")),
            ("entity_created", None)
        ]
    );
    assert_eq!(table.ours(&["audit", "list", "-e", "$SYSTEM"])["count"], 1);
    let snapshots = table.ours(&["usage", "list", "-e", "user-1"]);
    let snapshot = &snapshots["snapshots"][0];
    assert_eq!(
        (&snapshot["window_start"], &snapshot["counters"]),
        (&json!("2026-01-31T10:00:00Z"), &json!({ "rpm": 5, "tpm": 1_200 }))
    );
    let summary = table.ours(&["usage", "summary", "-r", "gpt-4"]);
    assert_eq!(summary["limits"]["tpm"]["total"], 1_200);
    assert_eq!(table.ours(&["check"])["compatible"], true);
    // The limits of the entity itself, and of its parent, to which it cascades.
    let available = table.ours(&["available", "user-1", "gpt-4"]);
    let bursts: Vec<_> = available["levels"]
        .as_array()
        .unwrap()
        .iter()
        .map(|level| (level["entity_id"].as_str(), level["available"].as_i64()))
        .collect();
    assert_eq!(
        bursts,
        [
            (Some("user-1"), Some(80)),
            (Some("user-1"), Some(5_000)),
            (Some("org-1"), Some(1_000))
        ]
    );

    table.peer(&DELETIONS);
    let levels: [&[&str]; 4] = [
        &["entity", "get-limits", "user-1", "-r", "gpt-4"],
        &["entity", "get-limits", "user-1"],
        &["resource", "get-defaults", "gpt-4"],
        &["system", "get-defaults"],
    ];
    for arguments in levels {
        let level = table.ours(arguments);
        assert_eq!(
            (&level["configured"], &level["limits"]),
            (&json!(false), &json!([])),
            "{arguments:?}"
        );
    }
}

use serde_json::json;

use crate::tool::{Bench, command, result};

#[test]
fn the_table_knows_its_version() {
    let bench = Bench::new();
    let versions = bench.json(&["version"]);
    assert_eq!(versions["client_version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(versions["table"]["schema_version"], "0.8.0");
    assert_eq!(versions["table"]["lambda_version"], json!(null));
    assert!(bench.ok(&["version"]).contains("table limiter: schema 0.8.0"));
    let check = bench.json(&["check"]);
    assert_eq!(
        (check["compatible"].clone(), check["state"].clone()),
        (json!(true), json!("compatible"))
    );
    assert_eq!(bench.ok(&["check"]), "table limiter is compatible\n");
    assert_eq!(
        bench.json(&["migrate", "--dry-run"]),
        json!({ "dry_run": true, "steps": [] })
    );
    assert_eq!(bench.ok(&["migrate"]), "the table is up to date\n");
    let forced = bench.json(&["migrate", "--dry-run", "--from", "0.7.0"]);
    assert!(!forced["steps"].as_array().unwrap().is_empty());
    assert!(bench.ok(&["migrate", "--from", "0.7.0"]).contains("0.8.0"));
}

#[test]
fn the_clients_version_needs_no_table() {
    let mut client = command();
    client.args(["version", "--client", "--output", "json"]);
    let versions = result(client).expect_exit(0).json();
    assert_eq!(versions["schema_version"], "0.8.0");
    assert!(versions.get("table").is_none());
    let mut short = command();
    short.arg("--version");
    assert_eq!(
        result(short).expect_exit(0).stdout,
        format!("zae-limiter {}\n", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn each_name_is_a_separate_table_in_the_file() {
    let bench = Bench::new();
    bench.ok(&["-n", "one", "system", "set-defaults", "-l", "rpm:1"]);
    assert_eq!(
        bench.json(&["-n", "two", "system", "get-defaults"])["configured"],
        false
    );
    let mut by_environment = bench.command(&["system", "get-defaults", "--output", "json"]);
    by_environment.env("ZAE_LIMITER_NAME", "one");
    assert_eq!(result(by_environment).expect_exit(0).json()["configured"], true);
}

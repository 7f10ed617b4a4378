//! The crates depend on each other only as ADR 4 allows.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

type Directions = BTreeMap<String, BTreeSet<String>>;

/// Which crates of ours each crate may use, optional dependencies included.
const ALLOWED: [(&str, &[&str]); 18] = [
    ("zae-limiter-schema", &[]),
    ("zae-limiter-dynamo", &["zae-limiter-schema"]),
    ("zae-limiter-report", &["zae-limiter-schema"]),
    ("zae-limiter-template", &["zae-limiter-schema"]),
    ("zae-limiter-testing", &["zae-limiter-schema"]),
    (
        "zae-limiter-stack",
        &["zae-limiter-schema", "zae-limiter-template"],
    ),
    (
        "zae-limiter",
        &[
            "zae-limiter-aggregator",
            "zae-limiter-dynamo",
            "zae-limiter-function",
            "zae-limiter-report",
            "zae-limiter-schema",
            "zae-limiter-stack",
        ],
    ),
    (
        "zae-limiter-function",
        &["zae-limiter-dynamo", "zae-limiter-schema"],
    ),
    (
        "zae-limiter-aggregator",
        &["zae-limiter-dynamo", "zae-limiter-function", "zae-limiter-schema"],
    ),
    (
        "zae-limiter-archiver",
        &["zae-limiter-function", "zae-limiter-schema"],
    ),
    (
        "zae-limiter-limits",
        &["zae-limiter", "zae-limiter-dynamo", "zae-limiter-schema"],
    ),
    (
        "zae-limiter-provisioner",
        &["zae-limiter", "zae-limiter-function", "zae-limiter-limits"],
    ),
    ("zae-limiter-server", &["zae-limiter"]),
    (
        "zae-limiter-cli",
        &[
            "zae-limiter",
            "zae-limiter-aggregator",
            "zae-limiter-archiver",
            "zae-limiter-dynamo",
            "zae-limiter-function",
            "zae-limiter-limits",
            "zae-limiter-report",
            "zae-limiter-schema",
            "zae-limiter-server",
            "zae-limiter-template",
        ],
    ),
    ("zae-limiter-python", &["zae-limiter"]),
    ("zae-limiter-bench", &[]),
    ("zae-limiter-demo", &[]),
    ("zae-limiter-tests", &[]),
];

fn allowed() -> Directions {
    let names = |all: &[&str]| all.iter().map(ToString::to_string).collect();
    ALLOWED
        .iter()
        .map(|(name, uses)| ((*name).to_owned(), names(uses)))
        .collect()
}

/// The packages of the workspace, as `cargo metadata` describes them.
fn packages() -> Vec<Value> {
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--no-deps",
            "--offline",
            "--locked",
            "--format-version",
            "1",
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

/// The normal dependencies between members of the workspace.
fn actual() -> Directions {
    let packages = packages();
    let name = |value: &Value| value["name"].as_str().unwrap().to_owned();
    let members: BTreeSet<_> = packages.iter().map(name).collect();
    let uses = |package: &Value| {
        let dependencies = package["dependencies"].as_array().unwrap().iter();
        let normal = dependencies.filter(|dependency| dependency["kind"].is_null());
        normal.map(name).filter(|used| members.contains(used)).collect()
    };
    packages
        .iter()
        .map(|package| (name(package), uses(package)))
        .collect()
}

/// The table of the ADR: names in backquotes, the crate first.
fn documented() -> Directions {
    let adr = include_str!("../../docs/adr/0004-which-crate-may-use-which.md");
    let rows = adr.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| {
        let mut names = row.split('`').skip(1).step_by(2).map(str::to_owned);
        (names.next().unwrap(), names.collect())
    })
    .collect()
}

#[test]
fn every_crate_uses_only_what_it_may() {
    let (actual, allowed) = (actual(), allowed());
    assert_eq!(
        actual.keys().collect::<Vec<_>>(),
        allowed.keys().collect::<Vec<_>>(),
        "every crate of the workspace has a row"
    );
    for (name, uses) in &actual {
        let forbidden: Vec<_> = uses.difference(&allowed[name]).collect();
        assert!(forbidden.is_empty(), "{name} must not use {forbidden:?}");
    }
}

#[test]
fn the_functions_are_built_without_the_embedded_store() {
    let packages = packages();
    let package = |name: &str| packages.iter().find(|package| package["name"] == name).unwrap();
    assert_eq!(
        package("zae-limiter-dynamo")["features"]["default"],
        Value::Null,
        "no feature is on by default"
    );
    for function in [
        "zae-limiter-function",
        "zae-limiter-aggregator",
        "zae-limiter-archiver",
        "zae-limiter-provisioner",
    ] {
        let dependencies = package(function)["dependencies"].as_array().unwrap().iter();
        let normal = dependencies.filter(|dependency| dependency["kind"].is_null());
        let embedded = normal.filter(|dependency| {
            dependency["name"] == "dynoxide-rs"
                || dependency["name"] == "rusqlite"
                || dependency["name"] == "zae-limiter-dynamo"
                    && dependency["features"] != Value::Array(vec![])
        });
        assert_eq!(embedded.count(), 0, "{function}");
    }
}

#[test]
fn the_allowed_directions_have_no_cycle() {
    let mut left = allowed();
    while !left.is_empty() {
        let free: Vec<_> = left
            .iter()
            .filter(|(_, uses)| uses.iter().all(|used| !left.contains_key(used)))
            .map(|(name, _)| name.clone())
            .collect();
        assert!(!free.is_empty(), "a cycle among {:?}", left.keys());
        left.retain(|name, _| !free.contains(name));
    }
}

#[test]
fn the_adr_has_the_same_table() {
    assert_eq!(documented(), allowed());
}

//! Every command that prints data prints it as text and as JSON.

use std::collections::BTreeSet;

use crate::tool::{Bench, result};

/// Commands on a table, each with arguments that make it do something on the table of [`prepared`].
const ON_A_TABLE: [&[&str]; 42] = [
    &["acquire", "user-1", "gpt-4", "-c", "rpm:1"],
    &["available", "user-1", "gpt-4"],
    &["audit", "list", "-e", "user-1"],
    &["buckets", "user-1"],
    &["check"],
    &["config", "get", "--level", "system"],
    &["config", "set", "--level", "system", "--on-unavailable", "allow"],
    &["entity", "children", "org"],
    &["entity", "create", "user-3"],
    &["entity", "delete", "user-1", "--yes"],
    &["entity", "delete-limits", "user-1", "-r", "gpt-4", "--yes"],
    &["entity", "get-limits", "user-1", "-r", "gpt-4"],
    &["entity", "list"],
    &["entity", "list-resources"],
    &["entity", "set-limits", "user-1", "-l", "rpm:7"],
    &["entity", "set-parent", "user-2", "org"],
    &["entity", "show", "user-1"],
    &["entity", "update", "user-1", "--display-name", "One"],
    &["limits", "apply", "limits.yaml", "--yes"],
    &["limits", "diff", "limits.yaml"],
    &["limits", "plan", "limits.yaml"],
    &["migrate", "--dry-run"],
    &["mode", "clear", "--system", "--yes"],
    &["mode", "get", "--system"],
    &["mode", "set", "observe", "--system"],
    &["prices", "delete", "gpt-4", "--yes"],
    &[
        "prices",
        "import",
        "litellm.json",
        "--model",
        "gpt-4",
        "--dry-run",
    ],
    &["prices", "set", "gpt-4", "--call-price", "$0.02"],
    &["prices", "show", "gpt-4"],
    &["reset", "user-1", "gpt-4", "--all", "--yes"],
    &["resource", "capacity", "gpt-4"],
    &["resource", "delete-defaults", "gpt-4", "--yes"],
    &["resource", "get-defaults", "gpt-4"],
    &["resource", "list"],
    &["resource", "set-defaults", "gpt-4", "-l", "rpm:8"],
    &["system", "delete-defaults", "--yes"],
    &["system", "get-defaults"],
    &["system", "set-defaults", "-l", "rpm:9"],
    &["top-up", "user-1", "gpt-4", "rpm:1"],
    &["usage", "list", "-e", "user-1"],
    &["usage", "summary", "-e", "user-1"],
    &["version"],
];

/// Commands that need a stack, a local cloud or nothing at all; other tests show what they print.
const ELSEWHERE: [&str; 22] = [
    "audit archive",
    "cfn-template",
    "completions",
    "delete",
    "deploy",
    "drift",
    "lambda-export",
    "list",
    "local down",
    "local env",
    "local logs",
    "local status",
    "local up",
    "man",
    "outputs",
    "plan",
    "policy",
    "serve",
    "status",
    "ui",
    "upgrade",
    "usage redrive",
];

/// A table with something at every level.
fn prepared() -> Bench {
    let bench = Bench::new();
    bench.write("limits.yaml", "system: {limits: {rpm: 50}}\n");
    bench.write("litellm.json", r#"{"gpt-4": {"input_cost_per_token": 2.5e-06}}"#);
    for arguments in [
        &["system", "set-defaults", "-l", "rpm:100"][..],
        &["resource", "set-defaults", "gpt-4", "-l", "rpm:20"],
        &["entity", "create", "org"],
        &["entity", "create", "user-1", "--parent", "org"],
        &["entity", "create", "user-2"],
        &["entity", "set-limits", "user-1", "-r", "gpt-4", "-l", "rpm:10"],
        &["acquire", "user-1", "gpt-4", "-c", "rpm:1"],
    ] {
        bench.ok(arguments);
    }
    bench
}

/// The same table, to be changed by one command.
fn copy(bench: &Bench) -> Bench {
    let copy = Bench::new();
    for file in std::fs::read_dir(bench.path("")).unwrap() {
        let file = file.unwrap();
        let name = file.file_name().into_string().unwrap();
        std::fs::copy(file.path(), copy.path(&name)).unwrap();
    }
    copy
}

#[test]
fn every_command_on_a_table_prints_text_and_json() {
    let bench = prepared();
    let run = |arguments: &[&str]| {
        let bench = copy(&bench);
        let mut command = bench.command(arguments);
        command.current_dir(bench.path(""));
        result(command).expect_exit(0)
    };
    for arguments in ON_A_TABLE {
        let text = run(arguments);
        assert!(!text.stdout.trim().is_empty(), "{arguments:?}");
        assert!(
            serde_json::from_str::<serde_json::Value>(&text.stdout).is_err(),
            "{arguments:?} is for people: {text:?}"
        );
        let json = run(&[arguments, &["--output", "json"]].concat());
        assert!(json.json().is_object(), "{arguments:?}: {json:?}");
        assert!(json.stderr.is_empty(), "{arguments:?}: {json:?}");
    }
}

#[test]
fn every_command_is_covered_by_this_test() {
    let on_a_table = ON_A_TABLE.iter().map(|arguments| match arguments {
        [
            group @ ("audit" | "config" | "entity" | "limits" | "mode" | "prices" | "resource" | "system"
            | "usage"),
            name,
            ..,
        ] => {
            format!("{group} {name}")
        }
        [name, ..] => (*name).to_owned(),
        [] => String::new(),
    });
    let known: BTreeSet<String> = on_a_table.chain(ELSEWHERE.map(str::to_owned)).collect();
    let there: BTreeSet<String> = leaves().into_iter().map(|(name, _)| name).collect();
    assert_eq!(known, there);
}

/// Every command that does something, by its whole name.
fn leaves() -> Vec<(String, clap::Command)> {
    let mut leaves = vec![];
    for command in zae_limiter_cli::command().get_subcommands() {
        let name = command.get_name();
        let below: Vec<_> = command
            .get_subcommands()
            .filter(|below| below.get_name() != "help")
            .map(|below| (format!("{name} {}", below.get_name()), below.clone()))
            .collect();
        if below.is_empty() && name != "help" {
            leaves.push((name.to_owned(), command.clone()));
        }
        leaves.extend(below);
    }
    leaves
}

#[test]
fn every_command_and_option_is_in_the_reference() {
    let reference = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/cli.md");
    let reference = std::fs::read_to_string(reference).unwrap();
    let words: BTreeSet<&str> = reference
        .split(|c: char| !c.is_ascii_alphanumeric() && !"-_".contains(c))
        .collect();
    let mut missing = vec![];
    for (name, command) in leaves() {
        if !reference.contains(&format!("zae-limiter {name}")) {
            missing.push(name.clone());
        }
        let options = command.get_arguments().filter(|option| !option.is_global_set());
        for long in options.filter_map(clap::Arg::get_long) {
            if long != "help" && !words.contains(format!("--{long}").as_str()) {
                missing.push(format!("{name} --{long}"));
            }
        }
    }
    assert!(missing.is_empty(), "not in docs/cli.md: {missing:?}");
}

//! Commands that delete or replace something ask first.

use std::collections::BTreeSet;

use crate::tool::{Bench, result};

/// Commands on a table that ask, with arguments that would change the table of [`prepared`].
const ON_A_TABLE: [&[&str]; 9] = [
    &["entity", "delete", "user-1"],
    &["entity", "delete-limits", "user-1"],
    &["resource", "delete-defaults", "gpt-4"],
    &["system", "delete-defaults"],
    &["limits", "apply", "limits.yaml"],
    &["mode", "clear", "--system"],
    &["mode", "set", "enforce", "--system"],
    &["prices", "delete", "gpt-4"],
    &["reset", "user-1", "gpt-4", "--all"],
];

/// Commands on a stack that ask; the tests on a local cloud run them.
const ON_A_STACK: [&str; 3] = ["delete", "deploy", "upgrade"];

/// Commands that do not ask: they read, or what they write can be written back by the same command. `usage redrive` deletes a dead letter
/// after it is counted, `local down` deletes the data of a local cloud, and `top-up` only adds. A new command belongs here, or asks.
const WITHOUT_A_QUESTION: [&str; 52] = [
    "acquire",
    "audit archive",
    "audit list",
    "available",
    "buckets",
    "cfn-template",
    "check",
    "completions",
    "config get",
    "config set",
    "drift",
    "entity children",
    "entity create",
    "entity get-limits",
    "entity list",
    "entity list-resources",
    "entity set-limits",
    "entity set-parent",
    "entity show",
    "entity update",
    "lambda-export",
    "limits diff",
    "limits plan",
    "list",
    "local down",
    "local env",
    "local logs",
    "local status",
    "local up",
    "man",
    "migrate",
    "mode get",
    "outputs",
    "plan",
    "policy",
    "prices import",
    "prices set",
    "prices show",
    "resource capacity",
    "resource get-defaults",
    "resource list",
    "resource set-defaults",
    "serve",
    "status",
    "system get-defaults",
    "system set-defaults",
    "top-up",
    "ui",
    "usage list",
    "usage redrive",
    "usage summary",
    "version",
];

/// The full names of all commands without subcommands.
fn leaves(command: &clap::Command, name: &str, found: &mut BTreeSet<String>) {
    let mut children = command
        .get_subcommands()
        .filter(|child| child.get_name() != "help")
        .peekable();
    if children.peek().is_none() {
        found.insert(name.to_owned());
    }
    for child in children {
        leaves(child, format!("{name} {}", child.get_name()).trim(), found);
    }
}

#[test]
fn every_command_asks_or_is_listed_as_one_that_does_not() {
    let (mut all, mut asking) = (BTreeSet::new(), BTreeSet::new());
    leaves(&zae_limiter_cli::command(), "", &mut all);
    with_yes(&zae_limiter_cli::command(), "", &mut asking);
    let silent: BTreeSet<_> = all.difference(&asking).map(String::as_str).collect();
    assert_eq!(silent, WITHOUT_A_QUESTION.into());
}

/// The full names of all commands that have `--yes`.
fn with_yes(command: &clap::Command, name: &str, found: &mut BTreeSet<String>) {
    if command
        .get_arguments()
        .any(|argument| argument.get_long() == Some("yes"))
    {
        found.insert(name.to_owned());
    }
    for child in command.get_subcommands() {
        with_yes(child, format!("{name} {}", child.get_name()).trim(), found);
    }
}

#[test]
fn every_command_that_can_skip_the_prompt_is_tested() {
    let mut found = BTreeSet::new();
    with_yes(&zae_limiter_cli::command(), "", &mut found);
    let on_a_table = ON_A_TABLE.iter().map(|arguments| {
        let words = [1, 2].map(|words| arguments[..words].join(" "));
        let name = words.iter().find(|name| found.contains(*name));
        name.cloned().unwrap_or_default()
    });
    let tested: BTreeSet<String> = on_a_table.chain(ON_A_STACK.map(str::to_owned)).collect();
    assert_eq!(found, tested);
}

fn prepared() -> Bench {
    let bench = Bench::new();
    bench.write("limits.yaml", "system: {limits: {rpm: 50}}\n");
    for arguments in [
        &["system", "set-defaults", "-l", "rpm:100"][..],
        &["resource", "set-defaults", "gpt-4", "-l", "rpm:20"],
        &["entity", "create", "user-1"],
        &["entity", "set-limits", "user-1", "-l", "rpm:10"],
        &["prices", "set", "gpt-4", "--call-price", "$0.01"],
        &["mode", "set", "observe", "--system"],
    ] {
        bench.ok(arguments);
    }
    bench
}

#[test]
fn without_a_terminal_and_without_yes_nothing_is_changed() {
    let bench = prepared();
    let state = || {
        [
            &["system", "get-defaults"][..],
            &["resource", "get-defaults", "gpt-4"],
            &["entity", "show", "user-1"],
            &["entity", "get-limits", "user-1"],
            &["mode", "get", "--system"],
        ]
        .map(|arguments| bench.ok(arguments))
    };
    let before = state();
    for arguments in ON_A_TABLE {
        let mut command = bench.command(arguments);
        command.current_dir(bench.path(""));
        let refused = result(command).expect_exit(2);
        assert!(
            refused.stderr.contains("pass --yes"),
            "{arguments:?}: {refused:?}"
        );
    }
    assert_eq!(state(), before);
}

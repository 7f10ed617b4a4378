//! Commands that delete or replace something ask first.

use std::collections::BTreeSet;

use crate::tool::{Bench, result};

/// Commands on a table that ask, with arguments that would change the table of [`prepared`].
const ON_A_TABLE: [&[&str]; 5] = [
    &["entity", "delete", "user-1"],
    &["entity", "delete-limits", "user-1"],
    &["resource", "delete-defaults", "gpt-4"],
    &["system", "delete-defaults"],
    &["limits", "apply", "limits.yaml"],
];

/// Commands on a stack that ask; the tests on a local cloud run them.
const ON_A_STACK: [&str; 3] = ["delete", "deploy", "upgrade"];

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
    let on_a_table = ON_A_TABLE.iter().map(|arguments| arguments[..2].join(" "));
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

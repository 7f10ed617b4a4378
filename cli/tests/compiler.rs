//! The compiler of demo, tests and benchmarks, `scripts/rustc-wrapper`: what it adds to the arguments that cargo gives it.

use std::process::Command;

use crate::scripts::{program, run, script};

const ALL: &str = "-Zhint-mostly-unused -Zmir-opt-level=2 -Zinline-mir=yes";
const BY_CARGO: &str = "--error-format=json --crate-type lib";

/// What the compiler is called with: its arguments, and whether it may use unstable options.
fn called(options: &str, arguments: &str) -> String {
    let directory = tempfile::tempdir().unwrap();
    let compiler = directory.path().join("rustc");
    program(&compiler, "#!/bin/sh\necho \"${RUSTC_BOOTSTRAP:-0}: $*\"\n");
    let (code, out, error) = run(Command::new(script("rustc-wrapper"))
        .env("ZAE_UNSTABLE_OPTIONS", options)
        .env_remove("RUSTC_BOOTSTRAP")
        .arg(&compiler)
        .args(arguments.split(' ')));
    assert_eq!((code, error.as_str()), (Some(0), ""));
    out.trim_end().to_owned()
}

#[test]
fn unstable_options_are_used_only_where_they_help_and_the_compiler_knows_them() {
    let of = |name: &str| format!("--crate-name {name} {BY_CARGO}");
    let inlined = |arguments: &str| format!("1: {arguments} -Zmir-opt-level=2 -Zinline-mir=yes");
    assert_eq!(called(ALL, &of("tokio")), inlined(&of("tokio")));
    let sdk = of("aws_sdk_iam");
    assert_eq!(called(ALL, &sdk), format!("1: {sdk} -Zhint-mostly-unused"));
    let dynamodb = of("aws_sdk_dynamodb");
    assert_eq!(called(ALL, &dynamodb), format!("0: {dynamodb}"));
    for name in ["tokio", "aws_sdk_iam"] {
        assert_eq!(called("", &of(name)), format!("0: {}", of(name)));
    }
    assert_eq!(
        called("-Zinline-mir=yes", &of("tokio")),
        format!("1: {} -Zinline-mir=yes", of("tokio"))
    );
}

#[test]
fn a_build_script_that_asks_what_the_compiler_can_do_sees_it_as_it_is() {
    for question in ["--crate-name probe --emit=metadata", "--print cfg", "-vV"] {
        assert_eq!(called(ALL, question), format!("0: {question}"));
    }
}

#[test]
fn test_programs_are_not_optimized() {
    let test = format!("--crate-name store {BY_CARGO} --test -C opt-level=1");
    assert_eq!(called("", &test), format!("0: {test} -Copt-level=0"));
    let benchmark = format!("--crate-name acquire {BY_CARGO} -C opt-level=2 --cfg test");
    assert_eq!(called("", &benchmark), format!("0: {benchmark}"));
    let simulation = format!("--crate-name zae_limiter_aggregator {BY_CARGO} --test -C opt-level=1");
    assert_eq!(called("", &simulation), format!("0: {simulation}"));
}

#[test]
fn the_compiler_is_asked_which_options_it_knows() {
    let directory = tempfile::tempdir().unwrap();
    let compiler = directory.path().join("rustc");
    for (known, listed) in [("*", ALL), ("-Zmir*", "-Zmir-opt-level=2"), ("none", "")] {
        program(
            &compiler,
            &format!(
                "#!/bin/sh\n[ \"$RUSTC_BOOTSTRAP\" = 1 ] || exit 1\ncase $1 in {known}) ;; *) exit 1 ;; esac\n"
            ),
        );
        let (code, out, error) = run(Command::new(script("rustc-wrapper"))
            .env("RUSTC", &compiler)
            .arg("--unstable-options"));
        assert_eq!((code, out.trim_end(), error.as_str()), (Some(0), listed, ""));
    }
}

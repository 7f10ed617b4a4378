//! `scripts/aws-smoke`, on a local cloud.

use std::path::Path;
use std::process::Command;

use crate::local::{Cloud, ministack};
use crate::scripts::program;

/// The script for a cloud, with archives of functions that this machine can run.
fn smoke(cloud: &Cloud, limiter: &Path) -> Command {
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let archives = project.join("target/dev-functions");
    assert!(
        archives.is_dir(),
        "{} is not there: run make dev-functions",
        archives.display()
    );
    let mut command = Command::new(project.join("scripts/aws-smoke"));
    command
        .args(["smoke-test", "--code-directory"])
        .arg(&archives)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", "/nonexistent")
        .env("USER", "tester")
        .env("AWS_EC2_METADATA_DISABLED", "true")
        .env("ZAE_LIMITER", limiter)
        .env("AWS_ENDPOINT_URL", format!("http://127.0.0.1:{}", cloud.port))
        .env("AWS_ACCESS_KEY_ID", "test")
        .env("AWS_SECRET_ACCESS_KEY", "test")
        .env("AWS_REGION", "us-east-1")
        .env("ZAE_AWS_PYTHON", ministack().with_file_name("python"));
    command
}

#[test]
fn the_smoke_test_for_an_account_runs_to_its_end_on_a_local_cloud() {
    let cloud = Cloud::new();
    cloud.up().expect_exit(0);
    let limiter = assert_cmd::cargo::cargo_bin("zae-limiter");
    let output = smoke(&cloud, &limiter).output().unwrap();
    let table = String::from_utf8(output.stdout).unwrap();
    let rows = |kind: &str| table.lines().filter(|line| line.starts_with(kind)).count();
    assert!(output.status.success(), "{table}");
    assert_eq!(
        (rows("held"), rows("NOT HELD"), rows("not shown")),
        (73, 0, 41),
        "{table}"
    );
    assert!(
        !table.contains("cleanup"),
        "the steps themselves leave nothing: {table}"
    );
}

#[test]
fn a_smoke_test_that_is_stopped_removes_the_protected_table_and_every_bucket() {
    let cloud = Cloud::new();
    cloud.up().expect_exit(0);
    // The command, but for the first `check`, which stops the script that runs it.
    let limiter = cloud.bench.path("limiter");
    let real = assert_cmd::cargo::cargo_bin("zae-limiter");
    let text = format!(
        "#!/bin/sh\nif [ \"$1\" = check ]; then kill -TERM $PPID; exit 0; fi\nexec '{}' \"$@\"\n",
        real.display()
    );
    program(&limiter, &text);
    let mut stopped = smoke(&cloud, &limiter);
    let output = stopped.arg("--enable-deletion-protection").output().unwrap();
    let table = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(143), "{table}");
    let rows: Vec<&str> = table
        .lines()
        .filter(|row| !row.starts_with("not shown"))
        .collect();
    assert_eq!(
        rows,
        [
            "held       a stack is created",
            "held       deploying again changes nothing",
            "held       cleanup: deletion protection is turned off",
            "held       cleanup: the stack and its data are purged",
            "held       cleanup: buckets are removed",
            "held       cleanup: nothing is left",
        ]
    );
}

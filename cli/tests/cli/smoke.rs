//! `scripts/aws-smoke`, on a local cloud.

use std::path::Path;
use std::process::Command;

use crate::local::{Cloud, ministack};

#[test]
fn the_smoke_test_for_an_account_runs_to_its_end_on_a_local_cloud() {
    let cloud = Cloud::new();
    cloud.up().expect_exit(0);
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let archives = project.join("target/dev-functions");
    assert!(
        archives.is_dir(),
        "{} is not there: run make dev-functions",
        archives.display()
    );
    let output = Command::new(project.join("scripts/aws-smoke"))
        .args(["smoke-test", "--code-directory"])
        .arg(&archives)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", "/nonexistent")
        .env("USER", "tester")
        .env("AWS_EC2_METADATA_DISABLED", "true")
        .env("ZAE_LIMITER", assert_cmd::cargo::cargo_bin("zae-limiter"))
        .env("AWS_ENDPOINT_URL", format!("http://127.0.0.1:{}", cloud.port))
        .env("AWS_ACCESS_KEY_ID", "test")
        .env("AWS_SECRET_ACCESS_KEY", "test")
        .env("AWS_REGION", "us-east-1")
        .env("ZAE_AWS_PYTHON", ministack().with_file_name("python"))
        .output()
        .unwrap();
    let table = String::from_utf8(output.stdout).unwrap();
    let rows = |kind: &str| table.lines().filter(|line| line.starts_with(kind)).count();
    assert!(output.status.success(), "{table}");
    assert_eq!(
        (rows("held"), rows("NOT HELD"), rows("not shown")),
        (36, 0, 24),
        "{table}"
    );
}

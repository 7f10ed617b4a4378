//! The build script of the feature `bundled-functions`, which cargo runs: here it is compiled and run alone.

use std::path::Path;
use std::process::Command;

/// What the script prints, and the list that it writes.
fn run(script: &Path, directory: &Path, feature: bool) -> (String, Option<String>) {
    let out = tempfile::tempdir().unwrap();
    let mut command = Command::new(script);
    command
        .env_clear()
        .env("ZAE_LIMITER_FUNCTIONS", directory)
        .env("CARGO_MANIFEST_DIR", env!("CARGO_MANIFEST_DIR"))
        .env("OUT_DIR", out.path());
    if feature {
        command.env("CARGO_FEATURE_BUNDLED_FUNCTIONS", "1");
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let list = std::fs::read_to_string(out.path().join("bundled.rs")).ok();
    (String::from_utf8(output.stdout).unwrap(), list)
}

#[test]
fn archives_are_compiled_in_and_a_missing_one_is_a_compile_error_that_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("build-script");
    let compiled = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
        .args(["--edition", "2024", "-o"])
        .arg(&script)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("build.rs"))
        .output()
        .unwrap();
    assert!(compiled.status.success(), "{compiled:?}");

    let archives = folder.path().join("functions");
    let (quiet, list) = run(&script, &archives, false);
    assert!(!quiet.contains("error") && list.is_none(), "{quiet}");

    let (printed, list) = run(&script, &archives, true);
    assert!(list.is_none());
    let error = printed
        .lines()
        .find_map(|line| line.strip_prefix("cargo::error="))
        .unwrap();
    for part in [
        "make functions",
        "ZAE_LIMITER_FUNCTIONS",
        "lambda-export",
        "x86_64/aggregator.zip",
    ] {
        assert!(error.contains(part), "{error}");
    }

    std::fs::create_dir_all(archives.join("arm64")).unwrap();
    std::fs::write(archives.join("arm64/aggregator.zip"), b"PK").unwrap();
    let (printed, _) = run(&script, &archives, true);
    assert!(
        printed.contains("cargo::error=") && printed.contains("arm64/archiver.zip"),
        "an architecture has all: {printed}"
    );

    for function in ["archiver", "provisioner"] {
        std::fs::write(archives.join(format!("arm64/{function}.zip")), b"PK").unwrap();
    }
    let (printed, list) = run(&script, &archives, true);
    assert!(!printed.contains("cargo::error="), "{printed}");
    let list = list.unwrap();
    assert_eq!(list.matches("include_bytes!").count(), 3, "{list}");
    assert!(list.contains(r#"("arm64", "archiver", "#), "{list}");
    // A path that is not there would be a change in every build.
    let watched: Vec<&str> = printed
        .lines()
        .filter_map(|line| line.strip_prefix("cargo::rerun-if-changed="))
        .collect();
    assert_eq!(watched, ["build.rs", archives.to_str().unwrap()]);
}

//! The archives that `make functions` leaves, and the script that packs them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, SystemTime};

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

fn pack(bootstrap: &Path, archive: &Path) -> Output {
    Command::new("python3")
        .arg(workspace().join("scripts/zip-function.py"))
        .args([bootstrap, archive])
        .output()
        .expect("python3 can be started")
}

/// A place for this test's files that is empty at its start.
fn place(name: &str) -> PathBuf {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&place);
    fs::create_dir_all(&place).unwrap();
    place
}

#[test]
fn an_archive_depends_on_the_binary_alone() {
    let place = place("packing-same");
    let mut archives = vec![];
    for (name, age) in [("first", 0), ("second", 1_000_000)] {
        let bootstrap = place.join(name);
        fs::write(&bootstrap, b"\x7fELF the same binary").unwrap();
        let made = SystemTime::now() - Duration::from_secs(age);
        fs::File::options()
            .write(true)
            .open(&bootstrap)
            .unwrap()
            .set_modified(made)
            .unwrap();
        let archive = place.join(format!("{name}.zip"));
        assert!(pack(&bootstrap, &archive).status.success());
        archives.push(fs::read(archive).unwrap());
    }
    assert_eq!(archives[0], archives[1]);
}

#[test]
fn an_archive_that_is_too_large_fails_the_build() {
    let place = place("packing-large");
    // Nothing that compresses: every byte follows from the last by a multiplication.
    let mut state = 1_u32;
    let noise = (0..6_000_000).map(|_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    });
    fs::write(place.join("bootstrap"), noise.collect::<Vec<u8>>()).unwrap();
    let output = pack(&place.join("bootstrap"), &place.join("large.zip"));
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("a function may have 5,000,000"));
}

#[test]
fn the_functions_are_under_5_mb_and_hold_no_path_of_the_machine_that_built_them() {
    let built = workspace().join("target/functions");
    assert!(
        built.is_dir(),
        "{} is not there: run make functions",
        built.display()
    );
    let home =
        std::env::var("CARGO_HOME").or_else(|_| std::env::var("HOME").map(|home| format!("{home}/.cargo")));
    let paths = [workspace().display().to_string(), home.unwrap()];
    for architecture in fs::read_dir(&built).unwrap().map(|entry| entry.unwrap().path()) {
        for function in ["aggregator", "archiver"] {
            let archive = architecture.join(format!("{function}.zip"));
            let size = fs::metadata(&archive).unwrap().len();
            assert!(size < 5_000_000, "{} has {size} bytes", archive.display());
            let binary = architecture.join(format!("built/zae-limiter-{function}/bootstrap"));
            let binary = fs::read(binary).unwrap();
            for path in &paths {
                let found = binary.windows(path.len()).any(|bytes| bytes == path.as_bytes());
                assert!(!found, "{function} holds {path}");
            }
        }
    }
}

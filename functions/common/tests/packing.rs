//! The script that packs the functions, and what it refuses.

#![allow(clippy::unwrap_used, clippy::expect_used)]

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
    pack_with(&[], bootstrap, archive)
}

fn pack_with(options: &[&str], bootstrap: &Path, archive: &Path) -> Output {
    Command::new("python3")
        .arg(workspace().join("scripts/zip-function.py"))
        .args(options)
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
fn an_archive_holds_the_program_alone_and_executable() {
    const READ: &str = "import sys, zipfile
archive = zipfile.ZipFile(sys.argv[1])
[entry] = archive.infolist()
print(entry.filename, oct(entry.external_attr >> 16), entry.create_system, archive.read(entry).decode())";
    let place = place("packing-read");
    let (bootstrap, archive) = (place.join("bootstrap"), place.join("function.zip"));
    fs::write(&bootstrap, "a program, a program, a program").unwrap();
    for options in [&[][..], &["--dev"][..]] {
        assert!(pack_with(options, &bootstrap, &archive).status.success());
        let read = Command::new("python3").args(["-c", READ]).arg(&archive).output();
        let read = String::from_utf8(read.unwrap().stdout).unwrap();
        assert_eq!(
            read.trim(),
            "bootstrap 0o100755 3 a program, a program, a program"
        );
    }
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
    assert!(String::from_utf8_lossy(&output.stderr).contains("a function may have 3,500,000"));
}

#[test]
fn a_binary_with_a_path_of_the_machine_that_built_it_fails_the_build() {
    let place = place("packing-path");
    let bootstrap = place.join("bootstrap");
    let archive = place.join("function.zip");
    fs::write(
        &bootstrap,
        b"\x7fELF panicked at /home/someone/project/src/main.rs",
    )
    .unwrap();
    let without = |path| pack_with(&["--without", path], &bootstrap, &archive);
    let output = without("/home/someone");
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("contains the path /home/someone"));
    assert!(!archive.exists(), "nothing is left to deploy");
    assert!(without("/home/another").status.success());
    assert!(archive.exists());
}

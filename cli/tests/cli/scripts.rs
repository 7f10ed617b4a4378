//! The scripts that choose and check the architecture of functions.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// Writes a program that can be run.
pub(crate) fn program(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../scripts")
        .join(name)
}

/// The exit code, and what the command printed.
fn run(command: &mut Command) -> (Option<i32>, String, String) {
    let output = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn the_architecture_of_an_options_file_is_read_from_yaml_and_json() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("options");
    for (options, architecture) in [
        ("", "x86_64"),
        ("lambda_memory: 512\n", "x86_64"),
        ("lambda_architecture: x86_64\n", "x86_64"),
        ("lambda_memory: 512\nlambda_architecture: arm64\n", "arm64"),
        ("lambda_architecture: \"arm64\" # cheaper\n", "arm64"),
        ("lambda_architecture: 'arm64'\n", "arm64"),
        ("# lambda_architecture: arm64\n", "x86_64"),
        (
            r#"{"lambda_memory": 512, "lambda_architecture": "arm64"}"#,
            "arm64",
        ),
        (r#"{"lambda_architecture":"arm64","lambda_memory":512}"#, "arm64"),
    ] {
        std::fs::write(&file, options).unwrap();
        let found = run(Command::new(script("options-architecture")).arg(&file));
        assert_eq!(
            (found.0, found.1.trim()),
            (Some(0), architecture),
            "{options}: {}",
            found.2
        );
    }
    let without_file = run(Command::new(script("options-architecture")).arg(""));
    assert_eq!((without_file.0, without_file.1.trim()), (Some(0), "x86_64"));
}

#[test]
fn an_unknown_architecture_and_a_missing_options_file_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("options");
    std::fs::write(&file, "lambda_architecture: riscv\n").unwrap();
    let (code, out, error) = run(Command::new(script("options-architecture")).arg(&file));
    assert_eq!((code, out.as_str()), (Some(2), ""));
    assert!(
        error.contains("lambda_architecture \"riscv\"") && error.contains("x86_64 or arm64"),
        "{error}"
    );
    let (code, out, error) = run(Command::new(script("options-architecture")).arg("/nonexistent"));
    assert_eq!((code, out.as_str()), (Some(2), ""));
    assert!(error.contains("no options file /nonexistent"), "{error}");
}

/// The start of a program for a machine, as ELF numbers them.
fn elf(machine: u16) -> Vec<u8> {
    let mut header = vec![0; 64];
    header[..4].copy_from_slice(b"\x7fELF");
    header[18..20].copy_from_slice(&machine.to_le_bytes());
    header
}

const X86_64: u16 = 0x3E;
const ARM64: u16 = 0xB7;
const RISCV: u16 = 0xF3;

#[test]
fn a_program_for_another_architecture_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("bootstrap");
    let check = |content: &[u8], wanted: &str| {
        std::fs::write(&file, content).unwrap();
        run(Command::new(script("elf-architecture")).arg(&file).arg(wanted))
    };
    for (machine, architecture) in [(X86_64, "x86_64"), (ARM64, "arm64")] {
        let (code, _, error) = check(&elf(machine), architecture);
        assert_eq!(code, Some(0), "{error}");
    }
    for (content, wanted, complaint) in [
        (elf(X86_64), "arm64", "is built for x86_64, not for arm64"),
        (elf(ARM64), "x86_64", "is built for arm64, not for x86_64"),
        (elf(RISCV), "x86_64", "is built for machine 0xf3, not for x86_64"),
        (
            b"#!/bin/sh\necho not a program at all\n".to_vec(),
            "x86_64",
            "is not an ELF program",
        ),
        (elf(X86_64)[..19].to_vec(), "x86_64", "is not an ELF program"),
    ] {
        let (code, _, error) = check(&content, wanted);
        assert_eq!(code, Some(1), "{complaint}");
        assert!(error.contains(complaint), "{error}");
    }
}

/// A tree with the scripts of this one, a toolchain that has the standard library of x86_64 only, and a cargo that builds
/// programs for x86_64 whatever it is asked for.
struct Tree(TempDir);

impl Tree {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        for part in ["scripts", "bin", "sysroot/lib/rustlib/x86_64-unknown-linux-gnu"] {
            std::fs::create_dir_all(root.join(part)).unwrap();
        }
        for name in [
            "build-functions",
            "toolchain",
            "elf-architecture",
            "zip-function.py",
        ] {
            std::fs::copy(script(name), root.join("scripts").join(name)).unwrap();
        }
        std::fs::write(root.join("Cargo.toml"), "rust-toolchain = \"1.0.0\"\n").unwrap();
        std::fs::write(root.join("program"), elf(X86_64)).unwrap();
        let rustc = format!(
            "#!/bin/sh\n[ \"$1\" = --print ] && echo '{}/sysroot' || echo 'rustc 1.0.0 (test)'\n",
            root.display()
        );
        program(&root.join("bin/rustc"), &rustc);
        let cargo = "#!/bin/sh\ntouch cargo-ran\nwhile [ \"$1\" != --lambda-dir ]; do shift; done\n\
            for name in aggregator archiver provisioner; do mkdir -p \"$2/zae-limiter-$name\"; \
            cp program \"$2/zae-limiter-$name/bootstrap\"; done\n";
        program(&root.join("bin/cargo"), cargo);
        Self(directory)
    }

    fn has(&self, path: &str) -> bool {
        self.0.path().join(path).exists()
    }

    fn add_target(&self, target: &str) {
        std::fs::create_dir(self.0.path().join("sysroot/lib/rustlib").join(target)).unwrap();
    }

    fn build(&self, architecture: &str) -> (Option<i32>, String, String) {
        let path = std::env::var("PATH").unwrap_or_default();
        run(Command::new(self.0.path().join("scripts/build-functions"))
            .arg(architecture)
            .env("PATH", format!("{}:{path}", self.0.path().join("bin").display())))
    }
}

#[test]
fn functions_are_not_built_for_an_unknown_architecture_or_without_its_standard_library() {
    let tree = Tree::new();
    let (code, _, error) = tree.build("riscv");
    assert_eq!(code, Some(2));
    assert!(
        error.contains("the architecture is \"riscv\"; it must be x86_64 or arm64"),
        "{error}"
    );
    let (code, _, error) = tree.build("arm64");
    assert_eq!(code, Some(1));
    assert!(
        error.contains("rustup target add aarch64-unknown-linux-gnu"),
        "{error}"
    );
    assert!(!tree.has("cargo-ran"), "nothing was compiled");
}

#[test]
fn functions_are_not_packed_if_they_were_built_for_another_architecture() {
    let tree = Tree::new();
    tree.add_target("aarch64-unknown-linux-gnu");
    let (code, _, error) = tree.build("arm64");
    assert_eq!(code, Some(1));
    assert!(error.contains("is built for x86_64, not for arm64"), "{error}");
    assert!(tree.has("cargo-ran") && !tree.has("target/functions/arm64/aggregator.zip"));
    let (code, _, error) = tree.build("x86_64");
    assert_eq!(code, Some(0), "{error}");
    assert!(tree.has("target/functions/x86_64/aggregator.zip"));
}

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

pub(crate) fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../scripts")
        .join(name)
}

/// The exit code, and what the command printed.
pub(crate) fn run(command: &mut Command) -> (Option<i32>, String, String) {
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
        for part in [
            "scripts",
            "functions",
            "bin",
            "sysroot/lib/rustlib/x86_64-unknown-linux-gnu",
        ] {
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
        // The module of .venv/cargo-lambda.
        let deflate =
            "import zlib\ndef deflate_compress(data, level):\n\x20   return zlib.compress(data)[2:-4]\n";
        std::fs::write(root.join("scripts/deflate.py"), deflate).unwrap();
        let pin = "[toolchain]\nchannel = \"1.0.0\"\n";
        std::fs::write(root.join("functions/rust-toolchain.toml"), pin).unwrap();
        std::fs::write(root.join("program"), elf(X86_64)).unwrap();
        let rustc = format!(
            "#!/bin/sh\n[ \"$1\" = --print ] && echo '{}/sysroot' || echo 'rustc 1.0.0 (test)'\n",
            root.display()
        );
        program(&root.join("bin/rustc"), &rustc);
        let cargo = "#!/bin/sh\necho \"$RUSTUP_TOOLCHAIN\" > ../cargo-ran\nwhile [ \"$1\" != --lambda-dir ]; do shift; done\n\
            for name in aggregator archiver provisioner; do mkdir -p \"$2/zae-limiter-$name\"; \
            cp ../program \"$2/zae-limiter-$name/bootstrap\"; done\n";
        program(&root.join("bin/cargo"), cargo);
        Self(directory)
    }

    fn has(&self, path: &str) -> bool {
        self.0.path().join(path).exists()
    }

    fn add_target(&self, target: &str) {
        std::fs::create_dir(self.0.path().join("sysroot/lib/rustlib").join(target)).unwrap();
    }

    /// A rustc of rustup that has no toolchain of the pinned name, but this one, which it uses outside of `functions`.
    fn add_rustup(&self, default: &str, version: &str) {
        let sysroot = self.0.path().join("sysroot");
        let rustc = format!(
            "#!/bin/sh\nif [ \"$RUSTUP_TOOLCHAIN\" != {default} ] && [ -e rust-toolchain.toml ]; then\n\
             echo \"error: toolchain '1.0.0' is not installed\" >&2; exit 1; fi\n\
             [ \"$1\" = --print ] && echo '{}' || echo 'rustc {version} (test)'\n",
            sysroot.display()
        );
        program(&self.0.path().join("bin/rustc"), &rustc);
        let rustup = format!("#!/bin/sh\n[ -e rust-toolchain.toml ] || echo '{default} (default)'\n");
        program(&self.0.path().join("bin/rustup"), &rustup);
    }

    fn build(&self, architecture: &str) -> (Option<i32>, String, String) {
        let path = std::env::var("PATH").unwrap_or_default();
        run(Command::new(self.0.path().join("scripts/build-functions"))
            .arg(architecture)
            .env_remove("RUSTUP_TOOLCHAIN")
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

#[test]
fn functions_are_built_with_the_default_toolchain_where_the_pinned_one_cannot_be_had() {
    let tree = Tree::new();
    let built_with = || std::fs::read_to_string(tree.0.path().join("cargo-ran")).unwrap();
    let (code, _, error) = tree.build("x86_64");
    assert_eq!((code, built_with().trim()), (Some(0), ""), "{error}");
    assert!(
        !error.contains("hashes"),
        "rustup or not, it is the pinned version: {error}"
    );

    for (version, warned) in [("1.0.0", false), ("1.1.0", true)] {
        tree.add_rustup("stable-test", version);
        let (code, _, error) = tree.build("x86_64");
        assert_eq!((code, built_with().trim()), (Some(0), "stable-test"), "{error}");
        let warning =
            format!("rustc {version} and releases are built with 1.0.0: hashes of archives will differ");
        assert_eq!(error.contains(&warning), warned, "{error}");
    }
}

#[test]
fn the_toolchain_is_pinned_to_one_version_in_one_place() {
    let (code, pinned, error) = run(&mut Command::new(script("toolchain")));
    assert_eq!(code, Some(0), "{error}");
    let parts: Vec<u32> = pinned
        .trim()
        .split('.')
        .map(|part| part.parse().unwrap())
        .collect();
    assert_eq!(parts.len(), 3, "a version, not a channel that moves: {pinned}");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let file = std::fs::read_to_string(root.join("functions/rust-toolchain.toml")).unwrap();
    assert!(
        file.contains(&format!("channel = \"{}\"", pinned.trim())),
        "{file}"
    );
    for elsewhere in ["rust-toolchain.toml", "rust-toolchain"] {
        assert!(
            !root.join(elsewhere).exists(),
            "docs/adr/0095 says why there is no {elsewhere}"
        );
    }
}

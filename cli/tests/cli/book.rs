//! The shell blocks of the book: run on embedded tables and on a local cloud, or checked where they need an account.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use tempfile::TempDir;

use crate::local::{free_port, ministack};
use crate::markdown::{Block, blocks, readmes};

/// The command as the pages call it. Local clouds get a port of their own.
const PRELUDE: &str = r#"
set -euo pipefail
zae-limiter() {
    if [[ $1 == local ]]; then command zae-limiter "$@" --port "$BOOK_PORT"; else command zae-limiter "$@"; fi
}
"#;

/// The options of a stack without functions, whose archives need a build of their own.
const OPTIONS: &str = "enable_aggregator: false\nenable_audit_archival: false\n";

/// Every page with shell blocks, by its path.
fn pages() -> BTreeMap<String, Vec<Block>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut files: Vec<_> = readmes(root)
        .into_iter()
        .map(|readme| root.join(readme))
        .collect();
    let mut folders = vec![root.join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                files.push(path);
            }
        }
    }
    let shell = |path: &PathBuf| {
        let mut found = blocks(&std::fs::read_to_string(path).unwrap());
        found.retain(|block| block.language() == "sh");
        let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
        (!found.is_empty()).then_some((name, found))
    };
    files.iter().filter_map(shell).collect()
}

/// The blocks of a page that are run, as one script.
fn script(blocks: &[Block]) -> Option<String> {
    let run: Vec<_> = blocks
        .iter()
        .filter(|block| !block.is("no_run"))
        .map(|block| block.text.as_str())
        .collect();
    (!run.is_empty()).then(|| run.join("\n"))
}

/// True if a script deploys a stack or uses one, and does not start a cloud itself.
fn needs_cloud(script: &str) -> bool {
    script.contains(" -n my-app") && !script.contains("zae-limiter local up")
}

/// An empty directory with the options file that pages talk about, and bash with nothing but the command.
struct Shell {
    directory: TempDir,
    port: String,
}

impl Shell {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("options.yaml"), OPTIONS).unwrap();
        Self {
            directory,
            port: free_port(),
        }
    }

    fn run(&self, page: &str, script: &str) {
        let bin = assert_cmd::cargo::cargo_bin("zae-limiter");
        let path = format!(
            "{}:{}",
            bin.parent().unwrap().display(),
            std::env::var("PATH").unwrap()
        );
        let cloud = if needs_cloud(script) {
            "zae-limiter local up\neval \"$(zae-limiter local env)\"\n"
        } else {
            ""
        };
        let output = Command::new("bash")
            .args(["-c", &format!("{PRELUDE}{cloud}{script}")])
            .current_dir(self.directory.path())
            .env_clear()
            .env("PATH", path)
            .env("HOME", self.directory.path())
            .env("USER", "tester")
            .env("AWS_EC2_METADATA_DISABLED", "true")
            .env("ZAE_LIMITER_STATE_DIR", self.directory.path().join("state"))
            .env("ZAE_LIMITER_MINISTACK", ministack())
            .env("BOOK_PORT", &self.port)
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{page}: {}\n{}\n{}",
            output.status,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let mut down = crate::tool::command();
        down.env("ZAE_LIMITER_STATE_DIR", self.directory.path().join("state"))
            .args(["local", "down", "--port", &self.port]);
        let _ = down.output();
    }
}

fn run_pages(on_a_cloud: bool) -> usize {
    let scripts: Vec<_> = pages()
        .into_iter()
        .filter_map(|(page, blocks)| Some((page, script(&blocks)?)))
        .filter(|(_, script)| script.contains(" -n my-app") == on_a_cloud)
        .collect();
    for (page, script) in &scripts {
        Shell::new().run(page, script);
    }
    scripts.len()
}

#[test]
fn commands_on_embedded_tables_run() {
    assert!(run_pages(false) >= 5);
}

#[test]
fn commands_on_stacks_run_on_a_local_cloud() {
    assert!(run_pages(true) >= 2);
}

#[test]
fn commands_that_need_an_account_are_bash() {
    for (page, blocks) in pages() {
        for block in blocks.iter().filter(|block| block.is("no_run")) {
            let output = Command::new("bash")
                .args(["-n", "-c", &block.text])
                .output()
                .unwrap();
            assert!(output.status.success(), "{page}, line {}: {output:?}", block.line);
        }
    }
}

/// The limits file of the reference, applied.
#[test]
fn limits_files_can_be_applied() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut applied = 0;
    for page in ["docs/cli.md", "docs/start/aws.md"] {
        let text = std::fs::read_to_string(root.join(page)).unwrap();
        let files = blocks(&text)
            .into_iter()
            .filter(|block| block.language() == "yaml");
        for file in files.filter(|block| block.text.contains("system:")) {
            let bench = crate::tool::Bench::new();
            let file = bench.write("limits.yaml", &file.text);
            bench.ok(&["limits", "apply", &file, "--yes"]);
            applied += 1;
        }
    }
    assert_eq!(applied, 2);
}

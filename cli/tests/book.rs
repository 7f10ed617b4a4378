//! The shell blocks of the book: run on embedded tables and on a local cloud, or checked where they need an account.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use tempfile::TempDir;

use crate::local::{free_port, ministack};
use crate::markdown::{Block, blocks, readmes};

/// The commands as the pages call them. Local clouds and servers get ports of their own, a response that is an error fails, and what
/// runs in the background ends with the script.
const PRELUDE: &str = r#"
set -euo pipefail
set -m
trap 'for job in $(jobs -p); do kill -- "-$job" 2>/dev/null || true; done; wait' EXIT
zae-limiter() {
    if [[ $1 == local ]]; then
        command zae-limiter "$@" --port "$BOOK_PORT"
    else
        local arguments=("${@//127.0.0.1:8080/127.0.0.1:$BOOK_SERVER_PORT}")
        command zae-limiter "${arguments[@]//127.0.0.1:8081/127.0.0.1:0}"
    fi
}
curl() {
    command curl --fail "${@//localhost:8080/127.0.0.1:$BOOK_SERVER_PORT}"
}
"#;

/// The options of a stack without functions, whose archives need a build of their own.
const OPTIONS: &str = "enable_aggregator: false\nenable_audit_archival: false\n";

/// The files that pages talk about.
const FILES: [(&str, &str); 4] = [
    ("options.yaml", OPTIONS),
    (
        "options.eu-west-1.yaml",
        "enable_aggregator: false\nenable_audit_archival: false\nregional_iam_names: true\n",
    ),
    (
        "options.us-east-1.yaml",
        "enable_aggregator: false\nenable_audit_archival: false\nregional_iam_names: true\n",
    ),
    ("limits.yaml", "system: {limits: {rpm: 60}}\n"),
];

/// Why a block is not run: what it contains, and what it would need.
const NOT_RUN: [(&str, &str); 14] = [
    (
        "terraform apply",
        "Terraform and an account; `scripts/check-terraform` applies the module with a stand-in",
    ),
    ("aws ", "the AWS command line and an account"),
    ("make ", "a build; `book` looks up the targets"),
    ("cargo ", "a build; examples and tests compile here anyway"),
    ("releases/download", "a published release"),
    ("$base", "a published release"),
    (
        "pip install ./python",
        "a release build; the tests of the package install its wheel",
    ),
    (
        "npm install",
        "the packed npm package; the tests of `typescript` install it",
    ),
    (
        "--advertise",
        "an account; the tests of `replicas` start it on one table",
    ),
    (
        "--engine localstack",
        "Docker; a job on GitHub deploys to LocalStack",
    ),
    ("--open", "a browser; the tests of `ui` start it without one"),
    (
        "lambda-export",
        "packed functions; the tests with the feature `bundled-functions` export them",
    ),
    (
        "audit archive",
        "a stack with functions; the tests of `archive` run it",
    ),
    (
        "limits apply limits.yaml -n my-app --region",
        "a confirmation; `limits_files_can_be_applied` runs it",
    ),
];

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

/// True if a script needs a program that this machine does not have.
fn lacks_curl(script: &str) -> bool {
    script.contains("curl ")
        && std::process::Command::new("curl")
            .arg("--version")
            .output()
            .is_err()
}

/// A directory with the files that pages talk about, and bash with nothing but the command.
struct Shell {
    directory: TempDir,
    port: String,
    server_port: String,
}

impl Shell {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in FILES {
            std::fs::write(directory.path().join(name), text).unwrap();
        }
        std::fs::write(directory.path().join("mapping.yaml"), envoy_mapping()).unwrap();
        Self {
            directory,
            port: free_port(),
            server_port: free_port(),
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
            .env("BOOK_SERVER_PORT", &self.server_port)
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

/// The mapping file of the page about Envoy.
fn envoy_mapping() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let page = std::fs::read_to_string(root.join("docs/guide/envoy.md")).unwrap();
    let mut files = blocks(&page).into_iter();
    files.find(|block| block.language() == "yaml").unwrap().text
}

fn run_pages(on_a_cloud: bool) -> usize {
    let scripts: Vec<_> = pages()
        .into_iter()
        .filter_map(|(page, blocks)| Some((page, script(&blocks)?)))
        .filter(|(_, script)| script.contains(" -n my-app") == on_a_cloud)
        .collect();
    for (page, script) in &scripts {
        if lacks_curl(script) {
            eprintln!("skipped: {page} needs curl, which is not installed");
        } else {
            Shell::new().run(page, script);
        }
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
fn only_blocks_that_need_what_tests_do_not_have_are_not_run() {
    for (page, blocks) in pages() {
        for block in blocks.iter().filter(|block| block.is("no_run")) {
            let reason = NOT_RUN.iter().find(|(words, _)| block.text.contains(words));
            assert!(
                reason.is_some(),
                "{page}, line {}: this block can be run, or NOT_RUN lacks the reason why not",
                block.line
            );
        }
    }
}

#[test]
fn a_failed_request_fails_the_page() {
    if lacks_curl("curl ") {
        eprintln!("skipped: curl is not installed");
        return;
    }
    let shell = Shell::new();
    let serve = "zae-limiter --embedded f.db serve --listen 127.0.0.1:8080 &\n";
    let request = "curl -sS --retry 9 --retry-connrefused localhost:8080";
    shell.run("a path", &format!("{serve}{request}/healthz"));
    let failed = std::panic::catch_unwind(|| {
        let shell = Shell::new();
        shell.run("no path", &format!("{serve}{request}/nothing"));
    });
    assert!(failed.is_err());
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

//! `docs/infra/terraform.md` and `docs/infra/limits.md`, followed from a release on: every command that needs no account is run.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::json;

use crate::terraform::compare::module;

const PAGE: &str = include_str!("../../../docs/infra/terraform.md");
const LIMITS: &str = include_str!("../../../docs/infra/limits.md");

/// A directory that is removed with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("zae-limiter-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Runs a script with bash in this directory.
    fn run(&self, script: &str) -> Output {
        let script = format!("set -euo pipefail\n{script}");
        let mut bash = Command::new("bash");
        bash.args(["-c", &script]).current_dir(&self.0).output().unwrap()
    }

    fn ok(&self, script: &str) -> String {
        let output = self.run(script);
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text).into_owned();
        assert!(output.status.success(), "{script}\n{text}");
        text
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    if !from.is_dir() {
        fs::copy(from, to).unwrap();
        return;
    }
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        copy(&entry.path(), &to.join(entry.file_name()));
    }
}

/// The files that the release workflow publishes, packed by its own script.
fn release(name: &str) -> Folder {
    let tree = unpacked_release(name);
    tree.ok("scripts/pack-release rest");
    tree
}

/// What the script packs.
fn unpacked_release(name: &str) -> Folder {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let tree = Folder::new(name);
    for path in ["scripts/pack-release", "template/rendered", "terraform"] {
        copy(&root.join(path), &tree.path(path));
    }
    for architecture in ["x86_64", "arm64"] {
        for function in ["aggregator", "archiver", "provisioner"] {
            let archive = tree.path(&format!("target/functions/{architecture}/{function}.zip"));
            fs::create_dir_all(archive.parent().unwrap()).unwrap();
            fs::write(archive, format!("{function} for {architecture}")).unwrap();
        }
    }
    tree
}

/// Whether curl, which the pages and the module download with, is missing here. Says so.
fn lacks_curl() -> bool {
    let missing = Command::new("curl").arg("--version").output().is_err();
    if missing {
        eprintln!("skipped: curl is not installed");
    }
    missing
}

/// The shell blocks of a page, with the release on this machine in place of its address.
fn blocks(page: &str, release: &Folder) -> Vec<String> {
    let blocks = page.split("```sh").skip(1);
    let blocks = blocks.map(|rest| rest.split_once('\n').unwrap().1.split("```").next().unwrap());
    let base = format!("base=file://{}", release.path("target/release-files").display());
    let local = |block: &str| {
        let lines = block.lines().map(str::trim_start);
        let lines = lines.map(|line| {
            if line.starts_with("base=https://") {
                base.clone()
            } else {
                line.to_owned()
            }
        });
        lines.collect::<Vec<_>>().join("\n")
    };
    blocks.map(local).collect()
}

#[test]
fn the_address_of_a_release_is_set_in_one_place() {
    let tree = unpacked_release("address");
    let manifest = "[workspace.package]\nrepository = \"https://github.com/acme/limits\"\n";
    fs::write(tree.path("Cargo.toml"), manifest).unwrap();
    tree.ok("scripts/pack-release rest");
    tree.ok("mkdir module && tar -xzf target/release-files/terraform-zae-limiter.tar.gz -C module");
    let page = fs::read_to_string(tree.path("module/README.md")).unwrap();
    assert!(
        page.contains("https://github.com/acme/limits/releases/download"),
        "{page}"
    );
    let left = tree.ok("grep -rF OWNER/REPO module || true");
    assert_eq!(left, "", "files that still have no address");
    tree.ok("diff <(cd terraform && find . -type f | sort) <(cd module && find . -type f | sort)");
}

#[test]
fn the_module_and_the_checksums_come_from_a_release() {
    if lacks_curl() {
        return;
    }
    let release = release("page");
    let user = Folder::new("page-user");
    let mut blocks = blocks(PAGE, &release);
    blocks.retain(|block| block.contains("base"));
    assert_eq!(blocks.len(), 2, "{blocks:?}");
    let printed = user.ok(&blocks.join("\n"));
    assert!(printed.contains("terraform-zae-limiter.tar.gz: OK"), "{printed}");
    // Every file of the module.
    user.ok(&format!(
        "diff -r '{}' modules/zae-limiter",
        release.path("terraform").display()
    ));

    // The checksums that the page prints are those that the module asks for, and its command accepts.
    let sums: BTreeMap<_, _> = printed
        .lines()
        .filter_map(|line| line.split_once("  zae-limiter-"))
        .filter_map(|(sum, file)| Some((file.strip_suffix("-x86_64.zip")?, sum)))
        .collect();
    assert_eq!(
        sums.keys().copied().collect::<Vec<_>>(),
        ["aggregator", "archiver"]
    );
    for function in ["aggregator", "archiver"] {
        assert!(download(&user, &release, &sums, function), "{function}");
        let fetched = user.path(&format!(
            ".terraform/zae-limiter/limiter/{function}-{}.zip",
            sums[function]
        ));
        let id = format!("{}.id", fetched.display());
        assert_eq!(fs::read_to_string(id).unwrap(), "<plan>");
        assert_eq!(
            fs::read_to_string(fetched).unwrap(),
            format!("{function} for x86_64")
        );
    }
    let wrong = "0".repeat(64);
    let swapped = BTreeMap::from([("aggregator", wrong.as_str()), ("archiver", sums["archiver"])]);
    assert!(
        !download(&user, &release, &swapped, "aggregator"),
        "a wrong checksum"
    );
}

/// Runs what `terraform apply` runs to download an archive; returns whether it succeeds.
fn download(user: &Folder, release: &Folder, sums: &BTreeMap<&str, &str>, function: &str) -> bool {
    let url = "https://example.com/releases";
    let given = json!({
        "name": "limiter",
        "release": { "url": url, "version": "0.1.0", "sha256": sums },
    });
    let evaluated = module().evaluate(given.as_object().unwrap()).unwrap();
    let archive = &evaluated.resources[&("terraform_data".to_owned(), format!("{function}_archive"))];
    let command = archive["provisioner"][0]["command"].as_str().unwrap();
    let files = format!("file://{}", release.path("target/release-files").display());
    let command = command.replace(&format!("{url}/v0.1.0"), &files);
    assert!(command.contains(&files), "{command}");
    user.run(&command).status.success()
}

#[test]
fn a_changed_file_is_noticed_before_it_is_unpacked() {
    if lacks_curl() {
        return;
    }
    let release = release("tampered");
    let user = Folder::new("tampered-user");
    let archive = release.path("target/release-files/terraform-zae-limiter.tar.gz");
    fs::write(archive, "something else").unwrap();
    let output = user.run(&blocks(PAGE, &release)[0]);
    assert!(!output.status.success());
    assert!(!user.path("modules").exists());
}

#[test]
fn the_archive_of_the_provisioner_comes_from_a_release() {
    if lacks_curl() {
        return;
    }
    let release = release("limits");
    let user = Folder::new("limits-user");
    let blocks = blocks(LIMITS, &release);
    let download = blocks
        .iter()
        .find(|block| block.contains("zae-limiter-provisioner-"))
        .unwrap();
    let printed = user.ok(&format!(
        "base=file://{}\n{download}",
        release.path("target/release-files").display()
    ));
    assert!(
        printed.contains("zae-limiter-provisioner-x86_64.zip: OK"),
        "{printed}"
    );
    assert!(LIMITS.contains("archive    = \"${path.module}/zae-limiter-provisioner-x86_64.zip\""));
}

/// The arguments of a call of the module that the page shows, with checksums in place of dots.
fn call(block: usize) -> serde_json::Map<String, serde_json::Value> {
    let call = PAGE.split("```hcl").nth(block).unwrap();
    let call = call.split("```").next().unwrap();
    let body = hcl::parse(&call.replace('…', &"a".repeat(64))).unwrap();
    let call = body
        .blocks()
        .find(|block| block.identifier() == "module")
        .unwrap();
    let mut given = serde_json::Map::new();
    for attribute in call
        .body()
        .attributes()
        .filter(|attribute| attribute.key() != "source")
    {
        let value: hcl::Value = attribute.expr().clone().into();
        given.insert(attribute.key().to_owned(), serde_json::to_value(&value).unwrap());
    }
    given
}

#[test]
fn the_module_and_the_functions_come_from_a_checkout() {
    let checkout = unpacked_release("checkout");
    let mut blocks = blocks(PAGE, &checkout);
    blocks.retain(|block| block.starts_with("make functions"));
    let [block] = blocks.as_slice() else {
        panic!("{blocks:?}");
    };
    let copies = block.split_once('\n').unwrap().1.replace("../infra", "infra");
    checkout.ok(&copies);
    checkout.ok("diff -r terraform infra/modules/zae-limiter");
    checkout.ok("test -f infra/functions/aggregator.zip && test -f infra/functions/archiver.zip");
    let evaluated = module().evaluate(&call(2)).unwrap();
    let function =
        &evaluated.resources[&("aws_lambda_function".to_owned(), "aggregator_function".to_owned())];
    assert_eq!(function["filename"], "${path.module}/functions/aggregator.zip");
}

#[test]
fn the_call_of_the_page_sets_variables_that_exist() {
    let mut given = call(1);
    given["release"]["version"] = json!("0.1.0");
    let evaluated = module().evaluate(&given).unwrap();
    assert_eq!(evaluated.outputs["table_name"], "<RateLimitsTable>");
    assert!(!evaluated.outputs["acquire_only_policy_arn"].is_null());
}

//! Every crate that is published can be packaged: what `cargo package` and a registry refuse is noticed here.
//!
//! `scripts/release-check` packages them for real.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Crates that are not published: for our tests, or published as a wheel.
const UNPUBLISHED: [&str; 5] = [
    "zae-limiter-bench",
    "zae-limiter-demo",
    "zae-limiter-python",
    "zae-limiter-testing",
    "zae-limiter-tests",
];

fn packages() -> Vec<Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline"])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

fn text<'a>(package: &'a Value, field: &str) -> &'a str {
    package[field].as_str().unwrap_or_default()
}

/// Null means that a crate may be published anywhere, an empty list that it may not be.
fn is_published(package: &Value) -> bool {
    package["publish"].is_null()
}

#[test]
fn only_the_listed_crates_are_not_published() {
    let kept: BTreeSet<_> = packages()
        .iter()
        .filter(|package| !is_published(package))
        .map(|package| text(package, "name").to_owned())
        .collect();
    assert_eq!(kept, UNPUBLISHED.map(str::to_owned).into());
}

#[test]
fn published_crates_have_what_a_registry_shows() {
    for package in packages().iter().filter(|package| is_published(package)) {
        let name = text(package, "name");
        for field in ["description", "license", "rust_version"] {
            assert!(!text(package, field).is_empty(), "{name} has no {field}");
        }
        for (field, most) in [("keywords", 5), ("categories", 5)] {
            let words = package[field].as_array().unwrap();
            assert!(
                (1..=most).contains(&words.len()),
                "{name} has {} {field}",
                words.len()
            );
        }
        let docs = &package["metadata"]["docs"]["rs"];
        // Its archives are not there when docs.rs builds the documentation.
        let bundles = package["features"].get("bundled-functions").is_some();
        assert!(docs.is_object(), "{name} has no [package.metadata.docs.rs]");
        assert!(
            !bundles || docs.get("all-features").is_none(),
            "docs.rs cannot build {name} with bundled-functions"
        );
        let folder = Path::new(text(package, "manifest_path")).parent().unwrap();
        let readme = folder.join(text(package, "readme"));
        assert!(readme.is_file(), "{name} has no README.md");
    }
}

/// A dependency by path alone cannot be resolved by those who download the crate.
#[test]
fn published_crates_depend_on_published_crates_of_the_same_version() {
    let packages = packages();
    let published: BTreeSet<_> = packages
        .iter()
        .filter(|package| is_published(package))
        .map(|package| text(package, "name"))
        .collect();
    for package in packages.iter().filter(|package| is_published(package)) {
        let name = text(package, "name");
        let dependencies = package["dependencies"].as_array().unwrap();
        // Development dependencies by path are left out of a package.
        let ours = dependencies
            .iter()
            .filter(|dependency| !dependency["path"].is_null() && dependency["kind"] != "dev");
        for dependency in ours {
            let used = text(dependency, "name");
            assert!(
                published.contains(used),
                "{name} uses {used}, which is not published"
            );
            assert_eq!(
                text(dependency, "req"),
                format!("^{}", text(package, "version")),
                "{name} uses {used}; set the version in the root Cargo.toml"
            );
        }
    }
}

#[test]
fn the_command_can_be_installed_from_the_files_of_a_release() {
    let packages = packages();
    let command = packages
        .iter()
        .find(|package| text(package, "name") == "zae-limiter-cli")
        .unwrap();
    let binstall = &command["metadata"]["binstall"];
    let url = text(binstall, "pkg-url");
    let script = include_str!("../../scripts/pack-release");
    let file = url.rsplit('/').next().unwrap();
    let packed = file.replace("{ target }", "$target");
    assert!(
        script.contains(&packed),
        "scripts/pack-release writes no {packed}"
    );
    assert!(url.contains("/download/v{ version }/"), "{url}");
    assert_eq!(text(binstall, "pkg-fmt"), "tgz");
    // The archive has the command at its top.
    assert_eq!(text(binstall, "bin-dir"), "{ bin }{ binary-ext }");
}

//! What the README counts and lists.

use std::collections::BTreeSet;
use std::process::Command;

use crate::book::{links, pages};

/// Crates that only our tests use.
const OURS_ALONE: [&str; 3] = ["bench", "testing", "tests"];

/// The crates that the client brings with these features, itself included.
fn crates(features: &str) -> usize {
    let output = Command::new(env!("CARGO"))
        .args([
            "tree",
            "--offline",
            "--locked",
            "-p",
            "zae-limiter",
            "-e",
            "normal",
        ])
        .args(["--prefix", "none", "--no-dedupe", "--features", features])
        .current_dir(pages::root())
        // Other commands may unify the features of the workspace; a user has no workspace.
        .env_remove("CARGO_RESOLVER_FEATURE_UNIFICATION")
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().collect::<BTreeSet<_>>().len()
}

#[test]
fn it_says_how_many_crates_the_client_and_its_features_bring() {
    let readme = pages::read("README.md");
    let alone = crates("");
    let mut claims = vec![format!("{alone} crates in all")];
    for feature in ["embedded", "blocking", "tower", "metrics", "report", "stack"] {
        claims.push(match crates(feature) - alone {
            0 => format!("`{feature}`: no crate"),
            more => format!("`{feature}`: {more} crates"),
        });
    }
    for claim in claims {
        assert!(readme.contains(&claim), "README.md should say: {claim}");
    }
}

#[test]
fn it_names_every_feature_of_the_client() {
    let manifest = pages::read("limiter/Cargo.toml");
    let features = manifest
        .split("[features]")
        .nth(1)
        .unwrap()
        .split("\n[")
        .next()
        .unwrap();
    let names: Vec<_> = features
        .lines()
        .filter_map(|line| line.split_once(" = "))
        .map(|(name, _)| name)
        .filter(|name| *name != "default")
        .collect();
    assert!(names.len() > 6, "{names:?}");
    let guide = pages::read("docs/guide/basic-usage.md");
    for name in names {
        let span = format!("`{name}`");
        assert!(guide.contains(&span), "docs/guide/basic-usage.md lacks {span}");
    }
}

#[test]
fn it_lists_every_crate_that_a_user_can_use() {
    let manifest = pages::read("Cargo.toml");
    let members = manifest
        .split("members = [")
        .nth(1)
        .unwrap()
        .split(']')
        .next()
        .unwrap();
    let folders: BTreeSet<_> = members
        .split('"')
        .skip(1)
        .step_by(2)
        .map(|member| member.split('/').next().unwrap().to_owned())
        .filter(|folder| !OURS_ALONE.contains(&folder.as_str()))
        .collect();
    let linked: BTreeSet<_> = links::of("README.md", &pages::read("README.md"))
        .into_iter()
        .map(|link| link.file)
        .collect();
    let missing: Vec<_> = folders.difference(&linked).collect();
    assert!(missing.is_empty(), "README.md does not list {missing:?}");
}

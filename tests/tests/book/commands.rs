//! Commands in running text that name a crate, an example or a test: these exist.

use std::path::{Path, PathBuf};

use crate::book::{markdown, pages};

/// The folder of a crate of the workspace.
fn folder_of(package: &str) -> Option<PathBuf> {
    let root = pages::root();
    let manifest = pages::read("Cargo.toml");
    let members = manifest.split("members = [").nth(1)?.split(']').next()?;
    let folders = members
        .split('"')
        .skip(1)
        .step_by(2)
        .map(|member| root.join(member));
    folders
        .filter(|folder| folder.join("Cargo.toml").exists())
        .find(|folder| {
            let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap();
            manifest.contains(&format!("name = \"{package}\""))
        })
}

fn has_target(folder: &Path, kind: &str, name: &str) -> bool {
    let folder = folder.join(kind);
    folder.join(format!("{name}.rs")).exists() || folder.join(name).join("main.rs").exists()
}

/// True if a file below the folder has this name or contains a function or module whose name starts with it.
fn mentions(folder: &Path, name: &str) -> bool {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).any(|path| {
        if path.is_dir() {
            return path.file_name().is_some_and(|found| found == name) || mentions(&path, name);
        }
        if path.extension().is_none_or(|extension| extension != "rs") {
            return false;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        path.file_stem().is_some_and(|stem| stem == name)
            || text.contains(&format!("fn {name}"))
            || text.contains(&format!("mod {name}"))
    })
}

/// What is wrong with a `cargo` command; nothing if all that it names exists.
fn problem(command: &str) -> Option<String> {
    let before_binary = command.split(" -- ").next().unwrap();
    let words: Vec<_> = before_binary.split_whitespace().collect();
    let value = |flag: &str| {
        words
            .iter()
            .position(|word| *word == flag)
            .and_then(|at| words.get(at + 1))
            .copied()
    };
    let package = value("-p")?;
    let Some(folder) = folder_of(package) else {
        return Some(format!("there is no crate {package}"));
    };
    for (flag, kind) in [("--test", "tests"), ("--example", "examples")] {
        if let Some(name) = value(flag).filter(|name| !has_target(&folder, kind, name)) {
            return Some(format!("{package} has nothing called {name} in {kind}"));
        }
    }
    // The last word is a filter if it is neither an option nor the value of one.
    let [.., before, last] = words[..] else {
        return None;
    };
    let is_filter = words.get(1) == Some(&"test")
        && !last.starts_with('-')
        && (!before.starts_with('-') || before == "--lib");
    let name = last.rsplit("::").find(|part| !part.is_empty())?;
    (is_filter && !mentions(&folder, name)).then(|| format!("{package} has no test {name}"))
}

#[test]
fn cargo_commands_name_what_exists() {
    let mut seen = 0;
    for (path, text) in pages::all() {
        let prose = markdown::prose(&text);
        let commands = prose
            .lines()
            .flat_map(pages::code_spans)
            .filter(|span| span.starts_with("cargo "));
        for command in commands {
            assert_eq!(problem(&command), None, "{path}: {command}");
            seen += 1;
        }
    }
    assert!(seen > 20, "{seen}");
}

#[test]
fn wrong_commands_are_noticed() {
    for wrong in [
        "cargo test -p zae-limiterr",
        "cargo test -p zae-limiter --test acquires",
        "cargo run -p zae-limiter --example cost",
        "cargo test -p zae-limiter --lib no_such_promise",
        "cargo test -p zae-limiter --test main exactly_twice",
    ] {
        assert!(problem(wrong).is_some(), "{wrong}");
    }
}

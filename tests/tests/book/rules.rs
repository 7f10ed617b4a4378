//! The page of rules: every test that it names exists, and it has every rule that the simulation breaks.

use std::collections::BTreeSet;
use std::path::Path;

use crate::book::pages;

/// The tests of all Rust files of a folder.
fn tests_in(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            tests_in(&path, names);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            names.extend(tests_of(&std::fs::read_to_string(&path).unwrap()));
        }
    }
}

/// The functions below `#[test]` or `#[tokio::test]`, other attributes and comments in between.
fn tests_of(code: &str) -> Vec<String> {
    let (mut names, mut marked) = (vec![], false);
    for line in code.lines().map(str::trim_start) {
        if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
            marked = true;
        } else if !line.starts_with("#[") && !line.starts_with("//") {
            let function = line.strip_prefix("async ").unwrap_or(line).strip_prefix("fn ");
            let name = function.and_then(|function| function.split_once('('));
            names.extend(name.filter(|_| marked).map(|(name, _)| name.to_owned()));
            marked = false;
        }
    }
    names
}

#[test]
fn only_functions_that_are_marked_as_tests_are_tests() {
    let code = "#[test]\nfn one() {\n}\n#[tokio::test(start_paused = true)]\n// Fails.\n#[should_panic]\nasync fn two() {}\nfn three() {}";
    assert_eq!(tests_of(code), ["one", "two"]);
}

/// The variants of `Mutation` and the rules of the script.
fn mutations() -> BTreeSet<String> {
    let code = pages::read("limiter/src/simulation/mod.rs");
    let start = code.find("enum Mutation {").unwrap();
    let body = &code[start..start + code[start..].find("\n}").unwrap()];
    let variants = body
        .lines()
        .skip(1)
        .map(|line| line.trim().trim_end_matches(','))
        .filter(|line| line.starts_with(char::is_uppercase));
    let script = pages::read("scripts/broken-rules.py");
    let names = script.lines().filter_map(|line| line.strip_prefix("    (\""));
    let rules = names.filter_map(|line| line.split('"').next());
    variants.chain(rules).map(str::to_owned).collect()
}

#[test]
fn the_page_of_rules_names_tests_that_exist_and_every_mutation() {
    let mut tests = BTreeSet::new();
    for folder in ["limiter/src", "limiter/tests", "dynamo/src", "schema/tests"] {
        tests_in(&pages::root().join(folder), &mut tests);
    }
    let page = pages::read("docs/understand/rules.md");
    let mut broken = BTreeSet::new();
    for row in pages::rows(&page) {
        if ["Rule", "World"].contains(&row[0].as_str()) {
            continue;
        }
        let named = pages::code_spans(&row[1]);
        let named: Vec<_> = named.iter().filter(|name| !name.starts_with("zae-")).collect();
        assert!(!named.is_empty() || row[1].starts_with("the same"), "{row:?}");
        for name in named {
            assert!(tests.contains(name), "no test {name}");
        }
        broken.extend(row.get(2).map(|cell| pages::code_spans(cell)).unwrap_or_default());
    }
    assert_eq!(broken, mutations());
}

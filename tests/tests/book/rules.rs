//! The page of rules: every test that it names exists, and it has every rule that the simulation breaks.

use std::collections::BTreeSet;
use std::path::Path;

use crate::pages;

/// The functions of all Rust files of a folder.
fn functions(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            functions(&path, names);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let found = text.lines().filter_map(|line| {
                let rest = line.trim_start();
                let rest = rest.strip_prefix("async ").unwrap_or(rest);
                rest.strip_prefix("fn ")?.split_once('(')
            });
            names.extend(found.map(|(name, _)| name.to_owned()));
        }
    }
}

/// The variants of `Mutation`.
fn mutations() -> BTreeSet<String> {
    let code = pages::read("limiter/src/simulation/mod.rs");
    let start = code.find("enum Mutation {").unwrap();
    let body = &code[start..start + code[start..].find("\n}").unwrap()];
    let variants = body
        .lines()
        .skip(1)
        .map(|line| line.trim().trim_end_matches(','))
        .filter(|line| line.starts_with(char::is_uppercase));
    variants.map(str::to_owned).collect()
}

#[test]
fn the_page_of_rules_names_tests_that_exist_and_every_mutation() {
    let mut tests = BTreeSet::new();
    for folder in ["limiter/src", "limiter/tests", "dynamo/src"] {
        functions(&pages::root().join(folder), &mut tests);
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

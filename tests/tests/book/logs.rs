//! The page about logs against the source: every span and event of the client.

use std::collections::BTreeSet;
use std::path::Path;

use crate::book::pages;

/// Where the client's code is.
const SOURCES: [&str; 2] = ["limiter/src", "dynamo/src"];

/// Kind or level, and name or message.
type Entry = (String, String);

/// The arguments of every call of a macro: the text up to its closing parenthesis.
fn calls<'a>(code: &'a str, name: &str) -> Vec<&'a str> {
    let start = format!("tracing::{name}!(");
    let mut found = vec![];
    for (at, _) in code.match_indices(&start) {
        let arguments = &code[at + start.len()..];
        let (mut depth, mut quoted, mut escaped) = (1, false, false);
        let end = arguments.find(|character: char| {
            match character {
                '"' if !escaped => quoted = !quoted,
                '(' if !quoted => depth += 1,
                ')' if !quoted => depth -= 1,
                _ => {}
            }
            escaped = character == '\\' && !escaped;
            depth == 0
        });
        found.push(&arguments[..end.expect("a closing parenthesis")]);
    }
    found
}

/// The text literals of arguments, with lines that go on joined.
fn literals(arguments: &str) -> Vec<String> {
    let texts = arguments.split('"').skip(1).step_by(2);
    let joined = texts.map(|text| {
        let lines = text.split("\\\n").map(str::trim_start);
        lines.collect::<String>()
    });
    joined.collect()
}

fn read(folder: &Path, entries: &mut BTreeSet<Entry>) {
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        if path.is_dir() {
            if !path.ends_with("simulation") {
                read(&path, entries);
            }
            continue;
        }
        let code = std::fs::read_to_string(&path).unwrap();
        for level in ["error", "warn", "info", "debug", "trace"] {
            for arguments in calls(&code, level) {
                let message = literals(arguments).pop();
                let message = message
                    .unwrap_or_else(|| panic!("{}: {level}!({arguments}) has no message", path.display()));
                entries.insert((level.to_owned(), message));
            }
            for arguments in calls(&code, &format!("{level}_span")) {
                let name = literals(arguments).swap_remove(0);
                entries.insert((format!("{level} span"), name));
            }
        }
    }
}

#[test]
fn the_logs_page_has_every_span_and_event_of_the_client() {
    let mut written = BTreeSet::new();
    for source in SOURCES {
        read(&pages::root().join(source), &mut written);
    }
    assert!(written.len() > 10, "{written:?}");
    let page = pages::read("docs/reference/logs.md");
    let listed: BTreeSet<_> = ["Spans", "Events"]
        .into_iter()
        .flat_map(|section| pages::rows(pages::section(&page, section)).into_iter().skip(1))
        .map(|row| (row[0].clone(), row[1].trim_matches('`').to_owned()))
        .collect();
    let missing: Vec<_> = written.difference(&listed).collect();
    let gone: Vec<_> = listed.difference(&written).collect();
    assert!(
        missing.is_empty() && gone.is_empty(),
        "docs/reference/logs.md lacks {missing:#?} and should not have {gone:#?}"
    );
}

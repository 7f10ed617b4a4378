//! The policies of those who deploy have what is called, and nothing else.
//!
//! That each call which the tests make is permitted, [`Calls`](super::support::calls::Calls) sees to. Here the other way round.

use std::collections::BTreeSet;
use std::path::Path;

use super::support::permits::PERMITTED;

/// Permissions of calls that this crate does not make itself.
const OTHERS: [&str; 7] = [
    // Stacks and change sets have tags.
    "cloudformation:TagResource",
    // Markers of objects that were deleted before go with their versions.
    "s3:DeleteObject",
    // The version record and the retention, which the limiter writes.
    "dynamodb:BatchGetItem",
    "dynamodb:GetItem",
    "dynamodb:PutItem",
    "dynamodb:Query",
    "dynamodb:UpdateItem",
];

/// The permission that each call in the sources names for the error of its being denied.
fn called(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            called(&path, found);
            continue;
        }
        let source = std::fs::read_to_string(&path).unwrap();
        for call in source.split("Failure::of(").skip(1) {
            let named = call.trim_start().strip_prefix('"');
            let named = named.and_then(|rest| rest.split_once('"'));
            found.extend(named.map(|(permission, _)| permission.to_owned()));
        }
    }
}

#[test]
fn what_is_permitted_is_called_and_what_is_called_is_permitted() {
    let mut found = BTreeSet::new();
    called(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut found);
    found.remove("sts:GetCallerIdentity");
    found.extend(OTHERS.map(str::to_owned));
    assert_eq!(found, *PERMITTED);
}

//! The pages: everything under `docs/`, and the README files of the repository and its crates.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::book::markdown;

/// The folder of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Every page, by its path from the root of the repository.
pub(crate) fn all() -> BTreeMap<String, String> {
    let mut pages = BTreeMap::new();
    for readme in markdown::readmes(&root()) {
        let text = read(&readme);
        pages.insert(readme, text);
    }
    add_folder("docs", &mut pages);
    pages
}

fn add_folder(folder: &str, pages: &mut BTreeMap<String, String>) {
    for entry in std::fs::read_dir(root().join(folder)).unwrap() {
        let entry = entry.unwrap();
        let path = format!("{folder}/{}", entry.file_name().to_str().unwrap());
        if entry.path().is_dir() {
            add_folder(&path, pages);
        } else if Path::new(&path)
            .extension()
            .is_some_and(|extension| extension == "md")
        {
            let text = read(&path);
            pages.insert(path, text);
        }
    }
}

/// A file of the repository.
pub(crate) fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The rows of all tables of a page or part of it, each as its cells. Lines between header and rows are left out.
pub(crate) fn rows(text: &str) -> Vec<Vec<String>> {
    text.lines()
        .filter(|line| line.starts_with('|') && !line.starts_with("|---"))
        .map(|line| {
            let cells = line.trim_matches('|').split(" | ");
            cells
                .map(|cell| cell.trim_matches(['|', ' ']).to_owned())
                .collect()
        })
        .collect()
}

/// What is in backquotes.
pub(crate) fn code_spans(text: &str) -> Vec<String> {
    text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The part of a page under a heading of level 2, up to the next one.
pub(crate) fn section<'a>(page: &'a str, heading: &str) -> &'a str {
    let start = page
        .find(&format!("\n## {heading}\n"))
        .unwrap_or_else(|| panic!("no section {heading}"));
    let rest = &page[start + 1..];
    let end = rest[3..].find("\n## ").map_or(rest.len(), |end| end + 3);
    &rest[..end]
}

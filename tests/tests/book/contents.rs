//! The table of contents, and how far a reader has to go.

use std::collections::{BTreeMap, BTreeSet};

use crate::book::{links, pages};

#[test]
fn every_page_is_in_the_table_of_contents_once() {
    let summary = pages::read("docs/SUMMARY.md");
    let listed: Vec<_> = links::of("docs/SUMMARY.md", &summary)
        .into_iter()
        .map(|link| link.file)
        .collect();
    let unique: BTreeSet<_> = listed.iter().cloned().collect();
    assert_eq!(unique.len(), listed.len(), "a page is listed twice");
    let pages: BTreeSet<_> = pages::all()
        .into_keys()
        .filter(|page| page.starts_with("docs/") && page != "docs/SUMMARY.md")
        .collect();
    let missing: Vec<_> = pages.difference(&unique).collect();
    assert!(missing.is_empty(), "add to docs/SUMMARY.md: {missing:?}");
    let gone: Vec<_> = unique.difference(&pages).collect();
    assert!(gone.is_empty(), "remove from docs/SUMMARY.md: {gone:?}");
}

#[test]
fn every_page_has_one_title_and_it_comes_first() {
    for (path, page) in pages::all() {
        let prose = crate::book::markdown::prose(&page);
        let titles = prose.lines().filter(|line| line.starts_with("# ")).count();
        // The table of contents has a title per part.
        let expected = if path == "docs/SUMMARY.md" { titles } else { 1 };
        assert_eq!(titles, expected, "{path}");
        assert!(page.starts_with("# "), "{path}");
    }
}

/// The fewest clicks from the README to every page.
fn clicks() -> BTreeMap<String, usize> {
    let pages = pages::all();
    let mut clicks = BTreeMap::from([("README.md".to_owned(), 0)]);
    let mut next = vec!["README.md".to_owned()];
    for distance in 1.. {
        let here = std::mem::take(&mut next);
        for page in here {
            for link in links::of(&page, &pages[&page]) {
                if pages.contains_key(&link.file) && !clicks.contains_key(&link.file) {
                    clicks.insert(link.file.clone(), distance);
                    next.push(link.file);
                }
            }
        }
        if next.is_empty() {
            break;
        }
    }
    clicks
}

#[test]
fn common_tasks_are_three_clicks_from_the_readme() {
    let clicks = clicks();
    for (task, page, text) in [
        (
            "limit the tokens of a streamed call",
            "docs/guide/llm-integration.md",
            "## Streamed responses",
        ),
        (
            "deploy with Terraform",
            "docs/infra/terraform.md",
            "module \"limiter\"",
        ),
        (
            "know what a million calls cost",
            "docs/operate/cost.md",
            "## A million calls",
        ),
        (
            "restore after deleting the stack",
            "docs/operate/recovery.md",
            "## The stack was deleted",
        ),
        (
            "add a limit to all entities",
            "docs/guide/configuration.md",
            "set_system_defaults",
        ),
    ] {
        let distance = clicks.get(page).copied();
        assert!(
            distance.is_some_and(|clicks| clicks <= 3),
            "{task}: {page} takes {distance:?} clicks"
        );
        assert!(
            pages::read(page).contains(text),
            "{task}: {page} does not have {text}"
        );
    }
}

#[test]
fn the_readme_is_short() {
    let lines = pages::read("README.md").lines().count();
    assert!(lines < 120, "{lines} lines");
}

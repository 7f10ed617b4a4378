//! Every link leads to a file and a heading that exist.

use std::collections::BTreeMap;

use crate::book::{markdown, pages};

/// A link within the repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Link {
    /// The file, from the root of the repository.
    pub(crate) file: String,
    /// The heading, if it names one.
    pub(crate) heading: Option<String>,
}

/// The links of a page to files of the repository. Links to the web are left out.
pub(crate) fn of(page: &str, text: &str) -> Vec<Link> {
    let folder = page.rsplit_once('/').map_or("", |(folder, _)| folder);
    let prose = markdown::prose(text);
    let targets = prose.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    targets
        .map(|(target, _)| target)
        .filter(|target| !target.contains("://"))
        .map(|target| {
            let (file, heading) = match target.split_once('#') {
                Some((file, heading)) => (file, Some(heading.to_owned())),
                None => (target, None),
            };
            let file = if file.is_empty() {
                page.to_owned()
            } else {
                joined(folder, file)
            };
            Link { file, heading }
        })
        .collect()
}

fn joined(folder: &str, target: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in target.trim_end_matches('/').split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            name => parts.push(name),
        }
    }
    parts.join("/")
}

/// The anchors of a page's headings, as mdBook and code hosts make them.
pub(crate) fn anchors(text: &str) -> Vec<String> {
    let prose = markdown::prose(text);
    let headings = prose.lines().filter(|line| line.starts_with('#'));
    headings
        .map(|line| {
            let title = line.trim_start_matches('#').trim().to_lowercase();
            let kept = title
                .chars()
                .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
            kept.map(|c| if c == ' ' { '-' } else { c }).collect()
        })
        .collect()
}

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    let pages = pages::all();
    let anchors: BTreeMap<_, _> = pages.iter().map(|(path, text)| (path, anchors(text))).collect();
    let mut broken = Vec::new();
    for (path, text) in &pages {
        for link in of(path, text) {
            let leads = match (&link.heading, anchors.get(&link.file)) {
                // Of two headings with the same title, a link leads to the first.
                (Some(heading), Some(anchors)) => {
                    anchors.iter().filter(|anchor| *anchor == heading).count() == 1
                }
                _ => pages::root().join(&link.file).exists(),
            };
            if !leads {
                broken.push(format!("{path}: {link:?}"));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn anchors_are_made_as_code_hosts_make_them() {
    assert_eq!(
        anchors("# The limits of `acquire_policy`\n```\n# no heading\n```\n## A million calls, 2"),
        ["the-limits-of-acquire_policy", "a-million-calls-2"]
    );
}

#[test]
fn links_are_relative_to_their_page() {
    let found = of(
        "docs/guide/a.md",
        "[x](../cli.md#json) and [y](b.md), [z](https://example.org), [here](#top)",
    );
    let link = |file: &str, heading: Option<&str>| Link {
        file: file.to_owned(),
        heading: heading.map(str::to_owned),
    };
    assert_eq!(
        found,
        [
            link("docs/cli.md", Some("json")),
            link("docs/guide/b.md", None),
            link("docs/guide/a.md", Some("top"))
        ]
    );
}

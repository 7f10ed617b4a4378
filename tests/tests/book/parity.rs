//! The page of parity: one row per point, each with its place or the reason for leaving it out. `links` follows its links.

use std::collections::BTreeSet;

use crate::book::pages;

#[test]
fn every_point_has_a_status_and_its_place_or_a_reason() {
    let page = pages::read("docs/parity.md");
    let parts = page.split("\n## ").skip(1);
    let mut points = 0;
    for part in parts {
        let mut seen = BTreeSet::new();
        for row in pages::rows(part) {
            let [point, status, here] = &row[..] else {
                panic!("{row:?}")
            };
            if point == "Point" {
                seen.clear();
                continue;
            }
            assert!(seen.insert(point.clone()), "{point} is there twice");
            assert!(
                ["same", "differs", "partly", "left out"].contains(&status.as_str()),
                "{row:?}"
            );
            // Only a point that is left out may have a reason instead of a place.
            assert!(
                here.contains("](") || (status == "left out" && here.len() > 10),
                "{row:?}"
            );
            points += 1;
        }
    }
    // As many as the documents have at least.
    assert!(points >= 460, "{points}");
}

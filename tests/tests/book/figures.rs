//! Figures that several pages give, held to the table that has them.

use crate::book::pages;

/// Writes and reads per admission of each row of the table of fleets.
fn fleets() -> Vec<(String, f64, f64)> {
    let page = pages::read("docs/guide/fleets.md");
    let rows = pages::rows(pages::section(&page, "What to expect"));
    let measured = rows[1..].iter().map(|row| {
        let number = |cell: &str| cell.parse::<f64>().unwrap();
        (row[0].clone(), number(&row[1]), number(&row[2]))
    });
    measured.collect()
}

/// Rounded as the pages round.
fn tenths(number: f64) -> String {
    format!("{number:.1}")
}

#[test]
fn pages_give_the_writes_per_admission_of_the_measured_fleets() {
    let (saturated, others): (Vec<_>, Vec<_>) = fleets()
        .into_iter()
        .partition(|(load, ..)| load.contains("saturated"));
    let writes = || others.iter().map(|row| row.1);
    let (least, most) = (
        writes().fold(f64::INFINITY, f64::min),
        writes().fold(0.0, f64::max),
    );
    let range = format!("{} to {}", tenths(least), tenths(most));
    for page in [
        "README.md",
        "docs/understand/promises.md",
        "docs/operate/cost.md",
        "docs/operate/performance.md",
    ] {
        assert!(pages::read(page).contains(&range), "{page} should say {range}");
    }
    let most = |of: fn(&(String, f64, f64)) -> f64| saturated.iter().map(of).fold(0.0, f64::max);
    let (writes, reads) = (tenths(most(|row| row.1)), tenths(most(|row| row.2)));
    let cost = pages::read("docs/operate/cost.md").replace('\n', " ");
    let figure = format!("{writes} writes and {reads} reads if it is saturated");
    assert!(cost.contains(&figure), "docs/operate/cost.md should say {figure}");
    let performance = pages::read("docs/operate/performance.md");
    let figure = format!("{writes} if it is saturated");
    assert!(
        performance.contains(&figure),
        "docs/operate/performance.md should say {figure}"
    );
}

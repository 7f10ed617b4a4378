//! The page about the syntax of limits says what the code does.

use std::path::Path;

use zae_limiter_schema::{Limit, LimitSet};

fn read(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    std::fs::read_to_string(root.join(path)).unwrap()
}

/// The first block of a language.
fn block<'a>(page: &'a str, language: &str) -> &'a str {
    let (_, rest) = page.split_once(&format!("```{language}\n")).unwrap();
    rest.split_once("\n```").unwrap().0
}

/// The first two cells of each row that begins with the text of a limit.
fn rows(page: &str) -> Vec<(&str, &str)> {
    page.lines()
        .filter_map(|line| line.strip_prefix("| `")?.strip_suffix(" |")?.split_once("` | "))
        .collect()
}

#[test]
fn the_page_has_the_grammar_of_the_code() {
    let page = read("docs/reference/limits-syntax.md");
    let code = read("schema/src/limit/text.rs")
        .replace("\n//! ", "\n")
        .replace("\n//!", "\n");
    // The code has examples of some rules, after several spaces.
    let rules = |text: &str| -> Vec<String> {
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let rule = |line: &str| {
            let (name, rest) = line.split_at(14);
            words(&format!("{name} {}", rest.split("   ").next().unwrap()))
        };
        text.lines().map(rule).collect()
    };
    assert_eq!(rules(block(&page, "text")), rules(block(&code, "text")));
}

#[test]
fn every_example_is_a_limit_and_every_mistake_has_its_error() {
    let page = read("docs/reference/limits-syntax.md");
    let (examples, mistakes) = page.split_once("## Mistakes").unwrap();
    assert!(rows(examples).len() > 10);
    for (text, _) in rows(examples) {
        let limit: Limit = text.parse().unwrap();
        assert_eq!(limit.to_string().parse::<Limit>().unwrap(), limit);
    }
    assert!(rows(mistakes).len() > 3);
    for (text, error) in rows(mistakes) {
        assert_eq!(format!("`{}`", text.parse::<Limit>().unwrap_err()), error);
    }
    let json: LimitSet = serde_json::from_str(block(&page, "json")).unwrap();
    assert_eq!(json.len(), 3);
}

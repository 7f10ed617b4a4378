//! Blocks that are parsed by what they are for. Rust blocks are in `rust_blocks`, shell blocks run in the tests of the command.

use std::process::Command;

use serde_json::Value;
use zae_limiter_template::StackOptions;

use crate::book::markdown::{self, Block};
use crate::book::{pages, typescript};

/// Every language that a block may have. `athena` runs SQL, `log_queries` the queries among `text`, `typescript` and `clients` run
/// TypeScript and Python.
const LANGUAGES: [&str; 11] = [
    "rust",
    "sh",
    "yaml",
    "json",
    "hcl",
    "toml",
    "python",
    "typescript",
    "sql",
    "text",
    "console",
];

/// Every block of a language, with its place.
pub(crate) fn of(language: &str) -> Vec<(String, Block)> {
    let pages = pages::all();
    let blocks = pages.iter().flat_map(|(path, text)| {
        let blocks = markdown::blocks(text).into_iter();
        blocks.map(move |block| (format!("{path}, line {}", block.line), block))
    });
    blocks.filter(|(_, block)| block.language() == language).collect()
}

#[test]
fn every_block_has_a_language_and_none_is_ignored() {
    for (path, text) in pages::all() {
        for block in markdown::blocks(&text) {
            let place = format!("{path}, line {}", block.line);
            assert!(LANGUAGES.contains(&block.language()), "{place}: {:?}", block.info);
            let known = |word: &String| ["no_run", "blocking", "cloud"].contains(&word.as_str());
            assert!(block.info[1..].iter().all(known), "{place}: {:?}", block.info);
        }
    }
}

#[test]
fn commands_stand_in_blocks_that_are_tested() {
    for (path, text) in pages::all() {
        let indented = markdown::prose(&text);
        let mut commands = indented
            .lines()
            .filter(|line| line.starts_with("    zae-limiter "));
        assert_eq!(
            commands.next(),
            None,
            "{path}: put it into a block with the language sh"
        );
    }
}

#[test]
fn yaml_is_a_file_of_options_or_of_limits() {
    let blocks = of("yaml");
    assert!(!blocks.is_empty());
    for (place, block) in blocks {
        // The command parses limits files, and its tests apply them. The server's tests use the files for Envoy
        // and for the collector. Kubernetes has manifests of its own, and LiteLLM its configuration, which the adapters' tests use.
        if [
            "system:",
            "resources:",
            "entities:",
            "domains:",
            "receivers:",
            "apiVersion:",
            "model_list:",
        ]
        .iter()
        .any(|key| block.text.contains(key))
        {
            continue;
        }
        if let Err(error) = StackOptions::from_file(&block.text) {
            panic!("{place}: {error}");
        }
    }
}

#[test]
fn json_is_json() {
    for (place, block) in of("json") {
        assert!(serde_json::from_str::<Value>(&block.text).is_ok(), "{place}");
    }
}

#[test]
fn hcl_is_hcl() {
    for (place, block) in of("hcl") {
        assert!(hcl::parse(&block.text).is_ok(), "{place}");
    }
}

/// Runs a Python program with each block of a language as its argument.
fn accepted_by_python(language: &str, program: &str) {
    for (place, block) in of(language) {
        let output = Command::new("python3")
            .args(["-c", program, &block.text])
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{place}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

#[test]
fn python_compiles() {
    let compile = "import ast, sys; compile(sys.argv[1], 'block', 'exec', ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)";
    accepted_by_python("python", compile);
}

#[test]
fn toml_is_toml() {
    accepted_by_python("toml", "import sys, tomllib; tomllib.loads(sys.argv[1])");
}

/// Every `make` target of the shell blocks exists.
#[test]
fn make_targets_exist() {
    let makefile = pages::read("Makefile");
    for (place, block) in of("sh") {
        let lines = block
            .text
            .lines()
            .filter_map(|line| line.trim().strip_prefix("make "));
        for target in lines.flat_map(|line| {
            line.split_whitespace()
                .take(1)
                .map(str::to_owned)
                .collect::<Vec<_>>()
        }) {
            let rule = format!("\n{target}:");
            assert!(makefile.contains(&rule), "{place}: make {target}");
        }
    }
}

/// Every name that the TypeScript program imports is used, and every class that it uses is imported, also where there is no compiler.
#[test]
fn the_cdk_program_imports_what_it_uses() {
    let (place, program) = typescript::cdk_program();
    let (imports, body): (Vec<_>, Vec<_>) =
        program.text.lines().partition(|line| line.starts_with("import "));
    let body = body.join("\n");
    let imported: Vec<_> = imports
        .iter()
        .flat_map(|line| line.split(['{', '}']).nth(1).unwrap().split(','))
        .map(str::trim)
        .collect();
    let words: Vec<_> = body
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect();
    for name in &imported {
        assert!(words.contains(name), "{place}: {name} is imported and not used");
    }
    for pair in words
        .windows(2)
        .filter(|pair| ["new", "extends"].contains(&pair[0]))
    {
        assert!(
            imported.contains(&pair[1]),
            "{place}: {} is not imported",
            pair[1]
        );
    }
    for (open, close) in [('(', ')'), ('{', '}'), ('[', ']')] {
        let count = |wanted: char| program.text.chars().filter(|c| *c == wanted).count();
        assert_eq!(count(open), count(close), "{place}: {open}{close}");
    }
}

/// The CDK program uses parameters and logical ids that the template has.
#[test]
fn the_cdk_program_fits_the_template() {
    let template: Value =
        serde_json::from_str(&pages::read("template/rendered/cloudformation/zae-limiter.json")).unwrap();
    let (_, program) = typescript::cdk_program();
    let parameters: Vec<_> = template["Parameters"].as_object().unwrap().keys().collect();
    for parameter in parameters {
        assert!(
            program.text.contains(&format!("{parameter}: ")),
            "{parameter} is not given"
        );
    }
    let ids = program
        .text
        .split("getResource(\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next());
    for id in ids {
        assert!(template["Resources"].get(id).is_some(), "{id}");
    }
}

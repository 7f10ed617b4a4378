//! The README of each module: its tables in the form of terraform-docs, and what it says to do.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use hcl::Block;
use serde_json::json;
use zae_limiter_template::LambdaFunction;

use crate::terraform::compare::{files_below, folder, ids, module};
use crate::terraform::evaluate::{Module, attribute, labels};

const BEGIN: &str = "<!-- BEGIN_TF_DOCS -->\n";
const END: &str = "<!-- END_TF_DOCS -->\n";
const WRITE: &str = "ZAE_WRITE_TERRAFORM_README";

/// The text of a string, without quotes.
fn text(block: &Block, name: &str) -> String {
    match attribute(block.body(), name) {
        Some(hcl::Expression::String(text)) => text.clone(),
        other => panic!("{name} is {other:?}"),
    }
}

/// An expression on one line.
fn one_line(block: &Block, name: &str) -> Option<String> {
    let text = attribute(block.body(), name)?.to_string();
    Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn anchored(kind: &str, name: &str) -> String {
    let escaped = name.replace('_', "\\_");
    format!("<a name=\"{kind}_{name}\"></a> [{name}](#{kind}\\_{escaped})")
}

fn tables(module: &Module) -> String {
    let mut out = String::from("## Requirements\n\n| Name | Version |\n|------|---------|\n");
    let _ = writeln!(out, "| {} | >= 1.5 |", anchored("requirement", "terraform"));
    let _ = writeln!(out, "| {} | >= 6.28 |", anchored("requirement", "aws"));
    let mut resources: Vec<_> = module
        .blocks("resource")
        .map(|block| (labels(block), "resource"))
        .collect();
    resources.extend(module.blocks("data").map(|block| (labels(block), "data source")));
    resources.sort();
    out += "\n## Resources\n\n| Name | Type |\n|------|------|\n";
    for ((kind, name), of) in resources {
        let _ = writeln!(out, "| {kind}.{name} | {of} |");
    }
    out += "\n## Inputs\n\n| Name | Description | Type | Default | Required |\n|------|-------------|------|---------|:--------:|\n";
    let mut variables: Vec<_> = module.blocks("variable").collect();
    variables.sort_by_key(|block| block.labels()[0].as_str().to_owned());
    for block in variables {
        let name = anchored("input", block.labels()[0].as_str());
        let (description, kind) = (text(block, "description"), one_line(block, "type").unwrap());
        let (default, required) = match one_line(block, "default") {
            Some(default) => (format!("`{default}`"), "no"),
            None => ("n/a".to_owned(), "yes"),
        };
        let _ = writeln!(
            out,
            "| {name} | {description} | `{kind}` | {default} | {required} |"
        );
    }
    out += "\n## Outputs\n\n| Name | Description |\n|------|-------------|\n";
    let mut outputs: Vec<_> = module.blocks("output").collect();
    outputs.sort_by_key(|block| block.labels()[0].as_str().to_owned());
    for block in outputs {
        let name = anchored("output", block.labels()[0].as_str());
        let _ = writeln!(out, "| {name} | {} |", text(block, "description"));
    }
    out
}

#[test]
fn the_tables_of_each_readme_are_those_of_its_module() {
    for path in ["", "modules/cloudformation/", "modules/limits/"] {
        let files = files_below(path);
        let tables = tables(&Module::new(&files, path, ids()));
        let readme = &files["README.md"];
        let (introduction, rest) = readme.split_once(BEGIN).unwrap();
        let (current, _) = rest.split_once(END).unwrap();
        if std::env::var_os(WRITE).is_some() {
            let file = Path::new(&folder()).join(path).join("README.md");
            fs::write(file, format!("{introduction}{BEGIN}{tables}{END}")).unwrap();
            continue;
        }
        assert!(
            current == tables,
            "{path}README.md; run: {WRITE}=1 cargo test -p zae-limiter-template readme"
        );
    }
}

#[test]
fn the_versions_of_the_tables_are_required() {
    for path in [
        "",
        "modules/cloudformation/",
        "modules/limits/",
        "examples/basic/",
    ] {
        let versions = &files_below(path)["versions.tf"];
        assert!(
            versions.contains("required_version = \">= 1.5\"") && versions.contains("version = \">= 6.28\""),
            "{versions}"
        );
    }
}

/// The addresses of a block of code, such as `aws_s3_bucket.audit_archive_bucket`, without an index.
fn addresses(block: &str) -> BTreeSet<String> {
    let addresses = block.split("module.limiter.").skip(1).map(|rest| {
        rest.chars()
            .take_while(|c| c.is_ascii_alphanumeric() || "_.".contains(*c))
            .collect()
    });
    addresses.collect()
}

/// What is left in the state is destroyed: a bucket without its public access block, its policy and its key.
#[test]
fn removing_the_module_takes_everything_out_of_the_state_that_is_kept() {
    let readme = &files_below("")["README.md"];
    let section = readme
        .split("## Removing it")
        .nth(1)
        .unwrap()
        .split("\n## ")
        .next()
        .unwrap();
    let given = json!({
        "name": "limiter",
        "code_directory": "built",
        "audit_archive_object_lock_days": 30,
        "enable_contributor_insights": true,
    });
    let evaluated = module().evaluate(given.as_object().unwrap()).unwrap();
    let kept = evaluated
        .resources
        .iter()
        .filter(|(_, value)| value["lifecycle"][0]["prevent_destroy"] == "true");
    let kept: BTreeSet<_> = kept.map(|((kind, name), _)| format!("{kind}.{name}")).collect();
    for block in section
        .split("```")
        .skip(1)
        .step_by(2)
        .filter(|block| block.contains("module.limiter."))
    {
        assert_eq!(addresses(block), kept, "{block}");
    }
    assert!(section.contains("terraform state rm") && section.contains("removed {"));
}

#[test]
fn the_readme_names_addresses_that_exist_and_every_archive() {
    let readme = &files_below("")["README.md"];
    let mut resources: BTreeSet<_> = module()
        .blocks("resource")
        .map(|block| {
            let (kind, name) = labels(block);
            format!("{kind}.{name}")
        })
        .collect();
    resources.extend(
        module()
            .blocks("output")
            .map(|block| block.labels()[0].as_str().to_owned()),
    );
    for address in addresses(readme) {
        assert!(resources.contains(&address), "{address}");
    }
    for function in LambdaFunction::ALL {
        assert!(readme.contains(&format!("{function}.zip")), "{function}");
    }
}

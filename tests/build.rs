//! Makes a test of every Rust block in `docs/` and in README files.
//!
//! A block is the body of an async function that has `limiter` and `repository`, on an embedded store of its own, and the imports of
//! `tests/book/rust_blocks.rs`. What else it needs is in a comment before it: `<!-- setup: … -->`. A table in `eu-west-1` is an
//! embedded one here. A block that is marked `no_run` is compiled only. One that is marked `blocking` has no runtime and no `limiter`. One that is marked `cloud`,
//! also in the documentation of the client, runs on a fresh local cloud where the feature `bundled-functions` is on and the archives
//! are built for the architecture that stacks have by default.
#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

#[allow(dead_code, reason = "tests use the rest")]
mod markdown;

/// What every block has that is not blocking.
const LIMITER: &str = "let limiter = limiter().await;\nlet repository = limiter.repository();";

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut pages = markdown::readmes(root)
        .into_iter()
        .map(|readme| root.join(readme))
        .collect::<Vec<_>>();
    find_files(&root.join("docs"), "md", &mut pages);
    pages.sort();
    let mut sources = vec![];
    find_files(&root.join("limiter/src"), "rs", &mut sources);
    sources.sort();
    let (mut code, mut cloud) = (String::new(), String::new());
    for page in pages.iter().chain(&sources) {
        let text = std::fs::read_to_string(page).unwrap();
        let name = page.strip_prefix(root).unwrap().to_str().unwrap();
        let is_source = sources.contains(page);
        let text = if is_source {
            markdown::documentation(&text)
        } else {
            text
        };
        for block in markdown::blocks(&text) {
            if block.language() == "rust" && block.is("cloud") {
                cloud.push_str(&cloud_test(name, &block));
            } else if block.language() == "rust" && !is_source {
                code.push_str(&test(name, &block));
            }
        }
    }
    let out = PathBuf::from(std::env::var_os("OUT_DIR").unwrap());
    std::fs::write(out.join("rust_blocks.rs"), code).unwrap();
    std::fs::write(out.join("cloud_blocks.rs"), cloud).unwrap();
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=markdown.rs");
    for readme in markdown::readmes(root) {
        println!("cargo::rerun-if-changed={}", root.join(readme).display());
    }
    println!("cargo::rerun-if-changed={}", root.join("docs").display());
    println!("cargo::rerun-if-changed={}", root.join("limiter/src").display());
}

fn find_files(folder: &Path, extension: &str, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            find_files(&path, extension, files);
        } else if path.extension().is_some_and(|found| found == extension) {
            files.push(path);
        }
    }
}

fn test_name(page: &str, block: &markdown::Block) -> String {
    let page = page
        .trim_end_matches(".md")
        .trim_end_matches(".rs")
        .replace(['/', '-', '.'], "_")
        .to_lowercase();
    format!("{page}_line_{}", block.line)
}

fn cloud_test(page: &str, block: &markdown::Block) -> String {
    let name = test_name(page, block);
    format!(
        "/// {page}, line {line}\n#[cfg_attr(all(feature = \"bundled-functions\", target_arch = \"x86_64\"), test)]\nfn {name}() -> Outcome {{\n\
         in_a_fresh_cloud(\"{name}\", async {{\n{setup}\n{text}\nOk(())\n}})\n}}\n\n",
        line = block.line,
        setup = block.setup,
        text = block.text,
    )
}

/// How blocks connect to a table on AWS.
const ON_AWS: [&str; 2] = [
    "RateLimiter::builder(\"my-app\").region(\"eu-west-1\")",
    "RateLimiter::builder(\"my-table\").region(\"eu-west-1\")",
];

fn on_embedded_tables(text: &str) -> String {
    ON_AWS.iter().fold(text.to_owned(), |text, on_aws| {
        text.replace(on_aws, "RateLimiter::embedded()")
    })
}

fn test(page: &str, block: &markdown::Block) -> String {
    let (attribute, kind, limiter) = if block.is("blocking") {
        ("#[test]", "fn", "")
    } else if block.is("no_run") {
        ("#[allow(dead_code)]", "async fn", LIMITER)
    } else {
        ("#[tokio::test]", "async fn", LIMITER)
    };
    let mut code = String::new();
    writeln!(
        code,
        "/// {page}, line {line}\n{attribute}\n{kind} {name}() -> Outcome {{\n\
         {limiter}\n{setup}\n{text}\nOk(())\n}}\n",
        line = block.line,
        name = test_name(page, block),
        setup = block.setup,
        text = on_embedded_tables(&block.text),
    )
    .unwrap();
    code
}

//! Makes a test of every Rust block in `docs/` and in README files.
//!
//! A block is the body of an async function that has `limiter` and `repository`, on an embedded store of its own, and the imports of
//! `tests/book/rust_blocks.rs`. What else it needs is in a comment before it: `<!-- setup: … -->`. A block that is
//! marked `no_run` is compiled only. One that is marked `blocking` has no runtime and no `limiter`.
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
    find_pages(&root.join("docs"), &mut pages);
    pages.sort();
    let mut code = String::new();
    for page in &pages {
        let text = std::fs::read_to_string(page).unwrap();
        let name = page.strip_prefix(root).unwrap().to_str().unwrap();
        for block in markdown::blocks(&text) {
            if block.language() == "rust" {
                code.push_str(&test(name, &block));
            }
        }
    }
    let out = PathBuf::from(std::env::var_os("OUT_DIR").unwrap());
    std::fs::write(out.join("rust_blocks.rs"), code).unwrap();
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=markdown.rs");
    for readme in markdown::readmes(root) {
        println!("cargo::rerun-if-changed={}", root.join(readme).display());
    }
    println!("cargo::rerun-if-changed={}", root.join("docs").display());
}

fn find_pages(folder: &Path, pages: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            find_pages(&path, pages);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            pages.push(path);
        }
    }
}

fn test(page: &str, block: &markdown::Block) -> String {
    let page_name = page
        .trim_end_matches(".md")
        .replace(['/', '-', '.'], "_")
        .to_lowercase();
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
        "/// {page}, line {line}\n{attribute}\n{kind} {page_name}_line_{line}() -> Outcome {{\n\
         {limiter}\n{setup}\n{text}\nOk(())\n}}\n",
        line = block.line,
        setup = block.setup,
        text = block.text,
    )
    .unwrap();
    code
}

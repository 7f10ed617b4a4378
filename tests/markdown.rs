// Reads the pages of the book: fenced blocks, headings and links. Used by the build script and by tests.

/// The README files of the repository and its crates, by their paths from the root.
pub(crate) fn readmes(root: &std::path::Path) -> Vec<String> {
    let mut found = vec!["README.md".to_owned()];
    for parent in ["", "functions/"] {
        let folders = std::fs::read_dir(root.join(parent))
            .into_iter()
            .flatten()
            .flatten();
        let paths = folders.map(|folder| format!("{parent}{}/README.md", folder.file_name().display()));
        // The pages of `docs` are read apart. Tests of the template compare the README of the Terraform module with its code.
        let ours = |path: &String| {
            let apart = [".", "docs/", "terraform/"]
                .iter()
                .any(|start| path.starts_with(*start));
            !apart && root.join(path).exists()
        };
        found.extend(paths.filter(ours));
    }
    found.sort();
    found
}

/// The documentation of a Rust file as a page with the same line numbers, without the hidden lines of its blocks.
pub(crate) fn documentation(source: &str) -> String {
    let lines = source.lines().map(|line| {
        let line = line.trim_start();
        let text = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
        let text = text.unwrap_or_default();
        let text = text.strip_prefix(' ').unwrap_or(text);
        if text.starts_with("# ") { "" } else { text }
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// A fenced block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Block {
    /// The line of its fence, counted from 1.
    pub(crate) line: usize,
    /// The words after the fence, such as `rust` and `no_run`.
    pub(crate) info: Vec<String>,
    /// What a comment before the fence says that a test must do first: `<!-- setup: … -->`.
    pub(crate) setup: String,
    /// Its text, without the indentation of the fence.
    pub(crate) text: String,
}

impl Block {
    /// The language.
    pub(crate) fn language(&self) -> &str {
        self.info.first().map_or("", String::as_str)
    }

    /// True if the block is marked with this word.
    pub(crate) fn is(&self, word: &str) -> bool {
        self.info.iter().skip(1).any(|marked| marked == word)
    }
}

/// Every fenced block of a page, in order.
pub(crate) fn blocks(page: &str) -> Vec<Block> {
    let mut found = Vec::new();
    let mut lines = page.lines().enumerate();
    let mut setup = String::new();
    while let Some((index, line)) = lines.next() {
        let indent = line.len() - line.trim_start().len();
        if let Some(comment) = line.trim_start().strip_prefix("<!-- setup:") {
            setup = rest_of_comment(comment, &mut lines);
        } else if let Some(info) = line.trim_start().strip_prefix("```") {
            let text: Vec<_> = lines
                .by_ref()
                .map(|(_, line)| line)
                .take_while(|line| !line.trim_start().starts_with("```"))
                .map(|line| line.get(indent..).unwrap_or(line.trim_start()))
                .collect();
            found.push(Block {
                line: index + 1,
                info: info.split(',').map(|word| word.trim().to_owned()).collect(),
                setup: std::mem::take(&mut setup),
                text: text.join("\n"),
            });
        } else if !line.trim().is_empty() {
            setup.clear();
        }
    }
    found
}

fn rest_of_comment<'a>(first: &'a str, lines: &mut impl Iterator<Item = (usize, &'a str)>) -> String {
    let mut text = vec![first];
    while !text.last().is_some_and(|line| line.contains("-->")) {
        match lines.next() {
            Some((_, line)) => text.push(line),
            None => break,
        }
    }
    text.join("\n").replace("-->", "")
}

/// The page without its fenced blocks.
pub(crate) fn prose(page: &str) -> String {
    let mut inside = false;
    let mut kept = Vec::new();
    for line in page.lines() {
        if line.trim_start().starts_with("```") {
            inside = !inside;
        } else if !inside {
            kept.push(line);
        }
    }
    kept.join("\n")
}

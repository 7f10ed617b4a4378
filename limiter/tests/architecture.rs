//! The page about the architecture: the path of an acquire names functions that exist.

use std::collections::BTreeSet;
use std::path::Path;

/// A file of the repository.
fn read(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    std::fs::read_to_string(root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Function and file of each numbered line.
fn path_of_an_acquire() -> Vec<(String, String)> {
    let page = read("docs/understand/architecture.md");
    let (_, section) = page
        .split_once("\n## One acquire, function by function\n")
        .unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let is_numbered = |line: &&str| line.starts_with(|first: char| first.is_ascii_digit());
    let lines = section.lines().filter(is_numbered);
    let named = lines.enumerate().map(|(index, line)| {
        assert!(line.starts_with(&format!("{}. `", index + 1)), "{line}");
        let spans = line.split('`').skip(1).step_by(2).collect::<Vec<_>>();
        assert!(
            line.contains(&format!("`{}` in `{}` ", spans[0], spans[1])),
            "{line}"
        );
        (spans[0].to_owned(), spans[1].to_owned())
    });
    named.collect()
}

/// True if the code has this function and, where the name has one, an `impl` of its type.
fn has_function(code: &str, name: &str) -> bool {
    let (owner, function) = name.rsplit_once("::").unwrap_or(("", name));
    let has_function = [format!("fn {function}("), format!("fn {function}<")]
        .iter()
        .any(|start| code.contains(start.as_str()));
    let is_impl = |line: &str| {
        let mut words = line.split([' ', '<', '{']);
        words.next() == Some("impl") && words.any(|word| word == owner)
    };
    has_function && (owner.is_empty() || code.lines().any(is_impl))
}

#[test]
fn the_path_of_an_acquire_names_functions_that_exist() {
    let path = path_of_an_acquire();
    for (function, file) in &path {
        assert!(has_function(&read(file), function), "{function} is not in {file}");
    }
    let files: BTreeSet<_> = path.iter().map(|(_, file)| file).collect();
    eprintln!(
        "a warm acquire: {} functions in {} files",
        path.len(),
        files.len()
    );
    assert!(path.len() >= 30, "{}", path.len());
}

#[test]
fn a_function_of_another_name_or_type_is_noticed() {
    let code = "impl One {\n    fn first(&self) {}\n}\nfn free<T>() {}\n";
    assert!(has_function(code, "One::first") && has_function(code, "free"));
    assert!(!has_function(code, "One::second") && !has_function(code, "Two::first"));
}

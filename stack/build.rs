//! Compiles the archives of the Lambda functions into the program, with the feature `bundled-functions`.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Overrides the directory that `make functions` writes the archives to.
const DIRECTORY: &str = "ZAE_LIMITER_FUNCTIONS";
const ARCHITECTURES: [&str; 2] = ["x86_64", "arm64"];
const FUNCTIONS: [&str; 3] = ["aggregator", "archiver", "provisioner"];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if env::var_os("CARGO_FEATURE_BUNDLED_FUNCTIONS").is_none() {
        return;
    }
    println!("cargo::rerun-if-env-changed={DIRECTORY}");
    let written = embed(&directory()).and_then(|code| {
        let out = env::var("OUT_DIR").map_err(|error| error.to_string())?;
        fs::write(Path::new(&out).join("bundled.rs"), code).map_err(|error| error.to_string())
    });
    if let Err(problem) = written {
        println!("cargo::error={problem}");
    }
}

fn directory() -> PathBuf {
    let project = || {
        let package = env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default();
        Path::new(&package).join("../target/functions")
    };
    env::var_os(DIRECTORY).map_or_else(project, PathBuf::from)
}

/// A Rust list of every archive: architecture, function, bytes. An architecture has every function or none.
fn embed(directory: &Path) -> Result<String, String> {
    // The whole directory: cargo would take a file that is not there, as those of another architecture, for changed in every build.
    println!("cargo::rerun-if-changed={}", directory.display());
    let mut list = String::from("&[\n");
    let mut found = 0;
    for architecture in ARCHITECTURES {
        let archives = FUNCTIONS.map(|function| directory.join(architecture).join(format!("{function}.zip")));
        let exists = archives.each_ref().map(|archive| archive.is_file());
        if exists == [false; FUNCTIONS.len()] {
            continue;
        }
        for (function, archive) in FUNCTIONS.into_iter().zip(&archives) {
            let path = fs::canonicalize(archive).map_err(|error| missing(&archive.display(), &error))?;
            let path = path.display().to_string();
            let entry = format!("({architecture:?}, {function:?}, include_bytes!({path:?})),");
            writeln!(list, "    {entry}").map_err(|error| error.to_string())?;
        }
        found += 1;
    }
    list.push(']');
    if found == 0 {
        return Err(missing(&directory.display(), &"it contains no archives"));
    }
    Ok(list)
}

fn missing(path: &dyn std::fmt::Display, problem: &dyn std::fmt::Display) -> String {
    format!(
        "the feature bundled-functions needs the archives of the Lambda functions, and {path} cannot be used: {problem}; build them \
         with `make functions`, or set {DIRECTORY} to the absolute path of a directory with x86_64/aggregator.zip, \
         x86_64/archiver.zip and x86_64/provisioner.zip (or arm64/), as `zae-limiter lambda-export --all --output DIRECTORY/x86_64` writes them"
    )
}

//! What other tools make of the templates.
//!
//! `ZAE_TEST_CFN_LINT` names the cfn-lint to use (`make test` sets it); PyYAML is in its environment.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use serde_json::Value;

use crate::variants;

fn cfn_lint() -> Option<PathBuf> {
    env::var_os("ZAE_TEST_CFN_LINT")
        .filter(|path| !path.is_empty())
        .map(PathBuf::from)
}

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = env::temp_dir().join(format!("zae-limiter-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn write(&self, name: &str, contents: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, contents).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn lint(cfn_lint: &Path, files: &[PathBuf]) -> (bool, String) {
    let output = Command::new(cfn_lint)
        .args(["--include-checks", "I", "--"])
        .args(files)
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    (
        output.status.success(),
        String::from_utf8_lossy(&text).into_owned(),
    )
}

/// Without cfn-lint the crate's own rules, which rendering has applied, and the strictness of the reader are the check.
#[test]
fn cfn_lint_has_nothing_to_say_about_any_variant() {
    let folder = Folder::new("lint");
    let mut files = Vec::new();
    // As JSON: the next test shows that the YAML says the same.
    for (name, template) in variants::all() {
        assert!(template.is_ours(), "{name}");
        files.push(folder.write(&format!("{name}.json"), &template.to_json()));
    }
    let policy = variants::deployer_template().to_string();
    assert!(policy.contains("iam:PassRole"));
    files.push(folder.write("deployer.json", &policy));
    let Some(cfn_lint) = cfn_lint() else { return };
    let (clean, text) = lint(&cfn_lint, &files);
    assert!(clean, "{text}");
    // The check itself must be able to fail: an action that IAM does not know.
    let broken = variants::all()[0]
        .1
        .to_json()
        .replace("dynamodb:Scan", "dynamodb:Scam");
    let (clean, text) = lint(&cfn_lint, &[folder.write("broken.json", &broken)]);
    assert!(!clean && text.contains("W3037"), "{text}");
}

#[test]
fn yaml_1_1_reads_every_variant_as_json_does() {
    let folder = Folder::new("yaml");
    for (name, template) in variants::all() {
        let yaml = template.to_yaml();
        for line in yaml.lines() {
            let scalar = bare_scalar(line);
            assert!(scalar.is_none_or(is_unambiguous), "{name}: {line}");
        }
        let path = folder.write(&format!("{name}.yaml"), &yaml);
        let Some(cfn_lint) = cfn_lint() else { continue };
        let script =
            "import json, sys, yaml; print(json.dumps(yaml.safe_load(open(sys.argv[1], encoding='utf-8'))))";
        let python = cfn_lint.parent().unwrap().join("python");
        let output = Command::new(python)
            .args(["-c", script])
            .arg(&path)
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{name}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        let read: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(read, *template.to_value(), "{name}");
    }
}

/// What stands on a line without quotes, apart from keys.
fn bare_scalar(line: &str) -> Option<&str> {
    let mut rest = line.trim_start();
    while let Some(item) = rest.strip_prefix("- ") {
        rest = item;
    }
    if rest.starts_with('\'') || rest.starts_with('"') {
        return None;
    }
    let value = match rest.split_once(": ") {
        Some((_, value)) => value,
        None if rest.ends_with(':') || rest == "-" => return None,
        None => rest,
    };
    (!value.starts_with(['\'', '"', '{', '['])).then_some(value)
}

/// Text that is text in YAML 1.1, or a number or truth value that JSON writes in the same way.
fn is_unambiguous(scalar: &str) -> bool {
    let number = scalar
        .parse::<f64>()
        .is_ok_and(|number| number.to_string() == scalar);
    let json = scalar == "true" || scalar == "false" || number;
    let words = [
        "y", "n", "yes", "no", "on", "off", "true", "false", "null", "~", "",
    ];
    let text = scalar.starts_with(|c: char| c.is_ascii_alphabetic())
        && !words.contains(&scalar.to_ascii_lowercase().as_str())
        && !scalar.contains(" #")
        && !scalar.ends_with(':');
    json || text
}

#[test]
fn the_scanner_finds_what_yaml_1_1_misreads() {
    for (line, misread) in [
        ("Version: 2012-10-17", true),
        ("Version: '2012-10-17'", false),
        ("  - yes", true),
        ("Enabled: on", true),
        ("Enabled: true", false),
        ("Mode: 0755", true),
        ("Time: 1:30", true),
        ("Threshold: 0.05", false),
        ("Version: 1.10", true),
        ("Type: AWS::SQS::Queue", false),
        ("Resources:", false),
    ] {
        assert_eq!(
            bare_scalar(line).is_some_and(|scalar| !is_unambiguous(scalar)),
            misread,
            "{line}"
        );
    }
}

//! Completions, manual pages and exported files.

use crate::tool::{Bench, command, said};

fn run(arguments: &[&str]) -> crate::tool::Said {
    let mut command = command();
    command.args(arguments);
    said(command)
}

#[test]
fn every_shell_gets_completions() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        assert!(
            run(&["completions", shell])
                .ended(0)
                .stdout
                .contains("set-defaults"),
            "{shell}"
        );
    }
    run(&["completions", "cmd"]).ended(2);
}

#[test]
fn there_is_a_manual_page_for_every_command() {
    assert!(run(&["man"]).ended(0).stdout.contains(".TH zae-limiter 1"));
    let bench = Bench::new();
    let directory = bench.path("man");
    let said = run(&[
        "man",
        "--directory",
        directory.to_str().unwrap(),
        "--output",
        "json",
    ])
    .ended(0);
    let written = std::fs::read_dir(&directory).unwrap().count();
    assert_eq!(said.json()["pages"], written);
    assert!(directory.join("zae-limiter-entity-set-limits.1").exists());
}

#[test]
fn the_template_is_written_in_every_form() {
    let yaml = run(&["cfn-template"]).ended(0).stdout;
    assert!(
        yaml.starts_with("AWSTemplateFormatVersion: '2010-09-09'"),
        "{yaml}"
    );
    let json = run(&["cfn-template", "--format", "json", "--no-alarms"])
        .ended(0)
        .json();
    assert!(json["Resources"].get("RateLimitsTable").is_some());
    let bench = Bench::new();
    let file = bench.path("template.yaml");
    run(&["cfn-template", "--output", file.to_str().unwrap()]).ended(0);
    assert_eq!(std::fs::read_to_string(file).unwrap(), yaml);
    let module = bench.path("module");
    let said = run(&[
        "cfn-template",
        "--format",
        "terraform",
        "-o",
        module.to_str().unwrap(),
    ])
    .ended(0);
    assert!(
        said.stdout.contains("main.tf") && module.join("main.tf").exists(),
        "{said:?}"
    );
    let said = run(&["cfn-template", "--format", "terraform"]).ended(2);
    assert!(said.stderr.contains("--output"), "{said:?}");
}

#[test]
fn an_archive_is_exported_once_unless_forced() {
    let bench = Bench::new();
    std::fs::create_dir(bench.path("x86_64")).unwrap();
    bench.write("x86_64/aggregator.zip", "PK\u{3}\u{4}any");
    let code = bench.path("");
    let target = bench.path("lambda.zip");
    let export = |more: &[&str]| {
        let mut command = command();
        command
            .arg("lambda-export")
            .arg("--code-directory")
            .arg(&code)
            .arg("--output")
            .arg(&target)
            .args(more);
        said(command)
    };
    assert!(export(&[]).ended(0).stdout.contains("sha256"));
    assert!(target.exists());
    let again = export(&[]).ended(2);
    assert!(again.stderr.contains("--force"), "{again:?}");
    export(&["--force"]).ended(0);
    let missing = export(&["--function", "archiver", "--info"]).ended(2);
    assert!(missing.stderr.contains("make functions"), "{missing:?}");
}

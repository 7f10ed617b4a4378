//! Completions, manual pages, and exported files.

use crate::tool::{Bench, command, result};

fn run(arguments: &[&str]) -> crate::tool::RunResult {
    let mut command = command();
    command.args(arguments);
    result(command)
}

#[test]
fn every_shell_gets_completions() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        assert!(
            run(&["completions", shell])
                .expect_exit(0)
                .stdout
                .contains("set-defaults"),
            "{shell}"
        );
    }
    run(&["completions", "cmd"]).expect_exit(2);
}

#[test]
fn every_command_has_a_manual_page() {
    assert!(run(&["man"]).expect_exit(0).stdout.contains(".TH zae-limiter 1"));
    let bench = Bench::new();
    let directory = bench.path("man");
    let result = run(&[
        "man",
        "--directory",
        directory.to_str().unwrap(),
        "--output",
        "json",
    ])
    .expect_exit(0);
    let written = std::fs::read_dir(&directory).unwrap().count();
    assert_eq!(result.json()["pages"], written);
    assert!(directory.join("zae-limiter-entity-set-limits.1").exists());
}

#[test]
fn the_template_is_written_in_every_format() {
    let yaml = run(&["cfn-template"]).expect_exit(0).stdout;
    assert!(
        yaml.starts_with("AWSTemplateFormatVersion: '2010-09-09'"),
        "{yaml}"
    );
    let json = run(&["cfn-template", "--format", "json", "--no-alarms"])
        .expect_exit(0)
        .json();
    assert!(json["Resources"].get("RateLimitsTable").is_some());
    let bench = Bench::new();
    let file = bench.path("template.yaml");
    run(&["cfn-template", "--output", file.to_str().unwrap()]).expect_exit(0);
    assert_eq!(std::fs::read_to_string(file).unwrap(), yaml);
    for (format, own) in [
        ("terraform", "aggregator.tf"),
        ("terraform-cloudformation", "template.json"),
    ] {
        let module = bench.path(format);
        let folder = module.to_str().unwrap();
        let result = run(&["cfn-template", "--format", format, "-o", folder]).expect_exit(0);
        assert!(
            result.stdout.contains("main.tf") && module.join("main.tf").exists(),
            "{result:?}"
        );
        assert!(module.join(own).exists(), "{format}: {result:?}");
    }
    let result = run(&["cfn-template", "--format", "terraform"]).expect_exit(2);
    assert!(result.stderr.contains("--output"), "{result:?}");
}

#[test]
fn a_package_is_not_overwritten_unless_forced() {
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
        result(command)
    };
    assert!(export(&[]).expect_exit(0).stdout.contains("sha256"));
    assert!(target.exists());
    let again = export(&[]).expect_exit(2);
    assert!(again.stderr.contains("--force"), "{again:?}");
    export(&["--force"]).expect_exit(0);
    let missing = export(&["--function", "archiver", "--info"]).expect_exit(2);
    assert!(missing.stderr.contains("make functions"), "{missing:?}");
}

#[test]
fn all_packages_are_written_into_one_directory() {
    let bench = Bench::new();
    std::fs::create_dir(bench.path("arm64")).unwrap();
    for function in ["aggregator", "archiver", "provisioner"] {
        bench.write(
            &format!("arm64/{function}.zip"),
            &format!("PK\u{3}\u{4}{function}"),
        );
    }
    let (code, target) = (bench.path(""), bench.path("archives"));
    let export = || {
        let mut command = command();
        command.args([
            "lambda-export",
            "--all",
            "--architecture",
            "arm64",
            "--code-directory",
        ]);
        command.arg(&code).arg("--output").arg(&target);
        result(command)
    };
    let text = export().expect_exit(0).stdout;
    for function in ["aggregator", "archiver", "provisioner"] {
        assert!(text.contains(&format!("{function} for arm64")), "{text}");
        let written = std::fs::read_to_string(target.join(format!("{function}.zip"))).unwrap();
        assert_eq!(written, format!("PK\u{3}\u{4}{function}"));
    }
    assert!(export().expect_exit(2).stderr.contains("--force"));
}

#[test]
fn policies_are_written_out_for_an_account_and_a_region() {
    let place = [
        "-n",
        "my-app",
        "--region",
        "eu-west-1",
        "--account",
        "123456789012",
    ];
    let policy = |arguments: &[&str]| {
        let all: Vec<&str> = ["policy"]
            .iter()
            .chain(arguments)
            .chain(&place)
            .copied()
            .collect();
        run(&all).expect_exit(0).stdout
    };
    for which in [
        "deployer",
        "provisioning",
        "purge",
        "plan",
        "redrive",
        "ensure",
        "acquire",
        "full",
        "read",
    ] {
        let text = policy(&[which]);
        let document: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(document["Version"], "2012-10-17", "{which}");
        assert!(
            !text.contains("Fn::") && !text.contains("\"Ref\"") && !text.contains("${"),
            "{which}: {text}"
        );
        assert!(
            text.contains("arn:aws:") && text.contains("my-app"),
            "{which}: {text}"
        );
        let terraform = policy(&[which, "--format", "terraform"]);
        assert!(
            terraform.starts_with(&format!("data \"aws_iam_policy_document\" \"{which}\" {{")),
            "{terraform}"
        );
    }
    let bounded = policy(&["provisioning", "--permission-boundary", "company"]);
    assert!(
        bounded.contains("arn:aws:iam::123456789012:policy/company"),
        "{bounded}"
    );
    run(&["policy", "read", "--region", "eu-west-1", "--account", "1"]).expect_exit(2);
}

//! The CI workflows and the Makefile agree.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_yaml::Value;

use crate::scripts::program;

fn project(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

fn yaml(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap();
    serde_yaml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The names before the colon of every rule.
fn targets() -> BTreeSet<String> {
    let makefile = std::fs::read_to_string(project("Makefile")).unwrap();
    let rules = makefile
        .lines()
        .filter(|line| line.starts_with(|first: char| first.is_ascii_lowercase()));
    let names = rules.filter_map(|line| line.split_once(':'));
    names
        .flat_map(|(names, _)| names.split_whitespace())
        .map(str::to_owned)
        .collect()
}

/// Every command of every step.
fn commands(workflow: &Value) -> Vec<String> {
    let jobs = workflow["jobs"].as_mapping().unwrap();
    let steps = jobs
        .values()
        .flat_map(|job| job["steps"].as_sequence().unwrap().clone());
    steps
        .filter_map(|step| step["run"].as_str().map(str::to_owned))
        .collect()
}

/// The targets that a command makes.
fn made(command: &str) -> Vec<&str> {
    let words: Vec<&str> = command.split_whitespace().collect();
    let pairs = words.windows(2).filter(|pair| pair[0] == "make");
    pairs.map(|pair| pair[1]).collect()
}

#[test]
fn workflows_make_targets_that_exist() {
    let targets = targets();
    let mut used = BTreeSet::new();
    for file in std::fs::read_dir(project(".github/workflows")).unwrap() {
        let path = file.unwrap().path();
        let workflow = yaml(&path);
        // YAML 1.1 reads the key `on` as true.
        assert!(
            workflow["name"].is_string() && workflow["permissions"].is_mapping(),
            "{path:?}"
        );
        for command in commands(&workflow) {
            for target in made(&command) {
                assert!(targets.contains(target), "{}: make {target}", path.display());
                used.insert(target.to_owned());
            }
        }
    }
    for needed in [
        "setup",
        "test",
        "audit",
        "render",
        "functions-for-options",
        "plan",
        "deploy",
    ] {
        assert!(used.contains(needed), "no workflow has make {needed}");
    }
}

fn step_of<'a>(job: &'a Value, key: &str) -> Option<&'a Value> {
    let steps = job["steps"].as_sequence()?;
    steps.iter().find_map(|step| step["with"].get(key))
}

#[test]
fn pull_requests_plan_by_a_role_that_reads_and_main_deploys_by_another() {
    let deploy = yaml(&project(".github/workflows/deploy.yml"));
    let (plan, main) = (&deploy["jobs"]["plan"], &deploy["jobs"]["deploy"]);
    for (job, role, condition, command) in [
        (
            plan,
            "${{ vars.AWS_PLAN_ROLE_ARN }}",
            "'pull_request'",
            "make plan OFFLINE=1",
        ),
        (main, "${{ vars.AWS_DEPLOY_ROLE_ARN }}", "'push'", "make deploy"),
    ] {
        assert_eq!(step_of(job, "role-to-assume").unwrap(), role);
        assert!(job["if"].as_str().unwrap().contains(condition), "{role}");
        let runs = job["steps"]
            .as_sequence()
            .unwrap()
            .iter()
            .filter_map(|step| step["run"].as_str());
        assert!(runs.into_iter().any(|run| run.contains(command)), "{command}");
    }
    assert_ne!(plan["environment"], main["environment"]);
    // A fork must not get near an identity.
    let render = &deploy["jobs"]["render"];
    assert!(render["permissions"].is_null() && deploy["permissions"].get("id-token").is_none());
    assert!(step_of(render, "role-to-assume").is_none());
    assert!(
        plan["if"]
            .as_str()
            .unwrap()
            .contains("head.repo.full_name == github.repository")
    );
}

/// What a step of a job asks of rustup, with an options file.
fn asked_of_rustup(job: &Value, step: &str, options: &Path, directory: &Path) -> Vec<String> {
    let steps = job["steps"].as_sequence().unwrap();
    let step = steps.iter().find(|found| found["name"] == step).unwrap();
    let log = directory.join("rustup.log");
    std::fs::write(&log, "").unwrap();
    let rustup = format!("#!/bin/sh\necho \"$@\" >>'{}'\n", log.display());
    program(&directory.join("rustup"), &rustup);
    let path = std::env::var("PATH").unwrap_or_default();
    // The shell of a step on GitHub.
    let status = std::process::Command::new("bash")
        .args(["-e", "-c", step["run"].as_str().unwrap()])
        .current_dir(project(""))
        .env("PATH", format!("{}:{path}", directory.display()))
        .env("OPTIONS_FILE", options)
        .status()
        .unwrap();
    assert!(status.success());
    let log = std::fs::read_to_string(log).unwrap();
    log.lines().map(str::to_owned).collect()
}

#[test]
fn jobs_that_build_functions_install_what_their_architecture_needs() {
    let directory = tempfile::tempdir().unwrap();
    let arm = directory.path().join("arm.yaml");
    std::fs::write(&arm, "lambda_architecture: arm64\n").unwrap();
    let deploy = yaml(&project(".github/workflows/deploy.yml"));
    for name in ["plan", "deploy"] {
        let job = &deploy["jobs"][name];
        for (options, target) in [
            (arm.as_path(), "aarch64-unknown-linux-gnu"),
            (Path::new(""), "x86_64-unknown-linux-gnu"),
        ] {
            let asked = asked_of_rustup(job, "Toolchain", options, directory.path());
            let added = asked.iter().filter(|line| line.starts_with("target add"));
            let added: Vec<&str> = added.filter_map(|line| line.split(' ').next_back()).collect();
            assert_eq!(added, [target], "{name}: {asked:?}");
        }
        let steps = job["steps"].as_sequence().unwrap();
        let at = |name: &str| steps.iter().position(|step| step["name"] == name).unwrap();
        assert!(at("Toolchain") < at("Build"), "{name}");
    }
}

#[test]
fn actions_are_pinned_by_commit_and_the_toolchain_by_version() {
    for file in std::fs::read_dir(project(".github/workflows")).unwrap() {
        let path = file.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        for line in text.lines() {
            if let Some((_, used)) = line.split_once("uses: ") {
                let commit = used.split_once('@').map_or("", |(_, version)| version);
                let commit = commit.split(' ').next().unwrap_or_default();
                let pinned = commit.len() == 40 && commit.bytes().all(|b| b.is_ascii_hexdigit());
                assert!(pinned, "{}: {line}", path.display());
            }
            assert!(
                !line.contains("toolchain install stable"),
                "{}: {line}",
                path.display()
            );
        }
    }
}

#[test]
fn a_release_has_wheels_for_every_platform() {
    let release = yaml(&project(".github/workflows/release.yml"));
    let wheels = &release["jobs"]["wheels"];
    let built = wheels["strategy"]["matrix"]["include"].as_sequence().unwrap();
    let platforms: Vec<_> = built
        .iter()
        .map(|entry| entry["platform"].as_str().unwrap())
        .collect();
    for platform in [
        "manylinux-x86_64",
        "manylinux-aarch64",
        "macos-arm64",
        "windows-x86_64",
    ] {
        assert!(platforms.contains(&platform), "{platform}");
    }
    let published = release["jobs"]["publish"]["needs"].as_sequence().unwrap();
    assert!(published.iter().any(|job| job == "wheels"));
}

#[test]
fn a_job_deploys_to_the_localstack_of_the_compose_file() {
    let test = yaml(&project(".github/workflows/test.yml"));
    let service = &test["jobs"]["localstack"]["services"]["localstack"];
    let compose = yaml(&project("localstack/docker-compose.yml"));
    let composed = &compose["services"]["localstack"];
    assert_eq!(service["image"], composed["image"]);
    assert_eq!(service["env"]["SERVICES"], composed["environment"]["SERVICES"]);
    let commands = commands(&test).join("\n");
    for command in ["deploy", "acquire", "status", "delete"] {
        assert!(commands.contains(&format!("zae-limiter {command}")), "{command}");
    }
}

#[test]
fn localstack_has_what_the_stack_needs() {
    let compose = yaml(&project("localstack/docker-compose.yml"));
    let services = compose["services"].as_mapping().unwrap();
    let environment = services.values().next().unwrap()["environment"].clone();
    let text = serde_yaml::to_string(&environment).unwrap();
    let line = text.lines().find(|line| line.contains("SERVICES")).unwrap();
    let (_, enabled) = line.split_once(':').unwrap();
    let enabled: Vec<&str> = enabled.trim().split(',').collect();
    assert_eq!(
        enabled,
        [
            "cloudformation",
            "cloudwatch",
            "dynamodb",
            "dynamodbstreams",
            "iam",
            "lambda",
            "logs",
            "s3",
            "sns",
            "sqs",
            "sts",
        ]
    );
}

#[test]
fn pre_commit_hooks_run_commands_that_exist() {
    let config = yaml(&project(".pre-commit-config.yaml"));
    let hooks = config["repos"][0]["hooks"].as_sequence().unwrap();
    let ids: Vec<&str> = hooks.iter().map(|hook| hook["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["fmt", "clippy", "templates", "secrets"]);
    for hook in hooks {
        let entry = hook["entry"].as_str().unwrap();
        let program = entry.split(' ').next().unwrap();
        let known = ["cargo", "detect-secrets-hook"].contains(&program);
        assert!(known || project(program).is_file(), "{entry}");
    }
    assert!(project(".secrets.baseline").is_file());
}

#[test]
fn the_devcontainer_sets_the_project_up() {
    let text = std::fs::read_to_string(project(".devcontainer/devcontainer.json")).unwrap();
    let command = text
        .lines()
        .find(|line| line.contains("postCreateCommand"))
        .unwrap();
    assert!(
        targets().contains("setup") && command.contains("make setup"),
        "{command}"
    );
    assert!(command.contains("scripts/toolchain install"), "{command}");
}

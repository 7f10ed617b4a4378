//! The files that deploy and test this project elsewhere say what the Makefile knows.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_yaml::Value;

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
    for needed in ["setup", "test", "audit", "functions", "plan", "deploy"] {
        assert!(used.contains(needed), "no workflow has make {needed}");
    }
}

#[test]
fn pull_requests_plan_and_main_deploys_by_a_role_of_oidc() {
    let deploy = yaml(&project(".github/workflows/deploy.yml"));
    assert_eq!(deploy["permissions"]["id-token"], "write");
    let steps = deploy["jobs"]["stack"]["steps"].as_sequence().unwrap();
    let condition_of = |target: &str| {
        let step = steps.iter().find(|step| {
            step["run"]
                .as_str()
                .is_some_and(|run| made(run).contains(&target))
        });
        step.unwrap()["if"].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!(condition_of("plan"), "github.event_name == 'pull_request'");
    assert_eq!(condition_of("deploy"), "github.event_name == 'push'");
    let role = steps
        .iter()
        .find_map(|step| step["with"]["role-to-assume"].as_str());
    assert_eq!(role, Some("${{ vars.AWS_DEPLOY_ROLE_ARN }}"));
}

#[test]
fn localstack_has_what_the_stack_needs() {
    let compose = yaml(&project("localstack/docker-compose.yml"));
    let services = compose["services"].as_mapping().unwrap();
    let environment = services.values().next().unwrap()["environment"].clone();
    let text = serde_yaml::to_string(&environment).unwrap();
    let line = text.lines().find(|line| line.contains("SERVICES")).unwrap();
    for service in [
        "cloudformation",
        "cloudwatch",
        "dynamodb",
        "dynamodbstreams",
        "iam",
        "lambda",
        "logs",
        "s3",
        "sqs",
        "sts",
    ] {
        assert!(line.contains(service), "{service} in {line}");
    }
}

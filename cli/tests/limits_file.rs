use serde_json::{Value, json};

use crate::tool::Bench;

const FILE: &str = "
system:
  on_unavailable: block
  limits: ['rpm:100', 'tpm:10000/min:15000']
resources:
  gpt-4:
    limits: {rpm: 500}
entities:
  user-1:
    resources:
      gpt-4: {limits: {rpm: 2000}}
";

fn actions(plan: &Value) -> Vec<String> {
    let list = plan["changes"].as_array().unwrap();
    list.iter()
        .map(|change| {
            format!(
                "{} {}",
                change["action"].as_str().unwrap(),
                change["level"].as_str().unwrap()
            )
        })
        .collect()
}

#[test]
fn a_file_is_planned_applied_and_then_unchanged() {
    let bench = Bench::new();
    let file = bench.write("limits.yaml", FILE);
    let plan = bench.json(&["limits", "plan", &file]);
    assert_eq!(
        actions(&plan),
        ["create system", "create resource", "create entity"]
    );
    assert_eq!(plan["applied"], false);
    bench
        .run(&["limits", "plan", &file, "--detailed-exitcode"])
        .expect_exit(2);
    assert_eq!(
        bench.json(&["system", "get-defaults"])["configured"],
        false,
        "a plan changes nothing"
    );

    let applied = bench.json(&["limits", "apply", &file, "--yes"]);
    assert_eq!(
        applied["summary"],
        json!({ "create": 3, "update": 0, "delete": 0, "unchanged": 0 })
    );
    assert_eq!(
        bench.json(&["entity", "get-limits", "user-1", "-r", "gpt-4"])["limits"][0]["capacity"],
        2000
    );
    assert_eq!(
        bench.ok(&["limits", "plan", &file, "--detailed-exitcode"]),
        "no changes: all 3 levels of the file match the table\n"
    );
    let events = bench.json(&["audit", "list", "-e", "$SYSTEM"])["count"].clone();
    bench.ok(&["limits", "apply", &file, "--yes"]);
    assert_eq!(
        bench.json(&["audit", "list", "-e", "$SYSTEM"])["count"],
        events,
        "nothing is written twice"
    );
}

#[test]
fn levels_removed_from_the_file_are_deleted_and_unmanaged_ones_are_kept() {
    let bench = Bench::new();
    let file = bench.write("limits.yaml", FILE);
    bench.ok(&["resource", "set-defaults", "claude", "-l", "rpm:7"]);
    bench.ok(&["limits", "apply", &file, "--yes"]);
    let smaller = bench.write("limits.yaml", "system: {limits: {rpm: 200}}\n");
    let text = bench.ok(&["limits", "plan", &smaller]);
    assert_eq!(
        text,
        "~ system\n    - rpm:100/min\n    - tpm:10000/min:15000\n    - on_unavailable: block\n    + rpm:200/min\n\
         - resource gpt-4\n    - rpm:500/min\n\
         - entity user-1 on gpt-4\n    - rpm:2000/min\n\
         0 to create, 1 to update, 2 to delete, 0 unchanged\n"
    );
    bench.ok(&["limits", "apply", &smaller, "--yes"]);
    assert_eq!(bench.json(&["resource", "list"])["resources"], json!(["claude"]));
    assert_eq!(
        bench.json(&["system", "get-defaults"])["on_unavailable"],
        json!(null)
    );
}

#[test]
fn diff_shows_outside_changes_and_unmanaged_levels() {
    let bench = Bench::new();
    let file = bench.write("limits.yaml", FILE);
    bench.ok(&["limits", "apply", &file, "--yes"]);
    bench.ok(&["resource", "set-defaults", "gpt-4", "-l", "rpm:9"]);
    bench.ok(&["entity", "set-limits", "user-9", "-l", "rpm:3"]);
    let diff = bench.json(&["limits", "diff", &file]);
    assert_eq!(diff["differences"][0]["resource"], "gpt-4");
    assert_eq!(diff["unmanaged"][0]["entity_id"], "user-9");
    let text = bench
        .run(&["limits", "diff", &file, "--detailed-exitcode"])
        .expect_exit(2)
        .stdout;
    assert!(text.contains("    - rpm:9/min\n    + rpm:500/min"), "{text}");
    assert!(
        text.contains("not managed by the file:\n    entity user-9: rpm:3/min"),
        "{text}"
    );
}

#[test]
fn a_level_can_have_a_policy_without_limits() {
    let bench = Bench::new();
    let file = bench.write(
        "limits.yaml",
        "resources: {gpt-4: {limits: {rpm: 5}, on_unavailable: block}}",
    );
    bench.ok(&["limits", "apply", &file, "--yes"]);
    let file = bench.write("limits.yaml", "resources: {gpt-4: {on_unavailable: allow}}");
    bench.ok(&["limits", "apply", &file, "--yes"]);
    let config = bench.json(&["resource", "get-defaults", "gpt-4"]);
    assert_eq!(
        (config["limits"].clone(), config["on_unavailable"].clone()),
        (json!([]), json!("allow"))
    );
    assert!(bench.ok(&["limits", "plan", &file]).starts_with("no changes"));
}

#[test]
fn a_file_can_come_from_standard_input() {
    let bench = Bench::new();
    let mut command = bench.command(&["limits", "plan", "-", "--output", "json"]);
    let output = command.write_stdin(FILE).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn errors_in_the_file_name_the_path_and_nothing_is_changed() {
    let bench = Bench::new();
    let file = bench.write(
        "limits.yaml",
        "system: {limits: {rpm: 1}}\nresources: {gpt-4: {limits: {rpm: lots}}}\n",
    );
    let result = bench.run(&["limits", "apply", &file, "--yes"]).expect_exit(2);
    assert!(result.stderr.contains("resources.gpt-4.limits.rpm"), "{result:?}");
    assert!(!bench.path("table.db").exists(), "the table was not even opened");
    let result = bench.run(&["limits", "plan", "no-such-file.yaml"]).expect_exit(1);
    assert!(
        result
            .stderr
            .starts_with("error: no-such-file.yaml could not be read"),
        "{result:?}"
    );
}

#[test]
fn without_a_terminal_changes_need_yes() {
    let bench = Bench::new();
    let file = bench.write("limits.yaml", FILE);
    let result = bench.run(&["limits", "apply", &file]).expect_exit(2);
    assert!(
        result.stderr.contains("3 to create") && result.stderr.contains("--yes"),
        "{result:?}"
    );
    assert_eq!(bench.json(&["system", "get-defaults"])["configured"], false);
}

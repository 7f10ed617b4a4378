use serde_json::json;

use crate::tool::Bench;

#[test]
fn changes_are_listed_newest_first_with_who_made_them() {
    let bench = Bench::new();
    bench.ok(&["entity", "create", "user-1"]);
    bench.ok(&["entity", "set-limits", "user-1", "-r", "gpt-4", "-l", "rpm:10"]);
    let list = bench.json(&["audit", "list", "--entity-id", "user-1"]);
    let actions: Vec<_> = list["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| event["action"].clone())
        .collect();
    assert_eq!(actions, ["limits_set", "entity_created"]);
    assert_eq!(list["events"][0]["principal"], "tester");
    assert_eq!(list["events"][0]["resource"], "gpt-4");
    assert_eq!(list["events"][0]["details"]["limits"][0]["capacity"], 10);
    let text = bench.ok(&["audit", "list", "-e", "user-1"]);
    assert!(
        text.contains("rpm:10/min") && text.ends_with("2 events\n"),
        "{text}"
    );

    let newest = list["events"][0]["event_id"].as_str().unwrap();
    let older = bench.json(&["audit", "list", "-e", "user-1", "--start-event-id", newest]);
    assert_eq!(
        (older["count"].clone(), older["events"][0]["action"].clone()),
        (json!(1), json!("entity_created"))
    );
    let one = bench.json(&["audit", "list", "-e", "user-1", "-l", "1"]);
    assert_eq!(
        (one["count"].clone(), one["truncated"].clone()),
        (json!(1), json!(true))
    );
}

#[test]
fn resources_and_the_system_have_events_too() {
    let bench = Bench::new();
    bench.ok(&["system", "set-defaults", "-l", "rpm:1"]);
    bench.ok(&["resource", "set-defaults", "gpt-4", "-l", "rpm:1"]);
    assert_eq!(bench.json(&["audit", "list", "-e", "$SYSTEM"])["count"], 1);
    assert_eq!(
        bench.json(&["audit", "list", "-e", "$RESOURCE:gpt-4"])["count"],
        1
    );
    assert_eq!(bench.ok(&["audit", "list", "-e", "nobody"]), "0 events\n");
    bench
        .run(&["audit", "list", "-e", "user-1", "--start-event-id", "x"])
        .expect_exit(2);
}

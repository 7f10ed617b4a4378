use serde_json::json;

use crate::tool::Bench;

#[test]
fn an_entity_is_created_shown_changed_and_deleted() {
    let bench = Bench::new();
    let created = bench.json(&[
        "entity",
        "create",
        "project-1",
        "--display-name",
        "Search",
        "--metadata",
        "tier=gold",
    ]);
    assert_eq!(created["entity_id"], "project-1");
    assert_eq!(created["name"], "Search");
    assert_eq!(created["metadata"], json!({ "tier": "gold" }));
    assert_eq!(created["parent_id"], json!(null));
    assert_eq!(created["cascade"], false);
    assert!(created["created_at"].as_str().unwrap().ends_with('Z'));

    bench.ok(&["entity", "create", "key-1", "--parent", "project-1", "--cascade"]);
    let shown = bench.ok(&["entity", "show", "key-1"]);
    assert!(
        shown.contains("Parent:   project-1") && shown.contains("Cascade:  yes"),
        "{shown}"
    );

    let changed = bench.json(&[
        "entity",
        "update",
        "key-1",
        "--no-parent",
        "--no-cascade",
        "--display-name",
        "Key",
    ]);
    assert_eq!(changed["parent_id"], json!(null));
    assert_eq!(changed["cascade"], false);
    assert_eq!(changed["name"], "Key");

    let deleted = bench.json(&["entity", "delete", "key-1", "--yes"]);
    assert_eq!(deleted["records_deleted"], 1);
    assert_eq!(
        bench.run(&["entity", "show", "key-1"]).expect_exit(1).stderr,
        "error: there is no entity key-1; create it first\n"
    );
}

#[test]
fn lists_have_every_entity_in_order() {
    let bench = Bench::new();
    for id in ["b", "a", "c"] {
        bench.ok(&["entity", "create", id]);
    }
    bench.ok(&["entity", "create", "child", "--parent", "a"]);
    let list = bench.json(&["entity", "list"]);
    let ids: Vec<_> = list["entities"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entity| entity["entity_id"].clone())
        .collect();
    assert_eq!(ids, ["a", "b", "c", "child"]);
    assert_eq!(list["count"], 4);
    assert_eq!(list["truncated"], false);
    let some = bench.json(&["entity", "list", "--limit", "2"]);
    assert_eq!(
        (some["count"].clone(), some["truncated"].clone()),
        (json!(2), json!(true))
    );
    let text = bench.ok(&["entity", "list"]);
    assert!(
        text.starts_with("Entity") && text.ends_with("4 entities\n"),
        "{text}"
    );
    let children = bench.json(&["entity", "children", "a"]);
    assert_eq!(children["entities"][0]["entity_id"], "child");
    assert!(bench.ok(&["entity", "children", "b"]).contains("0 entities"));
}

#[test]
fn entities_with_custom_limits_are_found_by_resource() {
    let bench = Bench::new();
    bench.ok(&[
        "entity",
        "set-limits",
        "user-1",
        "--resource",
        "gpt-4",
        "-l",
        "rpm:10",
    ]);
    bench.ok(&["entity", "set-limits", "user-2", "-l", "rpm:10"]);
    let found = bench.json(&["entity", "list", "--with-custom-limits", "gpt-4"]);
    assert_eq!(found["entity_ids"], json!(["user-1"]));
    let found = bench.json(&["entity", "list", "--with-custom-limits", "_default_"]);
    assert_eq!(found["entity_ids"], json!(["user-2"]));
    assert_eq!(
        bench.json(&["entity", "list-resources"])["resources"],
        json!(["_default_", "gpt-4"])
    );
    let text = bench.ok(&["entity", "list", "--with-custom-limits", "gpt-4"]);
    assert!(text.contains("user-1\n1 entity with custom limits"), "{text}");
}

#[test]
fn a_parent_is_not_deleted_before_its_children() {
    let bench = Bench::new();
    bench.ok(&["entity", "create", "project-1"]);
    bench.ok(&["entity", "create", "key-1", "--parent", "project-1"]);
    let result = bench
        .run(&["entity", "delete", "project-1", "-y", "--output", "json"])
        .expect_exit(1);
    assert_eq!(result.error()["error"], "hierarchy");
    let result = bench.run(&["entity", "create", "key-1"]).expect_exit(1);
    assert!(result.stderr.contains("already exists"), "{result:?}");
    let result = bench
        .run(&["entity", "create", "key-2", "--parent", "nobody"])
        .expect_exit(1);
    assert!(result.stderr.contains("create the parent first"), "{result:?}");
}

#[test]
fn an_update_must_change_something() {
    let result = Bench::new().run(&["entity", "update", "key-1"]).expect_exit(2);
    assert!(result.stderr.contains("required"), "{result:?}");
}

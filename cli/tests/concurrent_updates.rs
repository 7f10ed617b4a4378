//! Several commands change one entity at the same time.

use serde_json::{Value, json};

use crate::local::Cloud;
use crate::tool::result;

fn on(cloud: &Cloud, arguments: &[&str]) -> Value {
    let arguments = [arguments, &["-n", "demo", "--output", "json"]].concat();
    result(cloud.on(&arguments)).expect_exit(0).json()
}

#[test]
fn six_updates_at_once_all_stay_and_the_audit_agrees() {
    let cloud = Cloud::new();
    cloud.up().expect_exit(0);
    let deploy = [
        "deploy",
        "-n",
        "demo",
        "--no-aggregator",
        "--no-audit-archival",
        "--yes",
    ];
    result(cloud.on(&deploy)).expect_exit(0);
    on(&cloud, &["entity", "create", "user-1"]);
    std::thread::scope(|scope| {
        for number in 0..6 {
            let cloud = &cloud;
            scope.spawn(move || {
                let entry = format!("key-{number}={number}");
                on(cloud, &["entity", "update", "user-1", "--metadata", &entry]);
            });
        }
    });
    let all = json!({ "key-0": 0, "key-1": 1, "key-2": 2, "key-3": 3, "key-4": 4, "key-5": 5 });
    let user = on(&cloud, &["entity", "show", "user-1"]);
    assert_eq!(user["metadata"], all);
    let audit = on(&cloud, &["audit", "list", "--entity-id", "user-1"]);
    let events = audit["events"].as_array().unwrap();
    assert_eq!(events.len(), 7);
    assert_eq!(
        events[0]["details"]["metadata"], all,
        "the newest event tells what is stored"
    );
    let sizes: Vec<usize> = events[..6]
        .iter()
        .map(|event| event["details"]["metadata"].as_object().unwrap().len())
        .collect();
    assert_eq!(sizes, [6, 5, 4, 3, 2, 1]);

    let entry = ["entity", "update", "user-1", "--metadata", "key-0=new"];
    let changed = on(&cloud, &[&entry[..], &["--remove-metadata", "key-5"]].concat());
    assert_eq!(
        changed["metadata"],
        json!({ "key-0": "new", "key-1": 1, "key-2": 2, "key-3": 3, "key-4": 4 })
    );
    let replaced = on(&cloud, &[&entry[..], &["--no-metadata"]].concat());
    assert_eq!(replaced["metadata"], json!({ "key-0": "new" }));
}

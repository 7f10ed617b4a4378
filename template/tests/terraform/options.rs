//! Options that are set to some values, alone and together.

use serde_json::json;
use zae_limiter_template::{StackName, StackOptions};

use crate::terraform::compare::{module, variables, with_code};
use crate::variants;

/// Our own rules and those of the module, on the same values.
#[test]
fn the_module_refuses_what_we_refuse() {
    let cases = [
        ("usage_retention_days", json!(90), true),
        ("usage_retention_days", json!(0), false),
        ("usage_retention_days", json!(3651), false),
        ("pitr_recovery_days", json!(36), false),
        ("pitr_recovery_days", json!(null), true),
        ("log_retention_days", json!(2), false),
        ("log_retention_days", json!(3653), true),
        ("snapshot_windows", json!(["monthly"]), true),
        ("snapshot_windows", json!([]), false),
        ("snapshot_windows", json!(["weekly"]), false),
        ("stream_start", json!("latest"), true),
        ("stream_start", json!("LATEST"), false),
        ("kms_key_arn", json!(variants::KEY), true),
        ("kms_key_arn", json!("alias/mine"), false),
        ("archive_bucket", json!("a..b"), false),
        ("archive_bucket", json!("a.b"), true),
        ("archive_bucket", json!("A"), false),
        ("role_name_format", json!("x"), false),
        (
            "role_name_format",
            json!(format!("{}{{}}", "x".repeat(54))),
            false,
        ),
        ("role_name_format", json!("pb-{}"), true),
        ("permission_boundary", json!("a b"), false),
        ("tags", json!({ "team": "search" }), true),
        ("tags", json!({ "AWS:x": "y" }), false),
        ("tags", json!({ "ManagedBy": "me" }), false),
        ("tags", json!({ "zae-limiter:x": "me" }), false),
        ("tags", json!({ "": "x" }), false),
        ("tags", json!({ "a": "b#" }), false),
        ("tags", json!({ "a".repeat(129): "b" }), false),
        ("tags", json!({ "a": "b".repeat(257) }), false),
        ("create_iam_roles", json!(true), true),
        ("audit_archive_object_lock_days", json!(36_501), false),
    ];
    let module = module();
    for (field, value, fine) in cases {
        let ours = StackOptions::from_value(json!({ field: value }));
        assert_eq!(ours.is_ok(), fine, "{field} = {value}: {ours:?}");
        let mut given = variables("limiter", &with_code(StackOptions::builder()));
        given.insert(field.to_owned(), value.clone());
        assert_eq!(module.evaluate(&given).is_ok(), fine, "{field} = {value}");
    }
    for (name, fine) in [
        ("abc", true),
        ("ab", false),
        ("1ab", false),
        ("a_b", false),
        (variants::LONGEST_NAME, true),
    ] {
        assert_eq!(StackName::parse(name).is_ok(), fine, "{name}");
        let given = variables(name, &with_code(StackOptions::builder()));
        assert_eq!(module.evaluate(&given).is_ok(), fine, "{name}");
    }
}

#[test]
fn the_module_refuses_options_that_contradict_each_other() {
    let module = module();
    let cases = [
        (
            json!({ "create_iam_roles": true, "create_iam": false }),
            "create_iam_roles",
        ),
        (
            json!({ "archive_bucket": "archive", "audit_archive_object_lock_days": 1 }),
            "audit_archive_object_lock_days",
        ),
        (
            json!({ "aggregator_code_key": "a.zip", "archiver_code_key": "b.zip" }),
            "aggregator_code_key",
        ),
        (
            json!({ "role_name_format": format!("{}-{{}}", "x".repeat(50)) }),
            "role",
        ),
    ];
    for (options, message) in cases {
        let mut given = options.as_object().unwrap().clone();
        given.insert("name".into(), json!("a-name-of-a-stack"));
        given.entry("code_directory").or_insert_with(|| json!("archives"));
        let broken = module.evaluate(&given).map(|_| ()).unwrap_err();
        assert!(broken.iter().all(|line| line.contains(message)), "{broken:?}");
    }
    let none = json!({ "name": "limiter" });
    let broken = std::panic::catch_unwind(|| module.evaluate(none.as_object().unwrap()).map(|_| ()));
    assert!(!matches!(broken, Ok(Ok(()))), "functions without code");
}

//! Policies, evaluated.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use zae_limiter_template::model::iam::{Action, PolicyDocument};

use zae_limiter_testing::connection::Access;

/// True if a policy permits an access.
fn permits(policy: &Value, access: &Access) -> bool {
    let statements = policy["Statement"].as_array().unwrap();
    statements.iter().any(|statement| {
        let action = many(&statement["Action"]).any(|action| action == access.action.as_str());
        let index = statement["Resource"].to_string().contains("/index/");
        let dynamodb = access.action.starts_with("dynamodb:");
        let condition = &statement["Condition"]["ForAllValues:StringLike"]["dynamodb:LeadingKeys"];
        action && (!dynamodb || index == access.index) && in_partition(condition, access.partition.as_deref())
    })
}

fn many(value: &Value) -> impl Iterator<Item = &str> {
    let one = value.as_str().into_iter();
    let all = value.as_array().into_iter().flatten();
    one.chain(all.filter_map(Value::as_str))
}

fn in_partition(patterns: &Value, partition: Option<&str>) -> bool {
    let like = |pattern: &str, partition: &str| match pattern.strip_suffix('*') {
        Some(start) => partition.starts_with(start),
        None => partition == pattern,
    };
    // A request without a key has no value that could be unlike.
    patterns.is_null()
        || partition.is_none_or(|partition| many(patterns).any(|pattern| like(pattern, partition)))
}

/// Fails unless a policy permits all of what was done, and nothing that was not, except for what others do by it.
#[track_caller]
pub(crate) fn just_enough(policy: &PolicyDocument, done: &BTreeSet<Access>, by_others: &[&str]) {
    let json = json!(policy);
    let refused: Vec<_> = done.iter().filter(|access| !permits(&json, access)).collect();
    assert!(refused.is_empty(), "not permitted: {refused:#?}");
    let used: BTreeSet<&str> = done.iter().map(|access| access.action.as_str()).collect();
    let permitted = policy.allowed_actions();
    let unused: Vec<&str> = permitted
        .iter()
        .map(Action::as_str)
        .filter(|action| !used.contains(action))
        .collect();
    assert_eq!(unused, by_others, "permitted and not used");
}

//! Policies, evaluated.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use zae_limiter_template::model::iam::{Action, PolicyDocument};

use super::recorder::Deed;

/// Whether a policy permits a deed.
fn permits(policy: &Value, deed: &Deed) -> bool {
    let statements = policy["Statement"].as_array().unwrap();
    statements.iter().any(|statement| {
        let action = many(&statement["Action"]).any(|action| action == deed.action.as_str());
        let index = statement["Resource"].to_string().contains("/index/");
        let dynamodb = deed.action.starts_with("dynamodb:");
        let condition = &statement["Condition"]["ForAllValues:StringLike"]["dynamodb:LeadingKeys"];
        action && (!dynamodb || index == deed.index) && in_partition(condition, deed.partition.as_deref())
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
pub(crate) fn just_enough(policy: &PolicyDocument, done: &BTreeSet<Deed>, by_others: &[&str]) {
    let json = json!(policy);
    let refused: Vec<_> = done.iter().filter(|deed| !permits(&json, deed)).collect();
    assert!(refused.is_empty(), "not permitted: {refused:#?}");
    let used: BTreeSet<&str> = done.iter().map(|deed| deed.action.as_str()).collect();
    let permitted = policy.allowed_actions();
    let unused: Vec<&str> = permitted
        .iter()
        .map(Action::as_str)
        .filter(|action| !used.contains(action))
        .collect();
    assert_eq!(unused, by_others, "permitted and not used");
}

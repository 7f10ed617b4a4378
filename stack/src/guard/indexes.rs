//! Index changes that DynamoDB cannot make in one update. CloudFormation does not report them before it fails.

use std::collections::BTreeMap;

use serde_json::Value;
use zae_limiter_template::Template;
use zae_limiter_template::model::ids;

use super::Refusal;

/// Index changes that DynamoDB cannot make in one update, and removals.
pub(super) fn refusals(before: &Template, after: &Template) -> Vec<Refusal> {
    // If a template has no table, the whole table is added or refused.
    let (Some(old), Some(new)) = (indexes(before), indexes(after)) else {
        return vec![];
    };
    let mut refusals = Vec::new();
    for (name, old) in &old {
        match new.get(name) {
            None => refusals.push(refusal(
                name,
                "would be removed, and queries that use it would fail",
                true,
            )),
            Some(new) if old != new => {
                let reason = "has different keys or a different projection, which DynamoDB cannot change: remove the index in one \
                              deployment and add it in the next, or rename it";
                refusals.push(refusal(name, reason, false));
            }
            Some(_) => {}
        }
    }
    let removed = old.keys().filter(|name| !new.contains_key(*name));
    let added = new.keys().filter(|name| !old.contains_key(*name));
    let steps: Vec<_> = removed.chain(added).map(String::as_str).collect();
    if steps.len() > 1 {
        let reason = format!(
            "would gain or lose {} indexes at once ({}), and DynamoDB allows one per update: deploy them one by one",
            steps.len(),
            steps.join(", ")
        );
        refusals.push(Refusal {
            what: ids::TABLE.to_string(),
            reason,
            can_be_allowed: false,
        });
    }
    refusals
}

fn refusal(index: &str, reason: &str, can_be_allowed: bool) -> Refusal {
    Refusal {
        what: format!("{}/{index}", ids::TABLE),
        reason: reason.to_owned(),
        can_be_allowed,
    }
}

/// Keys and projection by name, if there is a table.
pub(crate) fn indexes(template: &Template) -> Option<BTreeMap<String, (Value, Value)>> {
    let properties = template.resource(&ids::TABLE)?.get("Properties")?;
    let all = properties
        .get("GlobalSecondaryIndexes")
        .and_then(Value::as_array)
        .map_or(&[][..], Vec::as_slice);
    let named = all.iter().filter_map(|index| {
        let part = |name: &str| index.get(name).cloned().unwrap_or_default();
        Some((
            index.get("IndexName")?.as_str()?.to_owned(),
            (part("KeySchema"), part("Projection")),
        ))
    });
    Some(named.collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use serde_json::json;

    fn table(indexes: &[(&str, &str, &str)]) -> Template {
        let indexes: Vec<_> = indexes
            .iter()
            .map(|(name, key, projection)| {
                json!({ "IndexName": name, "KeySchema": [{ "AttributeName": key, "KeyType": "HASH" }],
                        "Projection": { "ProjectionType": projection } })
            })
            .collect();
        let table =
            json!({ "Type": "AWS::DynamoDB::Table", "Properties": { "GlobalSecondaryIndexes": indexes } });
        Template::parse(&json!({ "Resources": { "RateLimitsTable": table } }).to_string()).unwrap()
    }

    const GSI1: (&str, &str, &str) = ("GSI1", "a", "ALL");
    const GSI2: (&str, &str, &str) = ("GSI2", "b", "KEYS_ONLY");

    fn told(before: &Template, after: &Template) -> Vec<(String, bool)> {
        refusals(before, after)
            .into_iter()
            .map(|refusal| (refusal.what, refusal.can_be_allowed))
            .collect()
    }

    #[test]
    fn h14_one_new_index_is_fine() {
        assert_eq!(told(&table(&[GSI1]), &table(&[GSI1, GSI2])), []);
        assert_eq!(told(&table(&[GSI1, GSI2]), &table(&[GSI2, GSI1])), []);
    }

    #[test]
    fn h14_removing_an_index_needs_its_name() {
        assert_eq!(
            told(&table(&[GSI1, GSI2]), &table(&[GSI1])),
            [("RateLimitsTable/GSI2".to_owned(), true)]
        );
    }

    #[test]
    fn h14_another_projection_or_key_cannot_be_allowed() {
        for changed in [("GSI2", "b", "ALL"), ("GSI2", "c", "KEYS_ONLY")] {
            let told = told(&table(&[GSI1, GSI2]), &table(&[GSI1, changed]));
            assert_eq!(told, [("RateLimitsTable/GSI2".to_owned(), false)]);
        }
    }

    #[test]
    fn h14_two_steps_at_once_cannot_be_allowed() {
        let whole = ("RateLimitsTable".to_owned(), false);
        assert_eq!(
            told(&table(&[]), &table(&[GSI1, GSI2])),
            std::slice::from_ref(&whole)
        );
        let swapped = told(&table(&[GSI1]), &table(&[GSI2]));
        assert_eq!(swapped, [("RateLimitsTable/GSI1".to_owned(), true), whole]);
    }
}

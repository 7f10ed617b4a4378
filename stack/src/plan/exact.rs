//! The changes of a change set, with the values from the templates.

use std::collections::{BTreeMap, BTreeSet};

use aws_sdk_cloudformation::types as aws;
use serde_json::Value;
use zae_limiter_template::Template;
use zae_limiter_template::model::ids;

use super::change::{Kind, PropertyChange, ResourceChange};
use super::compare;

/// The changes of a change set. Properties come from the templates, plus those that only CloudFormation knows.
pub(crate) fn resources(
    changes: &[aws::ResourceChange],
    before: Option<&Template>,
    after: &Template,
) -> Vec<ResourceChange> {
    let resources_of = |template: Option<&'_ Template>| -> BTreeMap<String, Value> {
        let all = template.into_iter().flat_map(Template::resources);
        all.map(|(id, resource)| (id.to_owned(), resource.clone()))
            .collect()
    };
    let (old, new) = (resources_of(before), resources_of(Some(after)));
    let mut found: Vec<_> = changes
        .iter()
        .map(|change| resource(change, &old, &new))
        .collect();
    let in_place: BTreeSet<String> = found
        .iter()
        .filter(|change| change.kind == Kind::Change)
        .map(|change| change.logical_id.clone())
        .collect();
    for (change, described) in found.iter_mut().zip(changes) {
        if change.follows && change.kind == Kind::MayReplace && keeps_its_references(described, &in_place) {
            change.kind = Kind::Change;
        }
    }
    found
}

/// Whether a change is caused only by names and ARNs of resources that change in place, which keep both. CloudFormation does
/// not look that far and reports that such a resource may be replaced.
fn keeps_its_references(change: &aws::ResourceChange, in_place: &BTreeSet<String>) -> bool {
    let holds_data = |id: &str| ids::STATEFUL.iter().any(|stateful| stateful.as_str() == id);
    if change.logical_resource_id().is_none_or(holds_data) {
        return false;
    }
    let keeps = |detail: &aws::ResourceChangeDetail| {
        let cause = detail.causing_entity().unwrap_or_default();
        let (id, attribute) = cause.split_once('.').unwrap_or((cause, "Arn"));
        attribute == "Arn" && in_place.contains(id)
    };
    !change.details().is_empty() && change.details().iter().all(keeps)
}

fn resource(
    change: &aws::ResourceChange,
    old: &BTreeMap<String, Value>,
    new: &BTreeMap<String, Value>,
) -> ResourceChange {
    let id = change.logical_resource_id().unwrap_or_default();
    let mut properties = match (old.get(id), new.get(id)) {
        (Some(old), Some(new)) => compare::properties(old, new),
        (None, Some(new)) => compare::initial(new),
        _ => vec![],
    };
    for detail in change.details() {
        add(&mut properties, detail);
    }
    let resource_type = change.resource_type().unwrap_or_default().to_owned();
    let kind = match kind(change) {
        Kind::MayReplace if compare::in_place(&resource_type, &properties) => Kind::Change,
        kind => kind,
    };
    let scope = change.scope();
    let tags_only = !scope.is_empty() && scope.iter().all(|part| *part == aws::ResourceAttribute::Tags);
    ResourceChange {
        logical_id: id.to_owned(),
        resource_type,
        physical_id: change.physical_resource_id().map(str::to_owned),
        kind,
        kept: keeps(change),
        follows: !tags_only
            && matches!(kind, Kind::Change | Kind::MayReplace)
            && only_references(&properties),
        tags_only,
        properties,
    }
}

/// Whether no property has a new value in the template: each refers to another resource that changes.
fn only_references(properties: &[PropertyChange]) -> bool {
    let reference = |property: &PropertyChange| property.before.is_none() && property.after.is_none();
    !properties.is_empty() && properties.iter().all(reference)
}

fn kind(change: &aws::ResourceChange) -> Kind {
    let replacing = change
        .policy_action()
        .is_some_and(|action| action.as_str().starts_with("ReplaceAnd"));
    match (change.action(), change.replacement()) {
        (Some(aws::ChangeAction::Add), _) => Kind::Add,
        (Some(aws::ChangeAction::Import), _) => Kind::Import,
        (Some(aws::ChangeAction::Remove), _) => Kind::Remove,
        _ if replacing => Kind::Replace,
        (_, Some(aws::Replacement::True)) => Kind::Replace,
        (Some(aws::ChangeAction::Modify), Some(aws::Replacement::False) | None) => Kind::Change,
        // Anything else may be a replacement.
        _ => Kind::MayReplace,
    }
}

/// Whether the old resource stays in the account.
fn keeps(change: &aws::ResourceChange) -> bool {
    change
        .policy_action()
        .is_some_and(|action| matches!(action.as_str(), "Retain" | "ReplaceAndRetain"))
}

fn add(properties: &mut Vec<PropertyChange>, detail: &aws::ResourceChangeDetail) {
    let Some(target) = detail.target() else { return };
    let named = match target.attribute() {
        Some(aws::ResourceAttribute::Properties) => target.name().map(str::to_owned),
        Some(attribute) => Some(attribute.as_str().to_owned()),
        None => None,
    };
    let Some(name) = named else { return };
    let replaces = target.requires_recreation() == Some(&aws::RequiresRecreation::Always);
    let mut known = properties
        .iter_mut()
        .filter(|property| property.path.split('/').next() == Some(&name))
        .peekable();
    if known.peek().is_some() {
        known.for_each(|property| property.replaces |= replaces);
        return;
    }
    let text = |value: Option<&str>| value.map(|value| Value::String(value.to_owned()));
    properties.push(PropertyChange {
        path: name,
        before: text(target.before_value()),
        after: text(target.after_value()),
        replaces,
    });
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    /// A change of the function, and one of a resource that refers to it.
    fn changes(function: aws::Replacement, id: &str, cause: &str) -> Vec<Kind> {
        let body = |memory: u32| {
            let follower = json!({ "Type": "AWS::CloudWatch::Alarm", "Properties": { "AlarmName": "x" } });
            let function = json!({ "Type": "AWS::Lambda::Function", "Properties": { "MemorySize": memory } });
            let body = json!({ "Resources": { "F": function, id: follower } });
            Template::parse(&body.to_string()).unwrap()
        };
        let change = |id: &str, replacement: aws::Replacement| {
            let change = aws::ResourceChange::builder().logical_resource_id(id);
            change.action(aws::ChangeAction::Modify).replacement(replacement)
        };
        let target = aws::ResourceTargetDefinition::builder()
            .attribute(aws::ResourceAttribute::Properties)
            .name("Dimensions");
        let detail = aws::ResourceChangeDetail::builder()
            .target(target.build())
            .causing_entity(cause);
        let follower = change(id, aws::Replacement::Conditional).details(detail.build());
        let all = [change("F", function).build(), follower.build()];
        let found = resources(&all, Some(&body(256)), &body(512));
        assert!(found[1].follows && !found[0].follows);
        found.into_iter().map(|change| change.kind).collect()
    }

    #[test]
    fn a_resource_that_refers_to_one_that_changes_in_place_is_not_replaced() {
        use aws::Replacement::{False, True};
        assert_eq!(changes(False, "A", "F.Arn"), [Kind::Change, Kind::Change]);
        assert_eq!(changes(False, "A", "F"), [Kind::Change, Kind::Change]);
        // Other attributes may change with it, and so does everything that a replacement has.
        assert_eq!(changes(False, "A", "F.Version"), [Kind::Change, Kind::MayReplace]);
        assert_eq!(changes(True, "A", "F.Arn"), [Kind::Replace, Kind::MayReplace]);
        // Nothing is assumed about data.
        assert_eq!(
            changes(False, "RateLimitsTable", "F.Arn"),
            [Kind::Change, Kind::MayReplace]
        );
    }
}

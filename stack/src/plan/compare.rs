//! The difference between two templates.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};
use zae_limiter_template::Template;

use super::change::{Kind, OutputChange, PropertyChange, ResourceChange, TagChange};

/// Properties of our resources that CloudFormation cannot change in place.
const REPLACING: [(&str, &[&str]); 9] = [
    ("AWS::DynamoDB::Table", &["TableName", "KeySchema"]),
    ("AWS::S3::Bucket", &["BucketName"]),
    ("AWS::Lambda::Function", &["FunctionName", "PackageType"]),
    (
        "AWS::Lambda::EventSourceMapping",
        &["EventSourceArn", "StartingPosition"],
    ),
    ("AWS::IAM::Role", &["RoleName", "Path"]),
    (
        "AWS::IAM::ManagedPolicy",
        &["ManagedPolicyName", "Path", "Description"],
    ),
    ("AWS::Logs::LogGroup", &["LogGroupName"]),
    ("AWS::SQS::Queue", &["QueueName", "FifoQueue"]),
    ("AWS::CloudWatch::Alarm", &["AlarmName"]),
];

/// Properties of resources with data that CloudFormation always changes in place.
const IN_PLACE: [(&str, &[&str]); 2] = [
    (
        "AWS::DynamoDB::Table",
        &[
            "BillingMode",
            "ContributorInsightsSpecification",
            "DeletionProtectionEnabled",
            "PointInTimeRecoverySpecification",
            "SSESpecification",
            "Tags",
            "TimeToLiveSpecification",
        ],
    ),
    (
        "AWS::S3::Bucket",
        &[
            "BucketEncryption",
            "LifecycleConfiguration",
            "OwnershipControls",
            "PublicAccessBlockConfiguration",
            "Tags",
            "VersioningConfiguration",
        ],
    ),
];

/// Whether all these properties are known to change in place, even where CloudFormation is not sure.
pub(crate) fn in_place(resource_type: &str, properties: &[PropertyChange]) -> bool {
    let known = IN_PLACE
        .iter()
        .find(|(kind, _)| *kind == resource_type)
        .map_or(&[][..], |(_, names)| names);
    !properties.is_empty()
        && properties
            .iter()
            .all(|property| known.contains(&top(&property.path)))
}

/// The changes between two templates: in the order of the new one, then removals.
pub(crate) fn resources(before: Option<&Template>, after: &Template) -> Vec<ResourceChange> {
    let old: BTreeMap<&str, &Value> = before.into_iter().flat_map(Template::resources).collect();
    let mut changes: Vec<_> = after
        .resources()
        .filter_map(|(id, new)| compared(id, old.get(id).copied(), new))
        .collect();
    let still: BTreeSet<&str> = after.logical_ids().collect();
    let kept: BTreeSet<&str> = before.into_iter().flat_map(Template::retained).collect();
    let gone = before
        .into_iter()
        .flat_map(Template::resources)
        .filter(|(id, _)| !still.contains(id));
    changes.extend(gone.map(|(id, resource)| ResourceChange {
        kept: kept.contains(id),
        ..change(id, resource, Kind::Remove)
    }));
    changes
}

fn change(id: &str, resource: &Value, kind: Kind) -> ResourceChange {
    ResourceChange {
        logical_id: id.to_owned(),
        resource_type: type_of(resource).to_owned(),
        physical_id: None,
        kind,
        kept: false,
        tags_only: false,
        follows: false,
        properties: vec![],
    }
}

fn type_of(resource: &Value) -> &str {
    resource.get("Type").and_then(Value::as_str).unwrap_or_default()
}

fn compared(id: &str, old: Option<&Value>, new: &Value) -> Option<ResourceChange> {
    let Some(old) = old else {
        return Some(ResourceChange {
            properties: initial(new),
            ..change(id, new, Kind::Add)
        });
    };
    let properties = properties(old, new);
    if type_of(old) != type_of(new) {
        return Some(ResourceChange {
            properties,
            ..change(id, new, Kind::Replace)
        });
    }
    if properties.is_empty() {
        return None;
    }
    let kind = if properties.iter().any(|property| property.replaces) {
        Kind::Replace
    } else {
        Kind::Change
    };
    let tags_only = properties.iter().all(|property| top(&property.path) == "Tags");
    Some(ResourceChange {
        tags_only,
        properties,
        ..change(id, new, kind)
    })
}

fn top(path: &str) -> &str {
    path.split('/').next().unwrap_or_default()
}

/// The differences of a resource: its properties, then attributes such as `DeletionPolicy`.
pub(crate) fn properties(old: &Value, new: &Value) -> Vec<PropertyChange> {
    let empty = Value::Object(Map::new());
    let of = |resource: &Value| resource.get("Properties").unwrap_or(&empty).clone();
    let mut found = Vec::new();
    differences("", Some(&of(old)), Some(&of(new)), &mut found);
    let replacing = REPLACING
        .iter()
        .find(|(kind, _)| *kind == type_of(new))
        .map_or(&[][..], |(_, names)| names);
    for property in &mut found {
        property.replaces = replacing.contains(&top(&property.path));
    }
    for attribute in [
        "DeletionPolicy",
        "UpdateReplacePolicy",
        "DependsOn",
        "Condition",
        "UpdatePolicy",
        "CreationPolicy",
    ] {
        differences(attribute, old.get(attribute), new.get(attribute), &mut found);
    }
    found
}

/// The properties of a new resource.
pub(crate) fn initial(new: &Value) -> Vec<PropertyChange> {
    let properties = new.get("Properties").and_then(Value::as_object);
    properties
        .into_iter()
        .flatten()
        .map(|(name, value)| PropertyChange {
            path: name.clone(),
            before: None,
            after: Some(value.clone()),
            replaces: false,
        })
        .collect()
}

fn differences(path: &str, before: Option<&Value>, after: Option<&Value>, found: &mut Vec<PropertyChange>) {
    if before == after {
        return;
    }
    let at = |name: &str| {
        if path.is_empty() {
            name.to_owned()
        } else {
            format!("{path}/{name}")
        }
    };
    match (before, after) {
        // A function such as Fn::Sub reads as one value, not as an object.
        (Some(Value::Object(old)), Some(Value::Object(new))) if !intrinsic(old) && !intrinsic(new) => {
            let names: BTreeSet<_> = old.keys().chain(new.keys()).collect();
            for name in names {
                differences(&at(name), old.get(name), new.get(name), found);
            }
        }
        (Some(Value::Array(old)), Some(Value::Array(new))) if old.len() == new.len() => {
            for (index, (old, new)) in old.iter().zip(new).enumerate() {
                differences(&at(&index.to_string()), Some(old), Some(new), found);
            }
        }
        _ => found.push(PropertyChange {
            path: path.to_owned(),
            before: before.cloned(),
            after: after.cloned(),
            replaces: false,
        }),
    }
}

fn intrinsic(fields: &Map<String, Value>) -> bool {
    fields.len() == 1 && fields.keys().all(|key| key == "Ref" || key.starts_with("Fn::"))
}

/// The changes of a stack's tags.
pub(crate) fn tags(before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) -> Vec<TagChange> {
    let keys: BTreeSet<_> = before.keys().chain(after.keys()).collect();
    let changes = keys.into_iter().map(|key| TagChange {
        key: key.clone(),
        before: before.get(key).cloned(),
        after: after.get(key).cloned(),
    });
    changes.filter(|tag| tag.before != tag.after).collect()
}

/// The changes of outputs.
pub(crate) fn outputs(before: Option<&Template>, after: &Template, stack: &str) -> Vec<OutputChange> {
    let of = |template: &Template| {
        template
            .to_value()
            .get("Outputs")
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default()
    };
    let (old, new) = (before.map(of).unwrap_or_default(), of(after));
    let names: BTreeSet<_> = old.keys().chain(new.keys()).collect();
    let changes = names.into_iter().filter_map(|name| {
        let kind = match (old.get(name), new.get(name)) {
            (None, Some(_)) => Kind::Add,
            (Some(_), None) => Kind::Remove,
            (Some(old), Some(new))
                if old.get("Value") != new.get("Value") || old.get("Export") != new.get("Export") =>
            {
                Kind::Change
            }
            _ => return None,
        };
        let export = old.get(name).and_then(|output| export_name(output, stack));
        Some(OutputChange {
            name: name.clone(),
            kind,
            export,
        })
    });
    changes.collect()
}

fn export_name(output: &Value, stack: &str) -> Option<String> {
    let name = output.get("Export")?.get("Name")?;
    match name {
        Value::String(name) => Some(name.clone()),
        other => Some(
            other
                .get("Fn::Sub")?
                .as_str()?
                .replace("${AWS::StackName}", stack),
        ),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::needless_pass_by_value)]

    use super::*;
    use serde_json::json;

    fn template(resources: Value, outputs: Value) -> Template {
        Template::parse(&json!({ "Resources": resources, "Outputs": outputs }).to_string()).unwrap()
    }

    #[test]
    fn the_same_template_in_another_order_is_no_change() {
        let one = template(
            json!({ "A": { "Type": "T", "Properties": { "x": 1, "y": [1, { "z": 2 }] } } }),
            json!({}),
        );
        let other = template(
            json!({ "A": { "Properties": { "y": [1, { "z": 2 }], "x": 1 }, "Type": "T" } }),
            json!({}),
        );
        assert_eq!(resources(Some(&one), &other), []);
    }

    #[test]
    fn each_change_names_the_property_with_both_values() {
        let before = template(
            json!({ "F": { "Type": "AWS::Lambda::Function",
                "Properties": { "MemorySize": 256, "Role": { "Ref": "A" }, "Architectures": ["x86_64"], "Old": 1 } } }),
            json!({}),
        );
        let after = template(
            json!({ "F": { "Type": "AWS::Lambda::Function",
                "Properties": { "MemorySize": 512, "Role": { "Ref": "B" }, "Architectures": ["arm64"], "New": 2 } } }),
            json!({}),
        );
        let changes = resources(Some(&before), &after);
        assert_eq!(changes.len(), 1);
        assert_eq!(changes[0].kind, Kind::Change);
        let shown: Vec<_> = changes[0]
            .properties
            .iter()
            .map(|p| (p.path.as_str(), p.before.clone(), p.after.clone()))
            .collect();
        assert_eq!(
            shown,
            [
                ("Architectures/0", Some(json!("x86_64")), Some(json!("arm64"))),
                ("MemorySize", Some(json!(256)), Some(json!(512))),
                ("New", None, Some(json!(2))),
                ("Old", Some(json!(1)), None),
                ("Role", Some(json!({ "Ref": "A" })), Some(json!({ "Ref": "B" }))),
            ]
        );
    }

    #[test]
    fn a_new_name_is_a_replacement_and_tags_alone_are_told_apart() {
        let queue = |name: &str, tags: Value| {
            template(
                json!({ "Q": { "Type": "AWS::SQS::Queue", "Properties": { "QueueName": name, "Tags": tags } } }),
                json!({}),
            )
        };
        let before = queue("a", json!([]));
        assert_eq!(
            resources(Some(&before), &queue("b", json!([])))[0].kind,
            Kind::Replace
        );
        let tagged = &resources(Some(&before), &queue("a", json!([1])))[0];
        assert!(tagged.tags_only && tagged.kind == Kind::Change);
    }

    #[test]
    fn what_is_removed_says_whether_it_is_kept() {
        let table = json!({ "Type": "AWS::DynamoDB::Table", "DeletionPolicy": "RetainExceptOnCreate" });
        let before = template(
            json!({ "T": table, "Q": { "Type": "AWS::SQS::Queue" } }),
            json!({}),
        );
        let changes = resources(Some(&before), &template(json!({}), json!({})));
        let told: Vec<_> = changes
            .iter()
            .map(|c| (c.logical_id.as_str(), c.kind, c.kept))
            .collect();
        assert_eq!(told, [("T", Kind::Remove, true), ("Q", Kind::Remove, false)]);
    }

    #[test]
    fn m14_changed_and_removed_exports_are_named() {
        let before = template(
            json!({}),
            json!({ "A": { "Value": 1, "Export": { "Name": "demo-A" } },
                    "B": { "Value": 1, "Export": { "Name": { "Fn::Sub": "${AWS::StackName}-B" } } },
                    "C": { "Value": 1, "Export": { "Name": "demo-C" }, "Description": "old" } }),
        );
        let after = template(
            json!({}),
            json!({ "B": { "Value": 2 }, "C": { "Value": 1, "Export": { "Name": "demo-C" }, "Description": "new" }, "D": { "Value": 3 } }),
        );
        let told: Vec<_> = outputs(Some(&before), &after, "demo")
            .into_iter()
            .map(|o| (o.name, o.kind, o.export))
            .collect();
        assert_eq!(
            told,
            [
                ("A".to_owned(), Kind::Remove, Some("demo-A".to_owned())),
                ("B".to_owned(), Kind::Change, Some("demo-B".to_owned())),
                ("D".to_owned(), Kind::Add, None),
            ]
        );
    }
}

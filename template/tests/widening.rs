//! No printed policy, and no policy of a template, is wider than it must be.
//!
//! The list below has every statement that allows something and the keys of its condition. A statement that loses a condition,
//! or a new one without an entry, fails; so does one that breaks a rule of its kind of action.

#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use zae_limiter_template::deployer::{
    Place, client_policy, deployer_policy, ensure_policy, function_policy, plan_policy, provisioning_policy,
    purge_policy, redrive_policy, terraform_policy,
};
use zae_limiter_template::{LambdaFunction, PolicyKind, StackName, StackOptions, export};

use crate::variants;

const LEADING: &str = "ForAllValues:StringLike dynamodb:LeadingKeys";
const EVENTS: [&str; 2] = [
    "ForAllValues:StringLike events:detail-type",
    "ForAllValues:StringLike events:source",
];
const VIA: &str = "StringEquals kms:ViaService";
const PASSED: &str = "StringEquals iam:PassedToService";
const OWN_ACCOUNT: &str = "StringEqualsIfExists aws:ResourceAccount";

/// Every statement of every policy with a condition, and the values of its keys.
const CONDITIONS: [(&str, &str, &[&str]); 28] = [
    ("acquire", "Read", &[LEADING]),
    (
        "acquire",
        "Consume",
        &["ForAllValues:StringLike dynamodb:Attributes", LEADING],
    ),
    ("acquire", "Key", &[VIA]),
    ("full", "Key", &[VIA]),
    ("read", "Key", &[VIA]),
    ("aggregator", "Usage", &[LEADING]),
    ("aggregator", "Events", &EVENTS),
    ("redrive", "Events", &EVENTS),
    ("limits", "Levels", &[LEADING]),
    (
        "deployer",
        "LeftTableTag",
        &["ForAllValues:StringLike aws:TagKeys"],
    ),
    ("deployer", "Records", &[LEADING]),
    ("deployer", "RecordsKey", &[VIA]),
    ("deployer", "PassServiceRole", &[PASSED]),
    (
        "provisioning",
        "ServiceRole",
        &["StringEquals iam:AWSServiceName"],
    ),
    ("provisioning", "Mappings", &["ArnLike lambda:FunctionArn"]),
    (
        "provisioning",
        "GrantToRoles",
        &["StringEquals iam:PermissionsBoundary"],
    ),
    (
        "provisioning",
        "AttachPolicies",
        &["ArnLike iam:PolicyARN", "StringEquals iam:PermissionsBoundary"],
    ),
    ("provisioning", "PassRoles", &[PASSED]),
    ("provisioning", "PassExternalRoles", &[PASSED]),
    ("provisioning", "Archive", &[OWN_ACCOUNT]),
    ("terraform", "VersionRecord", &[LEADING]),
    ("purge", "Archive", &[OWN_ACCOUNT]),
    ("purge", "Objects", &[OWN_ACCOUNT]),
    ("redrive", "Usage", &[LEADING]),
    ("redrive", "Key", &[]),
    ("aggregator", "Key", &[]),
    ("archiver", "Key", &[]),
    ("limits", "Key", &[]),
];

/// Statements on every resource, since their actions have no resource type or must find what they look for.
const EVERYWHERE: [(&str, &str); 15] = [
    ("aggregator", "ListStreams"),
    ("aggregator", "Network"),
    ("aggregator", "Tracing"),
    ("archiver", "ListStreams"),
    ("archiver", "Network"),
    ("archiver", "Tracing"),
    ("deployer", "Discover"),
    ("limits", "Network"),
    ("limits", "Tracing"),
    ("provisioning", "Mappings"),
    ("provisioning", "Network"),
    ("read", "Functions"),
    ("redrive", "Readers"),
    ("terraform", "Mappings"),
    ("terraform", "Network"),
];

/// Actions that read or write items.
const ITEMS: [&str; 9] = [
    "BatchGetItem",
    "BatchWriteItem",
    "ConditionCheckItem",
    "DeleteItem",
    "GetItem",
    "PutItem",
    "Query",
    "Scan",
    "UpdateItem",
];

/// The key prefixes that a policy reaches.
const KEYS: [(&str, &str, &[&str]); 7] = [
    ("acquire", "Read", &["ENTITY#*", "RESOURCE#*", "SYSTEM#"]),
    ("acquire", "Consume", &["ENTITY#*"]),
    ("aggregator", "Usage", &["ENTITY#*"]),
    (
        "limits",
        "Levels",
        &["AUDIT#*", "ENTITY#*", "RESOURCE#*", "SYSTEM#"],
    ),
    ("deployer", "Records", &["SYSTEM#", "AUDIT#$SYSTEM"]),
    ("terraform", "VersionRecord", &["SYSTEM#"]),
    ("redrive", "Usage", &["ENTITY#*"]),
];

fn options() -> StackOptions {
    variants::everything()
        .permission_boundary("boundary")
        .aggregator_role_arn("arn:aws:iam::123456789012:role/aggregator")
        .lambda_subnet_ids("subnet-0a1b2c3d")
        .lambda_security_group_ids("sg-0a1b2c3d")
        .build()
        .unwrap()
}

/// Every policy with every option that adds a statement.
fn policies() -> BTreeMap<&'static str, Value> {
    let (name, options) = (StackName::parse("limiter").unwrap(), options());
    let place = Place {
        partition: "aws".into(),
        region: "eu-west-1".into(),
        account: "123456789012".into(),
    };
    let client = |kind| client_policy(kind, &name, &place, &options);
    let function = |function| function_policy(function, &name, &place, &options);
    let limits = export::limits_provisioner(&options).unwrap();
    let limits = &limits.to_value()["Resources"]["ProvisionerRole"]["Properties"]["Policies"][0];
    BTreeMap::from([
        ("acquire", client(PolicyKind::Acquire)),
        ("full", client(PolicyKind::Full)),
        ("read", client(PolicyKind::Read)),
        ("aggregator", function(LambdaFunction::Aggregator)),
        ("archiver", function(LambdaFunction::Archiver)),
        ("limits", limits["PolicyDocument"].clone()),
        ("ensure", json!(ensure_policy(&name, &place))),
        ("plan", json!(plan_policy(&name, &place))),
        (
            "deployer",
            json!(deployer_policy(
                &name,
                &place,
                &options,
                Some(&variants::service_role())
            )),
        ),
        (
            "provisioning",
            json!(provisioning_policy(&name, &place, &options)),
        ),
        ("terraform", json!(terraform_policy(&name, &place, &options))),
        ("purge", json!(purge_policy(&name, &place))),
        ("redrive", json!(redrive_policy(&name, &place, &options))),
    ])
}

/// Every statement, by the policy and its id.
fn statements() -> BTreeMap<(&'static str, String), Value> {
    let mut all = BTreeMap::new();
    for (policy, document) in policies() {
        for statement in document["Statement"].as_array().unwrap() {
            let sid = statement["Sid"].as_str().unwrap().to_owned();
            assert_eq!(statement["Effect"], "Allow", "{policy} {sid}");
            let before = all.insert((policy, sid.clone()), statement.clone());
            assert!(before.is_none(), "{policy} has two statements {sid}");
        }
    }
    all
}

fn condition_keys(statement: &Value) -> Vec<String> {
    let operators = statement["Condition"].as_object().into_iter().flatten();
    let keys = operators.flat_map(|(operator, tests)| {
        let tests = tests.as_object().unwrap().keys();
        tests.map(move |key| format!("{operator} {key}"))
    });
    let keys: BTreeSet<_> = keys.collect();
    keys.into_iter().collect()
}

fn list(value: &Value) -> Vec<String> {
    let items = value.as_array().cloned().unwrap_or_else(|| vec![value.clone()]);
    items
        .iter()
        .map(|item| item.as_str().map_or_else(|| item.to_string(), str::to_owned))
        .collect()
}

#[test]
fn every_statement_has_exactly_the_condition_of_the_list() {
    let mut expected: BTreeMap<_, _> = CONDITIONS
        .into_iter()
        .map(|(policy, sid, keys)| {
            (
                (policy, sid.to_owned()),
                keys.iter().map(ToString::to_string).collect(),
            )
        })
        .collect();
    // What CloudFormation may do for the same resources, Terraform may.
    for ((policy, sid), keys) in expected.clone() {
        if policy == "provisioning" {
            expected.insert(("terraform", sid), keys);
        }
    }
    for (key, statement) in statements() {
        let expected: Vec<String> = expected.remove(&key).unwrap_or_default();
        assert_eq!(condition_keys(&statement), expected, "{key:?}");
    }
    assert!(expected.is_empty(), "no policy has {expected:?}");
}

#[test]
fn a_statement_on_items_names_the_keys_that_it_reaches() {
    let mut expected: BTreeMap<_, _> = KEYS
        .into_iter()
        .map(|(policy, sid, keys)| {
            (
                (policy, sid.to_owned()),
                keys.iter().map(ToString::to_string).collect(),
            )
        })
        .collect();
    for (key, statement) in statements() {
        let items = ITEMS.map(|action| format!("dynamodb:{action}"));
        if !list(&statement["Action"])
            .iter()
            .any(|action| items.contains(action))
        {
            continue;
        }
        // Administrators and readers see the whole table.
        if matches!((key.0, key.1.as_str()), ("full" | "read", "Table" | "Index")) {
            continue;
        }
        let keys = &statement["Condition"]["ForAllValues:StringLike"]["dynamodb:LeadingKeys"];
        let expected: Vec<String> = expected.remove(&key).unwrap_or_default();
        assert_eq!(list(keys), expected, "{key:?}");
    }
    assert!(expected.is_empty(), "no policy has {expected:?}");
}

#[test]
fn a_statement_on_everything_is_in_the_list() {
    let everywhere: BTreeSet<_> = statements()
        .into_iter()
        .filter(|(_, statement)| {
            list(&statement["Resource"])
                .iter()
                .any(|resource| resource == "*")
        })
        .map(|(key, _)| key)
        .collect();
    let expected: BTreeSet<_> = EVERYWHERE
        .into_iter()
        .map(|(policy, sid)| (policy, sid.to_owned()))
        .collect();
    assert_eq!(everywhere, expected);
}

/// Reading is all that a wildcard in an action stands for, apart from the two parts of a function's update and of a role's.
#[test]
fn a_wildcard_in_an_action_widens_to_reading_only() {
    for ((policy, sid), statement) in statements() {
        for action in list(&statement["Action"])
            .iter()
            .filter(|action| action.contains('*'))
        {
            let name = action.split_once(':').unwrap().1;
            let reads = name.starts_with("Get") || name.starts_with("Describe") || name.starts_with("List");
            let known = ["lambda:UpdateFunctionCo*", "iam:UpdateRole*"].contains(&action.as_str());
            assert!(reads || known, "{policy} {sid}: {action}");
        }
    }
}

#[test]
fn a_key_is_named_and_roles_are_passed_to_one_service() {
    for ((policy, sid), statement) in statements() {
        let actions = list(&statement["Action"]);
        if actions.iter().any(|action| action.starts_with("kms:")) {
            assert_eq!(statement["Resource"], json!([variants::KEY]), "{policy} {sid}");
        }
        if actions.iter().any(|action| action == "iam:PassRole") {
            let service = &statement["Condition"]["StringEquals"]["iam:PassedToService"];
            let services = ["lambda.amazonaws.com", "cloudformation.amazonaws.com"];
            assert!(services.contains(&service.as_str().unwrap()), "{policy} {sid}");
        }
    }
}

/// The managed policies and roles of a template are those that are printed.
#[test]
fn the_list_covers_every_policy_of_a_template() {
    let template = export::cloudformation(&options()).unwrap();
    let known: BTreeSet<_> = statements().into_keys().map(|(_, sid)| sid).collect();
    for (id, resource) in template.resources() {
        let properties = &resource["Properties"];
        let documents = match resource["Type"].as_str().unwrap() {
            "AWS::IAM::ManagedPolicy" => vec![&properties["PolicyDocument"]],
            "AWS::IAM::Role" => {
                let inline = properties["Policies"].as_array();
                inline
                    .into_iter()
                    .flatten()
                    .map(|policy| &policy["PolicyDocument"])
                    .collect()
            }
            _ => continue,
        };
        for statement in documents
            .iter()
            .flat_map(|document| document["Statement"].as_array().unwrap())
        {
            assert!(
                known.contains(statement["Sid"].as_str().unwrap()),
                "{id}: {statement}"
            );
        }
    }
}

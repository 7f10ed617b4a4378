//! CloudFormation's resource handlers have the permissions that they use, whatever the options are.
//!
//! `handlers.json` has the permissions of each handler from the CloudFormation registry, as cfn-lint carries its schemas; where
//! cfn-lint is installed (`ZAE_TEST_CFN_LINT`), the file is compared with them.

mod permits;
mod requests;

use crate::variants;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::{env, fs};

use serde_json::{Value, json};
use zae_limiter_template::deployer::{Place, deployer_policy, provisioning_policy, purge_policy};
use zae_limiter_template::{RoleArn, StackName, StackOptions, StackOptionsBuilder, Template, render};

use permits::permits;
use requests::{request, uses};

pub(crate) const REGION: &str = "eu-central-1";
pub(crate) const ACCOUNT: &str = "123456789012";

fn place() -> Place {
    Place {
        partition: "aws".to_owned(),
        region: REGION.to_owned(),
        account: ACCOUNT.to_owned(),
    }
}

fn handlers() -> BTreeMap<String, Vec<String>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/handlers.json");
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

fn policies(options: &StackOptions) -> [Value; 2] {
    let name = StackName::parse("limiter").unwrap();
    [
        json!(deployer_policy(&name, &place(), options, None)),
        json!(provisioning_policy(&name, &place(), options)),
    ]
}

/// The template with everything resolved that names are made of.
fn deployed(options: &StackOptions) -> Template {
    let template = render(&StackName::parse("limiter").unwrap(), options, &variants::code()).unwrap();
    let known = [
        ("AWS::Region", REGION),
        ("AWS::AccountId", ACCOUNT),
        ("AWS::Partition", "aws"),
    ];
    let known = known.map(|(name, value)| (name.to_owned(), value.to_owned()));
    template.resolved("limiter", &known.into())
}

fn variants() -> Vec<(&'static str, StackOptionsBuilder)> {
    let default = StackOptions::builder;
    vec![
        ("default", default()),
        ("everything", variants::everything()),
        ("nothing optional", variants::nothing_optional()),
        ("enterprise", variants::enterprise()),
        ("alternatives", variants::alternatives()),
        ("no iam", default().create_iam(false)),
        (
            "boundary and own roles",
            default().permission_boundary("company").create_iam_roles(true),
        ),
    ]
}

/// The permissions that a variant needs and does not have.
fn denied(options: &StackOptions, policies: &[Value]) -> BTreeSet<String> {
    let (template, handlers) = (deployed(options), handlers());
    let mut denied = BTreeSet::new();
    for (id, resource) in template.resources() {
        let kind = resource["Type"].as_str().unwrap();
        let permissions = handlers
            .get(kind)
            .unwrap_or_else(|| panic!("{kind} is not in handlers.json"));
        for permission in permissions
            .iter()
            .filter(|permission| uses(kind, permission, options))
        {
            let (arn, keys) = request(&template, id, permission, options);
            if !arn.is_empty() && !permits(policies, permission, &arn, &keys) {
                denied.insert(format!("{id}: {permission} on {arn} with {keys}"));
            }
        }
    }
    denied
}

#[test]
fn a_deployer_has_every_permission_that_the_handlers_of_its_stack_use() {
    for (name, options) in variants() {
        let options = options.build().unwrap();
        let denied = denied(&options, &policies(&options));
        assert!(denied.is_empty(), "{name}: {denied:#?}");
    }
}

#[test]
fn the_check_sees_every_permission_that_is_missing() {
    let options = variants::everything().build().unwrap();
    let [own, provisioning] = policies(&options);
    let statements = provisioning["Statement"].as_array().unwrap().len();
    for left_out in 0..statements {
        let mut fewer = provisioning.clone();
        let sid = fewer["Statement"][left_out]["Sid"].clone();
        fewer["Statement"].as_array_mut().unwrap().remove(left_out);
        // The deployer's own calls need these two as well.
        if sid == "Code" || sid == "FindLogs" {
            continue;
        }
        assert!(!denied(&options, &[own.clone(), fewer]).is_empty(), "{sid}");
    }
}

#[test]
fn nothing_of_others_is_within_reach() {
    for (name, options) in variants() {
        let options = options.build().unwrap();
        let policies = policies(&options);
        let lambda = json!({ "iam:PassedToService": "lambda.amazonaws.com" });
        for (action, resource, keys) in [
            (
                "dynamodb:DeleteTable",
                "arn:aws:dynamodb:eu-central-1:123456789012:table/limiter2",
                json!({}),
            ),
            ("s3:DeleteBucket", "arn:aws:s3:::limiter-uploads-1a2b", json!({})),
            (
                "s3:GetBucketPolicy",
                "arn:aws:s3:::limiter2-auditarchivebucket-1a2b",
                json!({}),
            ),
            (
                "iam:PutRolePolicy",
                "arn:aws:iam::123456789012:role/admin",
                json!({}),
            ),
            (
                "iam:PassRole",
                "arn:aws:iam::123456789012:role/admin",
                lambda.clone(),
            ),
            (
                "iam:PassRole",
                "arn:aws:iam::123456789012:role/limiter-aggr",
                json!({ "iam:PassedToService": "ec2.amazonaws.com" }),
            ),
            (
                "iam:DeleteRolePermissionsBoundary",
                "arn:aws:iam::123456789012:role/limiter-aggr",
                json!({}),
            ),
            (
                "iam:AttachRolePolicy",
                "arn:aws:iam::123456789012:role/limiter-app",
                json!({ "iam:PolicyARN": "arn:aws:iam::aws:policy/AdministratorAccess" }),
            ),
        ] {
            assert!(
                !permits(&policies, action, resource, &keys),
                "{name}: {action} on {resource}"
            );
        }
    }
}

#[test]
fn a_long_name_reaches_no_archive_of_another_account_and_none_that_begins_differently() {
    let options = StackOptions::default();
    let allows = |name: &str, bucket: &str, account: &str| {
        let name = StackName::parse(name).unwrap();
        let keys = json!({ "aws:ResourceAccount": account });
        let bucket = format!("arn:aws:s3:::{bucket}");
        [
            (
                json!(provisioning_policy(&name, &place(), &options)),
                "s3:DeleteBucket",
                bucket.clone(),
            ),
            (
                json!(purge_policy(&name, &place())),
                "s3:DeleteBucket",
                bucket.clone(),
            ),
            (
                json!(purge_policy(&name, &place())),
                "s3:DeleteObjectVersion",
                format!("{bucket}/audit/1"),
            ),
        ]
        .map(|(policy, action, resource)| permits(&[policy], action, &resource, &keys))
    };
    let long = "Checkout-production-limiter-eu";
    // CloudFormation may keep all of the name, or less.
    for kept in ["checkout-production-limiter-eu", "checkout-production-"] {
        let bucket = format!("{kept}-auditarchivebucket-1a2b3c4d5e6f");
        assert_eq!(allows(long, &bucket, ACCOUNT), [true; 3], "{bucket}");
        assert_eq!(allows(long, &bucket, "999999999999"), [false; 3], "{bucket}");
    }
    for other in [
        "checkout-staging-limit-auditarchivebucket-1a2b",
        "checkout-production-limiter-eu-uploads-1a2b",
    ] {
        assert_eq!(allows(long, other, ACCOUNT), [false; 3], "{other}");
    }
    assert_eq!(
        allows("limiter", "limiter2-auditarchivebucket-1a2b", ACCOUNT),
        [false; 3]
    );
}

#[test]
fn a_deployer_stores_code_in_the_bucket_of_the_options_and_sees_their_archive() {
    let name = StackName::parse("limiter").unwrap();
    let default = StackOptions::default();
    let named = StackOptions::builder()
        .code_bucket("our-archives")
        .archive_bucket("our-events")
        .build()
        .unwrap();
    let policy = |options| [json!(deployer_policy(&name, &place(), options, None))];
    let allowed = |options, action: &str, resource: &str| {
        permits(
            &policy(options),
            action,
            &format!("arn:aws:s3:::{resource}"),
            &json!({}),
        )
    };
    let artifacts = format!("zae-limiter-artifacts-{ACCOUNT}-{REGION}");
    for (options, bucket, other) in [
        (&default, artifacts.as_str(), "our-archives"),
        (&named, "our-archives", artifacts.as_str()),
    ] {
        for (action, key) in [
            ("s3:ListBucket", ""),
            ("s3:GetObject", "/1a2b.zip"),
            ("s3:PutObject", "/1a2b.zip"),
        ] {
            assert!(
                allowed(options, action, &format!("{bucket}{key}")),
                "{action} in {bucket}"
            );
            assert!(
                !allowed(options, action, &format!("{other}{key}")),
                "{action} in {other}"
            );
        }
    }
    assert!(allowed(&default, "s3:CreateBucket", &artifacts));
    assert!(
        !allowed(&named, "s3:PutBucketPolicy", "our-archives"),
        "it is left as it is"
    );
    assert!(allowed(&named, "s3:ListBucket", "our-events"));
    assert!(
        !allowed(&named, "s3:PutObject", "our-events/1"),
        "only the archiver writes"
    );
    assert!(!allowed(&default, "s3:ListBucket", "our-events"));
}

#[test]
fn a_deployer_passes_the_service_role_it_names_to_cloudformation_and_no_other() {
    let name = StackName::parse("limiter").unwrap();
    let role = variants::service_role();
    let passes = |role: Option<&RoleArn>, arn: &str, service: &str| {
        let policy = json!(deployer_policy(&name, &place(), &StackOptions::default(), role));
        let keys = json!({ "iam:PassedToService": format!("{service}.amazonaws.com") });
        permits(&[policy], "iam:PassRole", arn, &keys)
    };
    assert!(passes(Some(&role), role.as_str(), "cloudformation"));
    assert!(!passes(Some(&role), role.as_str(), "lambda"));
    let admin = "arn:aws:iam::123456789012:role/admin";
    assert!(!passes(Some(&role), admin, "cloudformation"));
    assert!(!passes(None, role.as_str(), "cloudformation"));
}

#[test]
fn with_a_boundary_no_role_is_made_or_changed_without_it() {
    let options = StackOptions::builder()
        .permission_boundary("company")
        .build()
        .unwrap();
    let policies = policies(&options);
    let role = "arn:aws:iam::123456789012:role/limiter-aggr";
    let bounded = json!({ "iam:PermissionsBoundary": "arn:aws:iam::123456789012:policy/company" });
    let other = json!({ "iam:PermissionsBoundary": "arn:aws:iam::123456789012:policy/other" });
    for action in [
        "iam:CreateRole",
        "iam:PutRolePolicy",
        "iam:PutRolePermissionsBoundary",
        "iam:DeleteRolePolicy",
    ] {
        assert!(permits(&policies, action, role, &bounded), "{action}");
        assert!(!permits(&policies, action, role, &other), "{action}");
        assert!(!permits(&policies, action, role, &json!({})), "{action}");
    }
}

#[test]
fn the_permissions_of_handlers_are_those_of_the_registry() {
    let ours = handlers();
    assert_eq!(ours.len(), 12);
    let Some(cfn_lint) = env::var_os("ZAE_TEST_CFN_LINT").filter(|path| !path.is_empty()) else {
        return;
    };
    let library = PathBuf::from(cfn_lint)
        .parent()
        .unwrap()
        .parent()
        .unwrap()
        .join("lib");
    let python = fs::read_dir(library).unwrap().next().unwrap().unwrap().path();
    let schemas = python.join("site-packages/cfnlint/data/schemas");
    let read = |path: PathBuf| -> Value { serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap() };
    let index = read(schemas.join("providers/us-east-1.json"));
    for (kind, permissions) in ours {
        let file = format!("resources/{}.json", index[&kind].as_str().unwrap());
        let schema = read(schemas.join(file));
        let handlers = schema["handlers"].as_object().unwrap().iter();
        let listed: BTreeSet<_> = handlers
            .filter(|(name, _)| *name != "list")
            .flat_map(|(_, handler)| handler["permissions"].as_array().cloned().unwrap_or_default())
            .map(|permission| permission.as_str().unwrap().to_owned())
            .collect();
        assert_eq!(permissions.into_iter().collect::<BTreeSet<_>>(), listed, "{kind}");
    }
}

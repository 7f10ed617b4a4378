//! CloudFormation's resource handlers have the permissions that they use, whatever the options are.
//!
//! `handlers.json` has the permissions of each handler from the CloudFormation registry, as cfn-lint carries its schemas; where
//! cfn-lint is installed (`ZAE_TEST_CFN_LINT`), the file is compared with them.

#![allow(clippy::unwrap_used, clippy::panic)]

mod variants;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::{env, fs};

use serde_json::{Value, json};
use zae_limiter_template::deployer::{Place, deployer_policy, provisioning_policy};
use zae_limiter_template::{StackName, StackOptions, StackOptionsBuilder, Template, render};

const REGION: &str = "eu-central-1";
const ACCOUNT: &str = "123456789012";

/// Permissions for features that no stack of ours has. A prefix stands for all that start with it.
const UNUSED: [(&str, &str); 36] = [
    ("kinesis:", "no Kinesis destination"),
    ("dynamodb:EnableKinesis", "no Kinesis destination"),
    ("dynamodb:DisableKinesis", "no Kinesis destination"),
    ("dynamodb:UpdateKinesis", "no Kinesis destination"),
    ("dynamodb:AssociateTableReplica", "no replicas"),
    ("dynamodb:CreateTableReplica", "no replicas"),
    ("dynamodb:ImportTable", "no import from S3"),
    ("dynamodb:DescribeImport", "no import from S3"),
    ("dynamodb:PutResourcePolicy", "no policy on the table"),
    ("dynamodb:DeleteResourcePolicy", "no policy on the table"),
    ("dynamodb:BatchWriteItem", "items are not the stack's"),
    ("dynamodb:DeleteItem", "items are not the stack's"),
    ("dynamodb:GetItem", "items are not the stack's"),
    ("dynamodb:PutItem", "items are not the stack's"),
    ("dynamodb:Query", "items are not the stack's"),
    ("dynamodb:Scan", "items are not the stack's"),
    ("dynamodb:UpdateItem", "items are not the stack's"),
    ("kms:ListAliases", "the key is given by its ARN"),
    ("ec2:", "no VPC"),
    ("elasticfilesystem:", "no file system"),
    ("s3files:", "no file system"),
    ("lambda:AssociateRuntimeAlias", "no runtime alias"),
    ("lambda:GetCodeSigningConfig", "no code signing"),
    ("lambda:DeleteFunctionCodeSigningConfig", "no code signing"),
    ("lambda:PutFunctionCodeSigningConfig", "no code signing"),
    ("lambda:GetLayerVersion", "no layers"),
    ("lambda:PassCapacityProvider", "no capacity provider"),
    ("lambda:PublishVersion", "no published versions"),
    (
        "lambda:PutFunctionRecursionConfig",
        "recursion is left at its default",
    ),
    ("lambda:PutFunctionScalingConfig", "no capacity provider"),
    (
        "lambda:PutRuntimeManagementConfig",
        "runtime updates are left at their default",
    ),
    (
        "iam:DeleteRolePermissionsBoundary",
        "nobody may remove a boundary",
    ),
    ("iam:AttachGroup", "policies are attached to roles only"),
    ("iam:AttachUser", "policies are attached to roles only"),
    ("iam:DetachGroup", "policies are attached to roles only"),
    ("iam:DetachUser", "policies are attached to roles only"),
];

/// The same for log groups, whose handler knows many features.
const UNUSED_LOGS: [&str; 14] = [
    "firehose:",
    "s3:REST",
    "logs:CreateLogDelivery",
    "logs:CreateLogStream",
    "logs:DescribeLogStreams",
    "logs:PutLogEvents",
    "logs:PutBearerToken",
    "logs:PutDataProtectionPolicy",
    "logs:DeleteDataProtectionPolicy",
    "logs:PutIndexPolicy",
    "logs:DeleteIndexPolicy",
    "logs:PutResourcePolicy",
    "logs:DeleteResourcePolicy",
    "logs:PutLogGroupDeletionProtection",
];

/// Configurations of a bucket that ours has. Of the others a handler reads, and never writes.
const WRITTEN_TO_BUCKETS: [&str; 13] = [
    "s3:CreateBucket",
    "s3:DeleteBucket",
    "s3:ListBucket",
    "s3:PutBucketObjectLockConfiguration",
    "s3:PutBucketOwnershipControls",
    "s3:PutBucketPublicAccessBlock",
    "s3:PutBucketTagging",
    "s3:PutBucketVersioning",
    "s3:PutEncryptionConfiguration",
    "s3:PutLifecycleConfiguration",
    "s3:TagResource",
    "s3:UntagResource",
    "s3:ListTagsForResource",
];

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

/// Whether a handler uses a permission for a resource of ours.
fn uses(kind: &str, permission: &str, options: &StackOptions) -> bool {
    if UNUSED.iter().any(|(start, _)| permission.starts_with(start))
        || UNUSED_LOGS.iter().any(|start| permission.starts_with(start))
    {
        return false;
    }
    match (kind, permission) {
        (_, permission) if permission.starts_with("kms:") => options.kms_key_arn().is_some(),
        (_, "iam:CreateServiceLinkedRole") => options.enable_contributor_insights(),
        // Items of the table's import, and the archives of functions.
        ("AWS::DynamoDB::Table", permission) => {
            !permission.starts_with("s3:") && !permission.starts_with("logs:")
        }
        ("AWS::S3::Bucket", permission) if permission.starts_with("s3:Get") => {
            permission != "s3:GetBucketAcl"
        }
        ("AWS::S3::Bucket", permission) => WRITTEN_TO_BUCKETS.contains(&permission),
        _ => true,
    }
}

/// The ARN that a handler's request is about, and the condition keys of the request.
fn request(template: &Template, id: &str, permission: &str, options: &StackOptions) -> (String, Value) {
    let resource = &template.to_value()["Resources"][id];
    let (kind, properties) = (resource["Type"].as_str().unwrap(), &resource["Properties"]);
    let name = |property: &str| {
        properties[property]
            .as_str()
            .unwrap_or_else(|| panic!("{id} {property}"))
    };
    let regional = |service: &str, rest: &str| format!("arn:aws:{service}:{REGION}:{ACCOUNT}:{rest}");
    let target = |property: &Value| property["Ref"].as_str().unwrap().to_owned();
    let bucket = || "arn:aws:s3:::limiter-auditarchivebucket-1a2b3c4d5e6f".to_owned();
    let function_arn = |id: &str| {
        let function = &template.to_value()["Resources"][id]["Properties"]["FunctionName"];
        regional("lambda", &format!("function:{}", function.as_str().unwrap()))
    };
    match (kind, permission) {
        (_, permission) if permission.starts_with("kms:") => {
            (options.kms_key_arn().unwrap().to_string(), json!({}))
        }
        (_, "iam:CreateServiceLinkedRole") => {
            let service = "contributorinsights.dynamodb.amazonaws.com";
            let role = "AWSServiceRoleForDynamoDBCloudWatchContributorInsights";
            (
                format!("arn:aws:iam::{ACCOUNT}:role/aws-service-role/{service}/{role}"),
                json!({ "iam:AWSServiceName": service }),
            )
        }
        ("AWS::DynamoDB::Table", _) => (
            regional("dynamodb", &format!("table/{}", name("TableName"))),
            json!({}),
        ),
        ("AWS::Lambda::Function", "iam:PassRole") => {
            let role = &properties["Role"];
            let own = || {
                let id = role["Fn::GetAtt"][0].as_str().unwrap();
                let role = &template.to_value()["Resources"][id]["Properties"]["RoleName"];
                format!("arn:aws:iam::{ACCOUNT}:role/{}", role.as_str().unwrap())
            };
            let arn = role.as_str().map_or_else(own, str::to_owned);
            (arn, json!({ "iam:PassedToService": "lambda.amazonaws.com" }))
        }
        ("AWS::Lambda::Function", permission) if permission.starts_with("s3:") => {
            let bucket = properties["Code"]["S3Bucket"].as_str().unwrap();
            let key = properties["Code"]["S3Key"].as_str().unwrap();
            (format!("arn:aws:s3:::{bucket}/{key}"), json!({}))
        }
        ("AWS::Lambda::Function", _) => (function_arn(id), json!({})),
        ("AWS::Lambda::EventSourceMapping", permission) => {
            let arn = regional(
                "lambda",
                "event-source-mapping:11111111-2222-3333-4444-555555555555",
            );
            let function = properties["FunctionName"]["Fn::GetAtt"][0].as_str().unwrap();
            let tagging = permission.contains("Tag");
            let keys = json!({ "lambda:FunctionArn": function_arn(function) });
            (arn, if tagging { json!({}) } else { keys })
        }
        ("AWS::IAM::Role", permission) => {
            let mut keys = json!({});
            if let Some(boundary) = properties.get("PermissionsBoundary") {
                keys["iam:PermissionsBoundary"] = boundary.clone();
            }
            if permission.contains("tachRolePolicy") {
                keys["iam:PolicyARN"] = properties["ManagedPolicyArns"]
                    .get(0)
                    .map_or(json!(own_policy(template)), |arn| {
                        json!(policy_arn(template, &target(arn)))
                    });
            }
            (format!("arn:aws:iam::{ACCOUNT}:role/{}", name("RoleName")), keys)
        }
        // Attached by the roles, with the roles' permissions.
        ("AWS::IAM::ManagedPolicy", "iam:AttachRolePolicy" | "iam:DetachRolePolicy") => {
            (String::new(), json!({}))
        }
        ("AWS::IAM::ManagedPolicy", _) => (policy_arn(template, id), json!({})),
        ("AWS::SQS::Queue", _) => (regional("sqs", name("QueueName")), json!({})),
        ("AWS::SQS::QueuePolicy", _) => {
            let queue = target(&properties["Queues"][0]);
            let queue = &template.to_value()["Resources"][&queue]["Properties"]["QueueName"];
            (regional("sqs", queue.as_str().unwrap()), json!({}))
        }
        ("AWS::Logs::LogGroup", _) => (
            regional("logs", &format!("log-group:{}:*", name("LogGroupName"))),
            json!({}),
        ),
        ("AWS::CloudWatch::Alarm", _) => (
            regional("cloudwatch", &format!("alarm:{}", name("AlarmName"))),
            json!({}),
        ),
        ("AWS::CloudWatch::Dashboard", _) => (
            format!(
                "arn:aws:cloudwatch::{ACCOUNT}:dashboard/{}",
                name("DashboardName")
            ),
            json!({}),
        ),
        ("AWS::S3::Bucket" | "AWS::S3::BucketPolicy", _) => (bucket(), json!({})),
        other => panic!("{other:?} has no ARN here"),
    }
}

fn policy_arn(template: &Template, id: &str) -> String {
    let name = &template.to_value()["Resources"][id]["Properties"]["ManagedPolicyName"];
    format!("arn:aws:iam::{ACCOUNT}:policy/{}", name.as_str().unwrap())
}

fn own_policy(template: &Template) -> String {
    policy_arn(template, "AcquireOnlyPolicy")
}

/// IAM's rules, as far as these policies use them: a statement counts if action, resource and all conditions match.
fn permits(policies: &[Value], action: &str, resource: &str, keys: &Value) -> bool {
    let statements = policies
        .iter()
        .flat_map(|policy| policy["Statement"].as_array().unwrap());
    statements.into_iter().any(|statement| {
        let any = |field: &str, text: &str| {
            let patterns = statement[field].as_array().unwrap().iter();
            patterns
                .into_iter()
                .any(|pattern| like(pattern.as_str().unwrap(), text))
        };
        let conditions = statement.get("Condition").and_then(Value::as_object);
        let holds = conditions.into_iter().flatten().all(|(operator, tests)| {
            tests.as_object().unwrap().iter().all(|(key, expected)| {
                let given = keys.get(key).and_then(Value::as_str);
                match (operator.as_str(), expected.as_str()) {
                    ("StringEquals", Some(expected)) => given == Some(expected),
                    ("ArnLike", Some(expected)) => given.is_some_and(|given| like(expected, given)),
                    ("ForAllValues:StringLike", _) => given.is_none(),
                    other => panic!("{other:?} is not known here"),
                }
            })
        });
        statement["Effect"] == "Allow" && any("Action", action) && any("Resource", resource) && holds
    })
}

/// Whether text matches a pattern in which `*` stands for anything.
fn like(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(text) = text.strip_prefix(start) else {
        return false;
    };
    (0..=text.len()).any(|at| text.is_char_boundary(at) && like(rest, &text[at..]))
}

fn policies(options: &StackOptions) -> [Value; 2] {
    let name = StackName::parse("limiter").unwrap();
    [
        json!(deployer_policy(&name, &place())),
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

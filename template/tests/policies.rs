//! Who may do what.

#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};
use zae_limiter_template::deployer::{
    Place, client_policy, deployer_policy, ensure_policy, function_policy, managed_policies,
    provisioning_policy, purge_policy, redrive_policy, terraform_policy,
};
use zae_limiter_template::model::iam::{PolicyDocument, Statement};
use zae_limiter_template::{
    LambdaFunction, PolicyKind, StackName, StackOptions, function_policy_document, policy_document, render,
};

use crate::variants;

fn actions(document: &PolicyDocument) -> Vec<String> {
    document
        .allowed_actions()
        .iter()
        .map(|action| action.as_str().to_owned())
        .collect()
}

fn dynamodb(operations: &[&str]) -> Vec<String> {
    operations
        .iter()
        .map(|operation| format!("dynamodb:{operation}"))
        .collect()
}

#[test]
fn acquiring_needs_three_actions_and_no_index() {
    let document = policy_document(PolicyKind::Acquire, &StackOptions::default());
    assert_eq!(
        actions(&document),
        dynamodb(&["BatchGetItem", "GetItem", "UpdateItem"])
    );
    assert!(!json!(document).to_string().contains("/index/"));
}

#[test]
fn acquiring_reads_configuration_and_writes_entities_only() {
    let document = json!(policy_document(PolicyKind::Acquire, &StackOptions::default()));
    let keys = |statement: usize| &document["Statement"][statement]["Condition"]["ForAllValues:StringLike"];
    assert_eq!(
        *keys(0),
        json!({ "dynamodb:LeadingKeys": ["ENTITY#*", "RESOURCE#*", "SYSTEM#"] })
    );
    assert_eq!(*keys(1), json!({ "dynamodb:LeadingKeys": "ENTITY#*" }));
    assert!(document["Statement"][0]["Condition"].get("Null").is_none());
}

#[test]
fn acquiring_can_be_narrowed_to_the_attributes_of_buckets() {
    let options = StackOptions::builder()
        .acquire_policy("attributes")
        .build()
        .unwrap();
    let document = json!(policy_document(PolicyKind::Acquire, &options));
    let condition = &document["Statement"][1]["Condition"]["ForAllValues:StringLike"];
    let attributes = json!([
        "PK",
        "SK",
        "entity_id",
        "resource",
        "rf",
        "cascade",
        "parent_id",
        "ttl",
        "GSI2PK",
        "GSI2SK",
        "cf",
        "ev",
        "rj",
        "ro",
        "o_*",
        "b_*",
        "q_*",
        "c_*"
    ]);
    assert_eq!(condition["dynamodb:Attributes"], attributes);
    assert!(
        document["Statement"][0]["Condition"]["ForAllValues:StringLike"]
            .get("dynamodb:Attributes")
            .is_none()
    );
}

#[test]
fn administrators_and_readers_have_the_actions_of_their_work() {
    let full = policy_document(PolicyKind::Full, &StackOptions::default());
    let everything = [
        "BatchGetItem",
        "BatchWriteItem",
        "ConditionCheckItem",
        "DeleteItem",
        "DescribeTable",
        "GetItem",
        "PutItem",
        "Query",
        "Scan",
        "UpdateItem",
    ];
    assert_eq!(actions(&full), dynamodb(&everything));
    let read = policy_document(PolicyKind::Read, &StackOptions::default());
    let mut reading = vec![
        "cloudformation:DescribeStacks".to_owned(),
        "cloudformation:GetTemplate".to_owned(),
        "cloudwatch:GetMetricStatistics".to_owned(),
    ];
    reading.extend(dynamodb(&[
        "BatchGetItem",
        "DescribeTable",
        "GetItem",
        "Query",
        "Scan",
    ]));
    let status = [
        "lambda:ListEventSourceMappings",
        "sqs:GetQueueAttributes",
        "sqs:GetQueueUrl",
    ];
    reading.extend(status.map(str::to_owned));
    assert_eq!(actions(&read), reading);
    for document in [full, read] {
        let index = &json!(document)["Statement"][1];
        assert_eq!(index["Action"], json!(["dynamodb:Query"]));
        assert_eq!(
            index["Resource"],
            json!([{ "Fn::Sub": "${RateLimitsTable.Arn}/index/*" }])
        );
    }
}

#[test]
fn readers_see_the_status_of_their_own_stack_and_its_dead_letter_queues() {
    let place = Place {
        partition: "aws".into(),
        region: "eu-west-1".into(),
        account: "123456789012".into(),
    };
    let name = StackName::parse("limiter").unwrap();
    let read = client_policy(PolicyKind::Read, &name, &place, &StackOptions::default());
    let resource = |sid: &str| {
        let statements = read["Statement"].as_array().unwrap();
        let statement = statements.iter().find(|statement| statement["Sid"] == sid);
        statement.unwrap()["Resource"].clone()
    };
    assert_eq!(
        resource("Stack"),
        json!(["arn:aws:cloudformation:eu-west-1:123456789012:stack/limiter/*"])
    );
    assert_eq!(
        resource("DeadLetters"),
        json!(["arn:aws:sqs:eu-west-1:123456789012:limiter-*-dlq"])
    );
    assert_eq!(resource("Functions"), json!(["*"]));
}

#[test]
fn a_key_may_be_used_through_dynamodb() {
    let options = variants::everything().build().unwrap();
    for policy in PolicyKind::ALL {
        let document = json!(policy_document(policy, &options));
        let statement = document["Statement"].as_array().unwrap().last().unwrap().clone();
        assert_eq!(statement["Action"], json!(["kms:Decrypt", "kms:GenerateDataKey"]));
        assert_eq!(statement["Resource"], json!([variants::KEY]));
        let service = json!({ "Fn::Sub": "dynamodb.${AWS::Region}.${AWS::URLSuffix}" });
        assert_eq!(statement["Condition"]["StringEquals"]["kms:ViaService"], service);
    }
}

#[test]
fn functions_have_the_actions_of_their_work() {
    let default = StackOptions::default();
    let common = [
        "dynamodb:DescribeStream",
        "dynamodb:GetRecords",
        "dynamodb:GetShardIterator",
        "dynamodb:ListStreams",
        "logs:CreateLogStream",
        "logs:PutLogEvents",
        "sqs:SendMessage",
    ];
    let with = |own: &str, more: &[&str]| {
        let mut all: Vec<_> = common.iter().chain(more).map(ToString::to_string).collect();
        all.push(own.to_owned());
        all.sort();
        all
    };
    let aggregator = function_policy_document(LambdaFunction::Aggregator, &default);
    assert_eq!(actions(&aggregator), with("dynamodb:UpdateItem", &[]));
    let archiver = function_policy_document(LambdaFunction::Archiver, &default);
    assert_eq!(actions(&archiver), with("s3:PutObject", &[]));
    let everything = variants::everything().build().unwrap();
    let more = [
        "events:PutEvents",
        "kms:Decrypt",
        "kms:GenerateDataKey",
        "xray:PutTelemetryRecords",
        "xray:PutTraceSegments",
    ];
    let aggregator = function_policy_document(LambdaFunction::Aggregator, &everything);
    assert_eq!(actions(&aggregator), with("dynamodb:UpdateItem", &more));
}

#[test]
fn what_is_told_of_a_policy_is_what_is_in_the_template() {
    for options in [StackOptions::default(), variants::everything().build().unwrap()] {
        let template = render(&StackName::parse("limiter").unwrap(), &options, &variants::code()).unwrap();
        let resource = |id: &str| template.to_value()["Resources"][id]["Properties"].clone();
        for policy in PolicyKind::ALL {
            let document = resource(policy.id().as_str())["PolicyDocument"].clone();
            assert_eq!(document, json!(policy_document(policy, &options)), "{policy:?}");
        }
        for function in LambdaFunction::ALL {
            let document = resource(function.role().id().as_str())["Policies"][0]["PolicyDocument"].clone();
            assert_eq!(
                document,
                json!(function_policy_document(function, &options)),
                "{function}"
            );
        }
    }
}

#[test]
fn a_function_sends_to_its_own_queue_and_logs_to_its_own_group() {
    for (function, prefix) in [
        (LambdaFunction::Aggregator, "Aggregator"),
        (LambdaFunction::Archiver, "Archiver"),
    ] {
        let document = json!(function_policy_document(function, &StackOptions::default()));
        let resource = |action: &str| -> Value {
            let statements = document["Statement"].as_array().unwrap();
            let found = statements
                .iter()
                .find(|statement| statement["Action"].to_string().contains(action));
            found.unwrap()["Resource"].clone()
        };
        assert_eq!(
            resource("sqs:SendMessage"),
            json!([{ "Fn::GetAtt": [format!("{prefix}DLQ"), "Arn"] }])
        );
        assert_eq!(
            resource("logs:PutLogEvents"),
            json!([{ "Fn::GetAtt": [format!("{prefix}LogGroup"), "Arn"] }])
        );
        assert_eq!(
            resource("GetRecords"),
            json!([{ "Fn::GetAtt": ["RateLimitsTable", "StreamArn"] }])
        );
    }
}

fn place() -> Place {
    Place {
        partition: "aws-cn".to_owned(),
        region: "cn-north-1".to_owned(),
        account: "123456789012".to_owned(),
    }
}

#[test]
fn an_unchanged_stack_is_looked_at_with_two_actions() {
    let document = ensure_policy(&StackName::parse("limiter").unwrap(), &place());
    assert_eq!(
        actions(&document),
        ["cloudformation:DescribeStacks", "cloudformation:GetTemplate"]
    );
    let stack = "arn:aws-cn:cloudformation:cn-north-1:123456789012:stack/limiter/*";
    assert_eq!(json!(document)["Statement"][0]["Resource"], json!([stack]));
}

#[test]
fn a_deployer_passes_roles_to_lambda_only_and_touches_nothing_of_others() {
    let name = StackName::parse("limiter").unwrap();
    let everywhere = |document: &Value| -> Vec<String> {
        let statements = document["Statement"].as_array().unwrap().iter();
        let everywhere = statements.filter(|statement| statement["Resource"] == json!(["*"]));
        everywhere
            .map(|statement| statement["Sid"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(
        everywhere(&json!(deployer_policy(
            &name,
            &place(),
            &StackOptions::default(),
            None
        ))),
        ["Discover"]
    );
    let provisioning = json!(provisioning_policy(&name, &place(), &StackOptions::default()));
    assert_eq!(everywhere(&provisioning), ["Mappings"]);
    let statement = |sid: &str| -> Value {
        let statements = provisioning["Statement"].as_array().unwrap();
        statements
            .iter()
            .find(|statement| statement["Sid"] == sid)
            .unwrap()
            .clone()
    };
    let functions = "arn:aws-cn:lambda:cn-north-1:123456789012:function:limiter-*";
    assert_eq!(
        statement("Mappings")["Condition"]["ArnLike"]["lambda:FunctionArn"],
        functions
    );
    let pass = statement("PassRoles");
    assert_eq!(pass["Action"], json!(["iam:PassRole"]));
    assert_eq!(
        pass["Condition"]["StringEquals"]["iam:PassedToService"],
        "lambda.amazonaws.com"
    );
}

#[test]
fn a_deployer_sets_no_tag_of_the_table_but_its_own() {
    let name = StackName::parse("limiter").unwrap();
    let deployer = json!(deployer_policy(&name, &place(), &StackOptions::default(), None));
    let statements = deployer["Statement"].as_array().unwrap();
    let tagging: Vec<_> = statements
        .iter()
        .filter(|statement| {
            statement["Action"]
                .to_string()
                .contains("\"dynamodb:TagResource\"")
        })
        .collect();
    assert_eq!(tagging.len(), 1);
    assert_eq!(
        tagging[0]["Condition"]["ForAllValues:StringLike"]["aws:TagKeys"],
        "zae-limiter:import-protection"
    );
}

/// With the longest name, the longest formats and ARNs, a policy is split, and each part fits.
#[test]
fn policies_are_split_to_fit_managed_policies() {
    let name = StackName::parse(variants::LONGEST_NAME).unwrap();
    let role = format!("arn:aws-cn:iam::123456789012:role/{}", "r".repeat(512));
    let options = variants::everything()
        .policy_name_format(format!("{}{{}}", "p".repeat(68)))
        .permission_boundary(format!("{}/{}", "b".repeat(400), "b".repeat(100)))
        .aggregator_role_arn(role.clone())
        .archiver_role_arn(role)
        .kms_key_arn(format!(
            "arn:aws-cn:kms:cn-north-1:123456789012:key/{}",
            "k".repeat(200)
        ))
        .build()
        .unwrap();
    let mut split = 0;
    for document in [
        deployer_policy(&name, &place(), &options, Some(&variants::service_role())),
        provisioning_policy(&name, &place(), &options),
        terraform_policy(&name, &place(), &options),
        redrive_policy(&name, &place(), &options),
        purge_policy(&name, &place()),
    ] {
        let parts = managed_policies(&document).unwrap();
        split += usize::from(parts.len() > 1);
        for part in &parts {
            assert!(json!(part).to_string().len() <= 6_144 && !part.statements.is_empty());
        }
        let statements: Vec<_> = parts.into_iter().flat_map(|part| part.statements).collect();
        assert_eq!(statements, document.statements, "every statement once, in order");
    }
    assert!(split > 0, "the test must need a split");
    let everything = variants::everything().build().unwrap();
    for document in [
        provisioning_policy(&StackName::parse("limiter").unwrap(), &place(), &everything),
        deployer_policy(&StackName::parse("limiter").unwrap(), &place(), &everything, None),
    ] {
        assert_eq!(
            managed_policies(&document).unwrap().len(),
            1,
            "an ordinary name needs no split"
        );
    }
}

#[test]
fn a_statement_that_no_managed_policy_holds_is_refused_with_advice() {
    let resources = vec!["r".repeat(6_144).into()];
    let document = PolicyDocument::new(vec![Statement::allow("Long", vec![], resources)]);
    let error = managed_policies(&document).unwrap_err().to_string();
    assert!(
        error.contains("Long") && error.contains("shorten the stack's name"),
        "{error}"
    );
}

/// A name of 54 or 55 characters leaves no room for `-aggregator`.
#[test]
fn the_policies_of_a_long_name_name_the_function_that_exists() {
    for length in [53, 54, 55] {
        let name = StackName::parse("a".repeat(length)).unwrap();
        let options = StackOptions::default();
        let template = render(&name, &options, &variants::code()).unwrap();
        let function =
            template.to_value()["Resources"]["AggregatorFunction"]["Properties"]["FunctionName"].clone();
        let function = function.as_str().unwrap();
        assert!(function.len() <= 64);
        let redrive = json!(redrive_policy(&name, &place(), &options)).to_string();
        assert!(redrive.contains(&format!("function:{function}\"")), "{redrive}");
        let role = function_policy(LambdaFunction::Aggregator, &name, &place(), &options).to_string();
        assert!(
            role.contains(&format!("log-group:/aws/lambda/{function}:*")),
            "{role}"
        );
    }
}

/// A deployer writes the table's records after a deployment with a service role, and the table is encrypted.
#[test]
fn a_deployer_uses_the_key_for_the_tables_records() {
    let name = StackName::parse("limiter").unwrap();
    let deployer = |options: StackOptions| {
        let document = json!(deployer_policy(
            &name,
            &place(),
            &options,
            Some(&variants::service_role())
        ));
        let statements = document["Statement"].as_array().unwrap().clone();
        statements
            .into_iter()
            .find(|statement| statement["Sid"] == "RecordsKey")
    };
    assert_eq!(deployer(StackOptions::default()), None);
    let key = deployer(variants::everything().build().unwrap()).unwrap();
    assert_eq!(key["Action"], json!(["kms:Decrypt", "kms:GenerateDataKey"]));
    assert_eq!(
        key["Condition"]["StringEquals"]["kms:ViaService"],
        "dynamodb.cn-north-1.amazonaws.com.cn"
    );
}

#[test]
fn the_printed_policy_of_a_role_has_no_references_and_the_statements_of_the_template() {
    let name = StackName::parse("limiter").unwrap();
    for options in [StackOptions::default(), variants::everything().build().unwrap()] {
        for function in LambdaFunction::ALL {
            let printed = function_policy(function, &name, &place(), &options);
            let text = printed.to_string();
            assert!(
                !text.contains("Fn::") && !text.contains("Ref") && !text.contains("${"),
                "{text}"
            );
            let template = json!(function_policy_document(function, &options));
            let statements = |document: &Value| -> Vec<(Value, Value)> {
                let all = document["Statement"].as_array().unwrap().iter();
                all.map(|statement| (statement["Sid"].clone(), statement["Action"].clone()))
                    .collect()
            };
            assert_eq!(statements(&printed), statements(&template));
        }
    }
}

/// What Terraform does with the module, by its provider's documentation, and nothing of other tables.
#[test]
fn a_terraform_deployer_reaches_the_resources_of_the_module() {
    let name = StackName::parse("limiter").unwrap();
    let document = json!(terraform_policy(&name, &place(), &StackOptions::default()));
    let text = document.to_string();
    for part in [
        "lambda:ListVersionsByFunction",
        "iam:ListInstanceProfilesForRole",
        "dynamodb:PutItem",
        "arn:aws-cn:s3:::limiter-audit-*",
        // The archive that a deleted stack has left, imported with `archive_bucket_name`.
        "arn:aws-cn:s3:::limiter-auditarchivebucket-*",
    ] {
        assert!(text.contains(part), "{part}");
    }
    assert!(!text.contains("cloudformation:"), "{text}");
}

#[test]
fn provisioning_follows_the_formats_of_names_and_the_key() {
    let name = StackName::parse("limiter").unwrap();
    let text = |options: StackOptions| json!(provisioning_policy(&name, &place(), &options)).to_string();
    let default = text(StackOptions::default());
    assert!(default.contains("role/limiter-*") && default.contains("policy/limiter-*"));
    assert!(!default.contains("kms:"), "{default}");
    let enterprise = text(variants::enterprise().build().unwrap());
    assert!(enterprise.contains("role/pb-limiter-*-PowerUser") && enterprise.contains("policy/pb-limiter-*"));
    let everything = text(variants::everything().build().unwrap());
    assert!(everything.contains("kms:CreateGrant") && everything.contains(variants::KEY));
}

#[test]
fn tags_of_event_source_mappings_may_be_set() {
    let name = StackName::parse("limiter").unwrap();
    let document = json!(provisioning_policy(&name, &place(), &StackOptions::default()));
    let mappings = "arn:aws-cn:lambda:cn-north-1:123456789012:event-source-mapping:*";
    let statements = document["Statement"].as_array().unwrap();
    let on_mappings = statements
        .iter()
        .find(|statement| statement["Resource"] == json!([mappings]))
        .unwrap();
    assert_eq!(
        on_mappings["Action"],
        json!(["lambda:ListTags", "lambda:TagResource", "lambda:UntagResource"])
    );
}

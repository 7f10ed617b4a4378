//! The provisioner's template and its Terraform module.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use hcl::{Block, Body, Expression};
use serde_json::{Value, json};
use zae_limiter_template::export;

fn template() -> Value {
    export::limits_provisioner().unwrap().to_value().clone()
}

fn module() -> Body {
    let files = export::terraform_limits().unwrap();
    let main = files.iter().find(|file| file.path == "main.tf").unwrap();
    hcl::parse(&main.contents).unwrap()
}

fn block_of(body: &Body, kind: &str) -> Block {
    let mut blocks = body
        .blocks()
        .filter(|block| block.identifier() == "resource" && block.labels().first().unwrap().as_str() == kind);
    let found = blocks.next().unwrap().clone();
    assert!(blocks.next().is_none(), "{kind}");
    found
}

/// An attribute of a resource as text.
fn attribute(block: &Block, name: &str) -> String {
    let attribute = block
        .body()
        .attributes()
        .find(|attribute| attribute.key() == name);
    hcl::format::to_string(attribute.unwrap().expr()).unwrap()
}

/// The actions in a document, by effect.
fn actions(document: &Value) -> BTreeSet<String> {
    let statements = document["Statement"].as_array().unwrap().iter();
    let actions = statements.flat_map(|statement| match &statement["Action"] {
        Value::Array(many) => many.clone(),
        one => vec![one.clone()],
    });
    actions
        .map(|action| action.as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn the_role_reaches_the_levels_of_its_table_and_nothing_else() {
    let template = template();
    let document = &template["Resources"]["ProvisionerRole"]["Properties"]["Policies"][0]["PolicyDocument"];
    let levels = &document["Statement"][0];
    let table = json!({ "Fn::Sub": "arn:${AWS::Partition}:dynamodb:${AWS::Region}:${AWS::AccountId}:table/${TableName}" });
    assert_eq!(levels["Resource"], json!([table]));
    assert_eq!(
        levels["Condition"]["ForAllValues:StringLike"]["dynamodb:LeadingKeys"],
        json!(["AUDIT#*", "ENTITY#*", "RESOURCE#*", "SYSTEM#"])
    );
    assert!(!document.to_string().contains("\"*\""), "{document}");
}

#[test]
fn the_module_has_the_resources_of_the_template() {
    let (template, module) = (template(), module());
    let kinds: BTreeSet<_> = module
        .blocks()
        .filter(|block| block.identifier() == "resource")
        .map(|block| block.labels()[0].as_str().to_owned())
        .collect();
    let twin = |kind: &str| {
        match kind {
            "AWS::IAM::Role" => vec!["aws_iam_role", "aws_iam_role_policy"],
            "AWS::Lambda::EventInvokeConfig" => vec!["aws_lambda_function_event_invoke_config"],
            "AWS::Lambda::Function" => vec!["aws_lambda_function"],
            "AWS::Logs::LogGroup" => vec!["aws_cloudwatch_log_group"],
            "AWS::SQS::Queue" => vec!["aws_sqs_queue"],
            "AWS::SQS::QueuePolicy" => vec!["aws_sqs_queue_policy"],
            other => vec![other],
        }
        .into_iter()
        .map(str::to_owned)
        .collect::<Vec<_>>()
    };
    let resources = template["Resources"].as_object().unwrap().values();
    let mut expected: BTreeSet<_> = resources
        .flat_map(|resource| twin(resource["Type"].as_str().unwrap()))
        .collect();
    // In CloudFormation the file is a resource of the user's own template.
    expected.insert("aws_lambda_invocation".to_owned());
    assert_eq!(kinds, expected);
}

#[test]
fn function_queue_log_and_policy_of_the_module_are_those_of_the_template() {
    let (template, module) = (template(), module());
    let property = |resource: &str, name: &str| template["Resources"][resource]["Properties"][name].clone();
    for (kind, resource, pairs) in [
        (
            "aws_lambda_function",
            "ProvisionerFunction",
            vec![
                ("description", "Description"),
                ("runtime", "Runtime"),
                ("handler", "Handler"),
                ("memory_size", "MemorySize"),
                ("timeout", "Timeout"),
            ],
        ),
        (
            "aws_sqs_queue",
            "ProvisionerDLQ",
            vec![
                ("message_retention_seconds", "MessageRetentionPeriod"),
                ("visibility_timeout_seconds", "VisibilityTimeout"),
                ("sqs_managed_sse_enabled", "SqsManagedSseEnabled"),
            ],
        ),
        (
            "aws_cloudwatch_log_group",
            "ProvisionerLogGroup",
            vec![("retention_in_days", "RetentionInDays")],
        ),
        (
            "aws_lambda_function_event_invoke_config",
            "ProvisionerInvocations",
            vec![
                ("qualifier", "Qualifier"),
                ("maximum_event_age_in_seconds", "MaximumEventAgeInSeconds"),
                ("maximum_retry_attempts", "MaximumRetryAttempts"),
            ],
        ),
    ] {
        let block = block_of(&module, kind);
        for (terraform, cloudformation) in pairs {
            let expected = property(resource, cloudformation).to_string();
            assert_eq!(attribute(&block, terraform), expected, "{kind}.{terraform}");
        }
    }
    let role = &property("ProvisionerRole", "Policies")[0]["PolicyDocument"];
    let policy = attribute(&block_of(&module, "aws_iam_role_policy"), "policy");
    for action in actions(role) {
        assert!(policy.contains(&format!("\"{action}\"")), "{action}: {policy}");
    }
    assert_eq!(policy.matches("\"dynamodb:").count() - 1, 6, "{policy}");
    let name = attribute(&block_of(&module, "aws_lambda_function"), "function_name");
    assert_eq!(name, "\"${var.table_name}-provisioner\"");
}

#[test]
fn lambda_repeats_no_request_and_delivers_none_after_cloudformation_gave_up() {
    let invocations = &template()["Resources"]["ProvisionerInvocations"]["Properties"];
    assert_eq!(invocations["FunctionName"], json!({"Ref": "ProvisionerFunction"}));
    assert_eq!(invocations["MaximumRetryAttempts"], 0);
    assert_eq!(invocations["MaximumEventAgeInSeconds"], 3_600);
}

#[test]
fn terraform_sends_the_file_on_every_change_and_on_destroy() {
    let invocation = block_of(&module(), "aws_lambda_invocation");
    let scope = invocation
        .body()
        .attributes()
        .find(|attribute| attribute.key() == "lifecycle_scope");
    assert_eq!(scope.unwrap().expr(), &Expression::from("CRUD"));
    assert!(attribute(&invocation, "input").contains("var.limits"));
}

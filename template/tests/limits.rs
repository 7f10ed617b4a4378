//! The provisioner's template. `tests/terraform` compares its Terraform module with it.

use serde_json::{Value, json};
use zae_limiter_template::{StackOptions, export};

use crate::variants;

fn template() -> Value {
    export::limits_provisioner(&StackOptions::default())
        .unwrap()
        .to_value()
        .clone()
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
fn lambda_repeats_no_request_and_delivers_none_after_cloudformation_gave_up() {
    let invocations = &template()["Resources"]["ProvisionerInvocations"]["Properties"];
    assert_eq!(invocations["FunctionName"], json!({"Ref": "ProvisionerFunction"}));
    assert_eq!(invocations["MaximumRetryAttempts"], 0);
    assert_eq!(invocations["MaximumEventAgeInSeconds"], 3_600);
}

#[test]
fn the_archive_may_be_for_either_processor() {
    let template = template();
    let parameter = &template["Parameters"]["Architecture"];
    assert_eq!(parameter["Default"], "x86_64");
    assert_eq!(parameter["AllowedValues"], json!(["x86_64", "arm64"]));
    let function = &template["Resources"]["ProvisionerFunction"]["Properties"];
    assert_eq!(function["Architectures"], json!([{"Ref": "Architecture"}]));
}

/// On a table with a customer key every call is denied without the key.
#[test]
fn the_function_follows_the_options_of_a_company() {
    let options = variants::everything()
        .permission_boundary("company-boundary")
        .role_name_format("pb-{}")
        .regional_iam_names(true)
        .log_retention_days(7)
        .build()
        .unwrap();
    let template = export::limits_provisioner(&options).unwrap();
    let properties = |id: &str| template.to_value()["Resources"][id]["Properties"].clone();
    let role = properties("ProvisionerRole");
    assert_eq!(
        role["RoleName"],
        json!({ "Fn::Sub": "pb-${TableName}-${AWS::Region}-prov" })
    );
    assert_eq!(
        role["PermissionsBoundary"],
        json!({ "Fn::Sub": "arn:${AWS::Partition}:iam::${AWS::AccountId}:policy/company-boundary" })
    );
    let statements = role["Policies"][0]["PolicyDocument"]["Statement"]
        .as_array()
        .unwrap()
        .clone();
    let key = statements
        .iter()
        .find(|statement| statement["Sid"] == "Key")
        .unwrap();
    assert_eq!(key["Resource"], json!([variants::KEY]));
    assert_eq!(properties("ProvisionerDLQ")["KmsMasterKeyId"], variants::KEY);
    assert_eq!(properties("ProvisionerLogGroup")["KmsKeyId"], variants::KEY);
    assert_eq!(properties("ProvisionerLogGroup")["RetentionInDays"], 7);
    assert_eq!(properties("ProvisionerFunction")["KmsKeyArn"], variants::KEY);
    assert_eq!(
        properties("ProvisionerFunction")["TracingConfig"]["Mode"],
        "Active"
    );
    for alarm in ["ProvisionerDLQAlarm", "ProvisionerErrorAlarm"] {
        assert_eq!(
            properties(alarm)["AlarmActions"],
            json!([variants::TOPIC]),
            "{alarm}"
        );
    }
    let quiet = StackOptions::builder().enable_alarms(false).build().unwrap();
    let quiet = export::limits_provisioner(&quiet).unwrap();
    assert!(!quiet.logical_ids().any(|id| id.ends_with("Alarm")));
}

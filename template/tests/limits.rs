//! The provisioner's template. `tests/terraform` compares its Terraform module with it.

use serde_json::{Value, json};
use zae_limiter_template::export;

fn template() -> Value {
    export::limits_provisioner().unwrap().to_value().clone()
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

//! Rules for policies and roles.

use serde_json::Value;

use super::properties::{list, of_type};
use super::{Facts, Findings, Rule};
use crate::Template;

/// Operations without an IAM action: the parts of a transaction are authorized as `PutItem` and so on.
const NO_ACTIONS: [&str; 2] = ["dynamodb:TransactGetItems", "dynamodb:TransactWriteItems"];

pub(super) fn check(template: &Template, facts: &Facts, findings: &mut Findings) {
    for (id, policy) in of_type(template, "AWS::IAM::ManagedPolicy") {
        document(id, &policy["Properties"]["PolicyDocument"], findings);
    }
    for (id, policy) in of_type(template, "AWS::IAM::Policy") {
        document(id, &policy["Properties"]["PolicyDocument"], findings);
    }
    for (id, role) in of_type(template, "AWS::IAM::Role") {
        let properties = &role["Properties"];
        for policy in list(&properties["Policies"]) {
            document(id, &policy["PolicyDocument"], findings);
        }
        for arn in list(&properties["ManagedPolicyArns"]) {
            let problem =
                format!("must not use the AWS managed policy {arn}; list the actions that it needs");
            findings.require(
                !arn.to_string().contains(":iam::aws:policy/"),
                Rule::ManagedByAws,
                id,
                problem,
            );
        }
        if let Some(boundary) = &facts.boundary {
            let bounded = properties["PermissionsBoundary"] == boundary.to_value();
            findings.require(
                bounded,
                Rule::RoleBoundary,
                id,
                "must have the PermissionsBoundary of the options",
            );
        }
    }
}

fn document(id: &str, document: &Value, findings: &mut Findings) {
    for statement in list(&document["Statement"]) {
        if statement["Effect"] != "Allow" {
            continue;
        }
        let positive = statement.get("NotAction").is_none() && statement.get("NotResource").is_none();
        findings.require(
            positive,
            Rule::RealActions,
            id,
            "must use Action and Resource, not NotAction or NotResource",
        );
        let everywhere = list(&statement["Resource"])
            .iter()
            .any(|resource| resource == "*");
        for action in list(&statement["Action"]) {
            let name = action.as_str().unwrap_or_default();
            let problem = format!("must allow existing actions by name, not {action}");
            findings.require_of(is_action(name), Rule::RealActions, id, name, problem);
            let problem = format!("must name the resources of {action}");
            findings.require_of(!everywhere, Rule::WildcardResource, id, name, problem);
        }
    }
}

fn is_action(action: &str) -> bool {
    let Some((service, name)) = action.split_once(':') else {
        return false;
    };
    let service = !service.is_empty()
        && service
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    let name =
        name.starts_with(|c: char| c.is_ascii_uppercase()) && name.bytes().all(|b| b.is_ascii_alphanumeric());
    service && name && !NO_ACTIONS.contains(&action)
}

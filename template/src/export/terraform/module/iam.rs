//! Policies and roles.

use std::fmt::Write as _;

use serde_json::Value;

use super::super::text::snake_case;
use super::print::Part;
use super::source::Source;
use crate::model::LogicalId;
use crate::resources::LambdaFunction;
use crate::resources::ids::{PolicyKind, RoleKind};

/// The managed policies, and the roles of people and applications.
pub(super) fn parts(source: &Source) -> Vec<Part> {
    let mut parts = Vec::new();
    for kind in PolicyKind::ALL {
        let (name, properties) = (snake_case(kind.id().as_str()), source.properties(&kind.id()));
        let document = document(source, &name, &properties["PolicyDocument"], "var.create_iam");
        parts.push(Part::new(document));
        parts.push(Part::new(format!(
            "resource \"aws_iam_policy\" \"{name}\" {{
               count = var.create_iam ? 1 : 0
               name = {}
               description = {}
               policy = data.aws_iam_policy_document.{name}[0].json
               tags = local.tags
               {}
             }}",
            iam_name("policy", kind.component()),
            properties["Description"],
            fits("policy", kind.component(), 128),
        )));
    }
    let created = "var.create_iam && var.create_iam_roles";
    for (kind, policy) in [RoleKind::App, RoleKind::Admin, RoleKind::Read]
        .into_iter()
        .zip(PolicyKind::ALL)
    {
        parts.extend(role(source, kind, created));
        let (name, policy) = (snake_case(kind.id().as_str()), snake_case(policy.id().as_str()));
        parts.push(Part::new(format!(
            "resource \"aws_iam_role_policy_attachment\" \"{name}\" {{
               count = {created} ? 1 : 0
               role = aws_iam_role.{name}[0].name
               policy_arn = aws_iam_policy.{policy}[0].arn
             }}"
        )));
    }
    parts
}

/// The role of a function, with its inline policy.
pub(super) fn role_of(source: &Source, function: LambdaFunction) -> Vec<Part> {
    let kind = function.role();
    let created = format!("local.creates_{}", snake_case(kind.id().as_str()));
    let mut parts = role(source, kind, &created);
    let name = snake_case(kind.id().as_str());
    let inline = &source.properties(&kind.id())["Policies"][0];
    parts.push(Part::new(document(
        source,
        &name,
        &inline["PolicyDocument"],
        &created,
    )));
    parts.push(Part::new(format!(
        "resource \"aws_iam_role_policy\" \"{name}\" {{
           count = {created} ? 1 : 0
           name = {}
           role = aws_iam_role.{name}[0].name
           policy = data.aws_iam_policy_document.{name}[0].json
         }}",
        inline["PolicyName"]
    )));
    parts
}

fn role(source: &Source, kind: RoleKind, created: &str) -> Vec<Part> {
    let (name, properties) = (snake_case(kind.id().as_str()), source.properties(&kind.id()));
    let trust = format!("{name}_trust");
    vec![
        Part::new(document(
            source,
            &trust,
            &properties["AssumeRolePolicyDocument"],
            created,
        )),
        Part::new(format!(
            "resource \"aws_iam_role\" \"{name}\" {{
               count = {created} ? 1 : 0
               name = {}
               description = {}
               assume_role_policy = data.aws_iam_policy_document.{trust}[0].json
               permissions_boundary = local.permissions_boundary
               tags = local.tags
               {}
             }}",
            iam_name("role", kind.component()),
            properties["Description"],
            fits("role", kind.component(), 64),
        )),
    ]
}

fn iam_name(what: &str, component: &str) -> String {
    format!("replace(local.{what}_name_format, \"{{}}\", \"${{local.iam_name}}-{component}\")")
}

fn fits(what: &str, component: &str, most: usize) -> String {
    format!(
        "lifecycle {{
           precondition {{
             condition = length({}) <= {most}
             error_message = \"The name of the {what} must have at most {most} characters; shorten name or {what}_name_format.\"
           }}
         }}",
        iam_name(what, component)
    )
}

/// A policy document as a data source.
pub(super) fn document(source: &Source, name: &str, document: &Value, created: &str) -> String {
    let statements = document["Statement"].as_array().map(Vec::as_slice);
    let statements: Vec<_> = statements
        .unwrap_or_default()
        .iter()
        .map(|statement| statement_block(source, statement))
        .collect();
    let statements = statements.concat();
    format!(
        "data \"aws_iam_policy_document\" \"{name}\" {{
           count = {created} ? 1 : 0
           {statements}
         }}"
    )
}

/// The statements for a key and for tracing exist only with the option.
fn statement_block(source: &Source, statement: &Value) -> String {
    let (condition, resources) = match statement["Sid"].as_str() {
        Some("Key") => (Some("var.kms_key_arn != null"), "[var.kms_key_arn]".to_owned()),
        Some("Tracing") => (
            Some("var.enable_tracing"),
            source.expression(&statement["Resource"]),
        ),
        _ => (None, source.expression(&statement["Resource"])),
    };
    let mut body = format!(
        "sid = {}\n effect = {}\n actions = {}\n",
        statement["Sid"], statement["Effect"], statement["Action"]
    );
    if statement.get("Resource").is_some() {
        let _ = writeln!(body, "resources = {resources}");
    }
    for (kind, identifiers) in statement["Principal"].as_object().into_iter().flatten() {
        let identifiers = source.expression(identifiers);
        let _ = write!(
            body,
            "principals {{\n type = \"{kind}\"\n identifiers = [{identifiers}]\n }}\n"
        );
    }
    for (test, keys) in statement["Condition"].as_object().into_iter().flatten() {
        for (variable, values) in keys.as_object().into_iter().flatten() {
            body += &condition_block(source, test, variable, values);
        }
    }
    match condition {
        None => format!("statement {{\n{body}}}\n"),
        Some(condition) => format!(
            "dynamic \"statement\" {{\n for_each = {condition} ? [true] : []\n content {{\n{body}}}\n }}\n"
        ),
    }
}

fn condition_block(source: &Source, test: &str, variable: &str, values: &Value) -> String {
    let values = match values {
        Value::Array(_) => source.expression(values),
        single => format!("[{}]", source.expression(single)),
    };
    let body = format!("test = \"{test}\"\n variable = \"{variable}\"\n values = {values}\n");
    if variable == "dynamodb:Attributes" {
        format!(
            "dynamic \"condition\" {{\n for_each = var.acquire_policy == \"attributes\" ? [true] : []\n content {{\n{body}}}\n }}\n"
        )
    } else {
        format!("condition {{\n{body}}}\n")
    }
}

/// The policy of a queue or a bucket.
pub(super) fn resource_policy(
    source: &Source,
    id: &LogicalId,
    kind: &str,
    target: &str,
    created: &str,
) -> Vec<Part> {
    let name = snake_case(id.as_str());
    let document = document(source, &name, &source.properties(id)["PolicyDocument"], created);
    vec![
        Part::new(document),
        Part::new(format!(
            "resource \"{kind}\" \"{name}\" {{
               count = {created} ? 1 : 0
               {target}
               policy = data.aws_iam_policy_document.{name}[0].json
             }}"
        )),
    ]
}

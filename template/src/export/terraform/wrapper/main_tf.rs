//! `main.tf`: the archives, the stack and the record of its version.

use zae_limiter_schema::VersionRecord;

use super::{TEMPLATE, text};
use crate::VERSION;
use crate::resources::LambdaFunction;

/// The stack's address.
pub(super) const STACK: &str = "aws_cloudformation_stack.limiter";

pub(super) fn render(functions: &[LambdaFunction]) -> String {
    let objects: Vec<_> = functions.iter().copied().map(object).collect();
    [
        REQUIREMENTS.to_owned(),
        objects.concat(),
        stack(functions),
        version_record(),
    ]
    .concat()
}

const REQUIREMENTS: &str = r#"terraform {
  required_version = ">= 1.5"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.80, < 7"
    }
  }
}

"#;

fn object(function: LambdaFunction) -> String {
    format!(
        r#"resource "aws_s3_object" "{function}" {{
  bucket      = var.code_bucket
  key         = "${{var.name}}/${{filesha256(var.{function}_zip)}}.zip"
  source      = var.{function}_zip
  source_hash = filebase64sha256(var.{function}_zip)

  # An update that is rolled back needs the archive it rolls back to.
  lifecycle {{
    create_before_destroy = true
  }}
}}

"#
    )
}

fn stack(functions: &[LambdaFunction]) -> String {
    let mut parameters = String::new();
    if !functions.is_empty() {
        let mut lines = vec![("CodeBucket".to_owned(), "var.code_bucket".to_owned())];
        for function in functions {
            lines.push((
                function.ids().code_key.to_string(),
                format!("aws_s3_object.{function}.key"),
            ));
        }
        parameters = format!("\n  parameters = {{\n{}  }}\n", text::aligned(&lines, 4));
    }
    let tags = [
        ("\"ManagedBy\"", "\"zae-limiter\"".to_owned()),
        ("\"zae-limiter:name\"", "var.name".to_owned()),
        ("\"zae-limiter:version\"", format!("\"{VERSION}\"")),
        (
            "\"zae-limiter:schema-version\"",
            format!("\"{}\"", VersionRecord::SCHEMA_VERSION),
        ),
        ("\"zae-limiter:lambda-version\"", format!("\"{VERSION}\"")),
        ("\"zae-limiter:type\"", "\"limiter\"".to_owned()),
    ];
    let tags = text::aligned(&tags.map(|(key, value)| (key.to_owned(), value)), 4);
    format!(
        r#"resource "aws_cloudformation_stack" "limiter" {{
  name              = var.name
  template_body     = file("${{path.module}}/{TEMPLATE}")
  capabilities      = ["CAPABILITY_NAMED_IAM"]
  notification_arns = var.notification_arns
{parameters}
  tags = merge(var.tags, {{
{tags}  }})
}}

"#
    )
}

/// What our own deployment writes into a new table.
fn version_record() -> String {
    let lines = text::aligned(&text::version_record(), 4);
    format!(
        r#"# A client writes this record too if it is missing, so it is left alone once it is there.
resource "aws_dynamodb_table_item" "version" {{
  count = var.write_version_record ? 1 : 0

  table_name = {STACK}.outputs["TableName"]
  hash_key   = "PK"
  range_key  = "SK"

  item = jsonencode({{
{lines}  }})

  lifecycle {{
    ignore_changes = [item]
  }}
}}
"#
    )
}

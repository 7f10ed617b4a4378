//! The Terraform module around the CloudFormation template.

mod main_tf;
mod readme;

use super::text::{self, snake_case};
use crate::Template;
use crate::export::File;
use crate::options::StackOptions;
use crate::resources::LambdaFunction;

/// The template's name in the module.
const TEMPLATE: &str = "template.json";

pub(in crate::export) fn files(template: &Template, options: &StackOptions) -> Vec<File> {
    let (functions, longest) = (&options.functions(), options.longest_exported_name());
    vec![
        File::new(TEMPLATE, template.to_json() + "\n"),
        File::new("main.tf", main_tf::render(functions)),
        File::new("variables.tf", variables(functions, longest)),
        File::new("outputs.tf", outputs(template)),
        File::new(
            "README.md",
            readme::render(functions, &output_names(template), longest),
        ),
        File::new("example/main.tf", example(functions)),
    ]
}

fn output_names(template: &Template) -> Vec<String> {
    template.output_names().map(snake_case).collect()
}

fn variables(functions: &[LambdaFunction], longest: usize) -> String {
    let mut blocks = vec![name(longest)];
    if !functions.is_empty() {
        blocks.push(variable(
            "code_bucket",
            "Existing bucket for the functions' archives, in the region of the stack.",
        ));
    }
    for function in functions {
        blocks.push(variable(
            &format!("{function}_zip"),
            &format!("Path of the {function}'s archive."),
        ));
    }
    blocks.push(OPTIONAL.to_owned());
    blocks.join("\n")
}

fn name(longest: usize) -> String {
    format!(
        r#"variable "name" {{
  description = "Name of the stack and of the table."
  type        = string

  validation {{
    condition     = can(regex("^[A-Za-z][A-Za-z0-9-]{{2,{}}}$", var.name))
    error_message = "The name must start with a letter and have 3 to {longest} letters, digits and hyphens."
  }}
}}
"#,
        longest.saturating_sub(1)
    )
}

const OPTIONAL: &str = r#"variable "write_version_record" {
  description = "Whether to write the record of the table's version, which clients look at."
  type        = bool
  default     = true
}

variable "notification_arns" {
  description = "ARNs of SNS topics that are told of the stack's events."
  type        = list(string)
  default     = []
}

variable "tags" {
  description = "Tags for everything in the stack."
  type        = map(string)
  default     = {}
}
"#;

fn variable(name: &str, description: &str) -> String {
    format!("variable \"{name}\" {{\n  description = \"{description}\"\n  type        = string\n}}\n")
}

fn outputs(template: &Template) -> String {
    let all = &template.to_value()["Outputs"];
    let output = |name: &str| {
        let description = all[name]["Description"].as_str().unwrap_or_default();
        format!(
            "output \"{}\" {{\n  description = \"{}.\"\n  value       = {}.outputs[\"{name}\"]\n}}\n",
            snake_case(name),
            text::escape(description),
            main_tf::STACK,
        )
    };
    template.output_names().map(output).collect::<Vec<_>>().join("\n")
}

fn example(functions: &[LambdaFunction]) -> String {
    let mut arguments = vec![
        ("source".to_owned(), "\"../\"".to_owned()),
        ("name".to_owned(), "\"limiter\"".to_owned()),
    ];
    let mut variables = String::new();
    if !functions.is_empty() {
        arguments.push(("code_bucket".to_owned(), "var.code_bucket".to_owned()));
        variables = variable("code_bucket", "Bucket for the functions' archives.") + "\n";
    }
    for function in functions {
        arguments.push((
            format!("{function}_zip"),
            format!("\"${{path.module}}/{function}.zip\""),
        ));
    }
    let arguments = text::aligned(&arguments, 2);
    format!(
        r#"provider "aws" {{
  region = "eu-central-1"
}}

{variables}module "limiter" {{
{arguments}}}

output "table_name" {{
  value = module.limiter.table_name
}}
"#
    )
}

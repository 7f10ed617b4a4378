//! The module's README.

use crate::resources::LambdaFunction;

pub(super) fn render(functions: &[LambdaFunction], outputs: &[String], longest: usize) -> String {
    let outputs: Vec<_> = outputs.iter().map(|name| format!("- `{name}`")).collect();
    format!(
        "{INTRODUCTION}{}{}\n## Outputs\n\n{}\n",
        archives(functions),
        notes(longest),
        outputs.join("\n")
    )
}

const INTRODUCTION: &str = "# zae-limiter for Terraform

Rate limits on DynamoDB: the table, its policies, functions, queues and alarms as one CloudFormation stack, so that what
Terraform deploys is exactly what `zae-limiter deploy` would.

This folder is generated from the crate `zae-limiter-template`. For other options, export the module again; do not edit
`template.json`. `example/` is a complete configuration.
";

fn notes(longest: usize) -> String {
    format!(
        "
## Good to know

- The name has at most {longest} characters, so that every name made from it fits.
- The table and the archive bucket stay when the stack is destroyed. A new stack of the same name then fails because the
  table exists: rename it, or take it in with `zae-limiter deploy`, which can import a table.
- Roles and policies are named after the stack and IAM names are global: one name works in one region only, unless the
  module is exported with `regional_iam_names`.
"
    )
}

fn archives(functions: &[LambdaFunction]) -> String {
    if functions.is_empty() {
        return String::new();
    }
    let names: Vec<_> = functions
        .iter()
        .map(|function| format!("`{function}.zip`"))
        .collect();
    format!(
        "
Build the functions' archives first ({}); `zae-limiter lambda-export` writes them.
They are stored in `code_bucket` under the stack's name and the hash of their content, so that new code is a change of the
stack and is rolled back with it.
",
        names.join(", ")
    )
}

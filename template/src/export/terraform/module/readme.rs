//! The module's README, with tables of its variables and outputs.

use std::fmt::Write as _;

use serde_json::Value;

use super::outputs::Output;
use super::variables::{Variable, literal};
use crate::VERSION;

pub(super) fn render(variables: &[Variable], outputs: &[Output]) -> String {
    let mut text = INTRODUCTION.replace("VERSION", VERSION);
    text += "\n## Inputs\n\n| Name | Description | Type | Default |\n|---|---|---|---|\n";
    for variable in variables {
        let default = match &variable.default {
            None => "required".to_owned(),
            Some(Value::Null) => "`null`".to_owned(),
            Some(value) => format!("`{}`", literal(value)),
        };
        let _ = writeln!(
            text,
            "| `{}` | {} | `{}` | {default} |",
            variable.name, variable.description, variable.kind
        );
    }
    text += "\n## Outputs\n\nAn output is null if what it describes does not exist.\n\n| Name | Description |\n|---|---|\n";
    for output in outputs {
        let _ = writeln!(text, "| `{}` | {} |", output.name, output.description);
    }
    text
}

const INTRODUCTION: &str = r#"# terraform-aws-zae-limiter

Rate limits on DynamoDB: the table, its policies, functions, queues, alarms and dashboard as Terraform resources. The same as the
CloudFormation stack that `zae-limiter deploy` creates, resource by resource. Terraform 1.5 and OpenTofu 1.6, or later.

```hcl
module "limiter" {
  source = "./zae-limiter"
  name   = "limiter"

  release = {
    url = "https://github.com/OWNER/REPO/releases/download"
    sha256 = {
      aggregator = "…" # from zae-limiter-aggregator-x86_64.zip.sha256
      archiver   = "…"
    }
  }
}
```

| Example | Shows |
|---|---|
| [examples/basic](examples/basic) | the defaults, with archives from a directory |
| [examples/complete](examples/complete) | every option |
| [examples/existing-table](examples/existing-table) | a table that exists, or that a stack leaves behind |

[modules/cloudformation](modules/cloudformation) deploys the CloudFormation template instead, as one resource.

This folder is generated from the crate `zae-limiter-template` VERSION; do not edit it.

## The functions' archives

- `release`: downloaded from a release with curl, and checked against the SHA-256 that you give.
- `code_directory`: a directory with `aggregator.zip` and `archiver.zip`; `zae-limiter lambda-export --all` writes them.
- `code_bucket` with `aggregator_code_key` and `archiver_code_key`: objects that exist. With `code_bucket` alone the archives are uploaded
  to it, under the name of the module and their hash.

## Removing it

CloudFormation retains the table and the archive of audit events when a stack is deleted. Terraform cannot, so both have `prevent_destroy`,
and so has the record of the table's version. To remove everything else, take them out of the state first:

```sh
terraform state rm 'module.limiter.aws_dynamodb_table.rate_limits_table' \
  'module.limiter.aws_dynamodb_table_item.version[0]' 'module.limiter.aws_s3_bucket.audit_archive_bucket[0]'
terraform destroy
```

To use the table again, import it as `examples/existing-table` does, with `write_version_record = false`: the record is still there.

## Coming from a stack or from modules/cloudformation

Deleting the stack keeps its table and its archive, so nothing is lost: what the functions have not read yet is in the table's stream for 24
hours.

1. Delete the stack (`zae-limiter delete`), or remove the call of `modules/cloudformation` and apply.
2. Import what was retained, and apply:

```hcl
import {
  to = module.limiter.aws_dynamodb_table.rate_limits_table
  id = "limiter"
}

import {
  to = module.limiter.aws_s3_bucket.audit_archive_bucket[0]
  id = "limiter-auditarchivebucket-1a2b3c4d5e6f"
}
```

The archive's name differs from what the module would choose, so name it with `archive_bucket` instead if you do not want Terraform to
manage it. Set `write_version_record = false`. New event source mappings start at `stream_start`: `trim_horizon` reads the last 24 hours
again, which the aggregator counts once.

If the call of the module is renamed, a `moved` block keeps its resources:

```hcl
moved {
  from = module.limiter
  to   = module.rate_limits
}
```
"#;

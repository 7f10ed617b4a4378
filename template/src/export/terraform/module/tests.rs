//! `terraform test` of the module, with a mocked provider.

use super::print::{Part, file};
use crate::Error;
use crate::export::File;

pub(super) fn files() -> Result<Vec<File>, Error> {
    let mut parts = vec![Part::with_comment(NEEDS, "mock_provider \"aws\" {}")];
    parts.push(Part::new(
        "variables {
           name = \"limiter\"
           code_bucket = \"code-bucket\"
           aggregator_code_key = \"aggregator.zip\"
           archiver_code_key = \"archiver.zip\"
         }",
    ));
    parts.push(run(
        "defaults",
        "",
        &[
            (
                "aws_dynamodb_table.rate_limits_table.name == \"limiter\"",
                "The table has the module's name.",
            ),
            (
                "aws_lambda_function.aggregator_function[0].memory_size == 256",
                "Options have their defaults.",
            ),
            (
                "length(aws_s3_bucket.audit_archive_bucket) == 1",
                "There is an archive.",
            ),
            (
                "length(aws_iam_role.app_role) == 0",
                "There are no roles for applications.",
            ),
            (
                "length(aws_cloudwatch_metric_alarm.dynamodb_read_throttle_alarm) == 1",
                "There are alarms.",
            ),
        ],
    ));
    parts.push(run(
        "everything_on",
        "kms_key_arn = \"arn:aws:kms:eu-central-1:123456789012:key/11111111-2222-3333-4444-555555555555\"
         alarm_sns_topic = \"arn:aws:sns:eu-central-1:123456789012:ops\"
         enable_contributor_insights = true
         enable_dashboard = true
         enable_tracing = true
         create_iam_roles = true
         permission_boundary = \"boundary\"
         audit_archive_object_lock_days = 30",
        &[
            (
                "length(aws_iam_role.app_role) == 1",
                "There are roles for applications.",
            ),
            (
                "length(aws_cloudwatch_dashboard.dashboard) == 1",
                "There is a dashboard.",
            ),
            (
                "length(aws_s3_bucket_object_lock_configuration.audit_archive_bucket) == 1",
                "The archive is locked.",
            ),
            (
                "aws_sqs_queue.aggregator_dlq[0].kms_master_key_id == var.kms_key_arn",
                "Queues use the key.",
            ),
        ],
    ));
    parts.push(run(
        "nothing_optional",
        "enable_aggregator = false
         enable_audit_archival = false
         enable_alarms = false
         create_iam = false",
        &[
            (
                "length(aws_lambda_function.aggregator_function) == 0",
                "There is no aggregator.",
            ),
            (
                "length(aws_iam_policy.acquire_only_policy) == 0",
                "There are no policies.",
            ),
            ("output.table_name == \"limiter\"", "There is a table."),
            (
                "output.aggregator_function_arn == null",
                "Outputs of what does not exist are null.",
            ),
        ],
    ));
    parts.push(from_a_release());
    parts.extend(refusals());
    Ok(vec![File::new("tests/module.tftest.hcl", file(&parts)?)])
}

/// `terraform test` of the module of limits files.
pub(super) fn of_limits() -> Result<File, Error> {
    let parts = [
        Part::with_comment(NEEDS, "mock_provider \"aws\" {}"),
        Part::with_comment(
            "Any file will do for an archive.",
            "variables {
               table_name = \"limiter\"
               archive = \"versions.tf\"
               limits = \"system: {limits: {rpm: 100}}\"
             }",
        ),
        run(
            "defaults",
            "",
            &[
                (
                    "aws_lambda_function.provisioner_function.function_name == \"limiter-provisioner\"",
                    "The function has the name of the table.",
                ),
                (
                    "aws_lambda_invocation.limits.lifecycle_scope == \"CRUD\"",
                    "A file that is removed is withdrawn.",
                ),
            ],
        ),
        refused("a_name_of_a_wrong_form", "table_name = \"1\"", "var.table_name"),
        refused(
            "an_unknown_processor",
            "architecture = \"riscv\"",
            "var.architecture",
        ),
    ];
    Ok(File::new("tests/limits.tftest.hcl", file(&parts)?))
}

fn from_a_release() -> Part {
    let sum = |digit: &str| digit.repeat(64);
    run(
        "from_a_release",
        &format!(
            "{NO_BUCKET}\n{}",
            release("https://example.com/releases", &sum("a"), &sum("b"))
        ),
        &[
            (
                "length(terraform_data.aggregator_archive) == 1 && length(terraform_data.archiver_archive) == 1",
                "The archives are downloaded.",
            ),
            (
                "endswith(aws_lambda_function.aggregator_function[0].filename, \"/${var.release.sha256.aggregator}.zip\")",
                "The function has the archive of the release.",
            ),
        ],
    )
}

const NEEDS: &str = "Needs Terraform 1.7 or later and no AWS account: `terraform init && terraform test`.";
const NO_BUCKET: &str = "code_bucket = null\n aggregator_code_key = null\n archiver_code_key = null";

fn release(url: &str, aggregator: &str, archiver: &str) -> String {
    format!(
        "release = {{ url = \"{url}\", sha256 = {{ aggregator = \"{aggregator}\", archiver = \"{archiver}\" }} }}"
    )
}

fn refusals() -> [Part; 6] {
    let sum = "0123456789abcdef".repeat(4);
    let release_of = |url: &str, archiver: &str| format!("{NO_BUCKET}\n{}", release(url, &sum, archiver));
    [
        refused(
            "a_checksum_of_a_wrong_form",
            &release_of("https://example.com/releases", "abc"),
            "var.release",
        ),
        refused(
            "a_release_without_tls",
            &release_of("http://example.com/releases", &sum),
            "var.release",
        ),
        refused("a_name_of_a_wrong_form", "name = \"1\"", "var.name"),
        refused("too_little_memory", "lambda_memory = 64", "var.lambda_memory"),
        refused(
            "options_that_contradict_each_other",
            "create_iam = false\n create_iam_roles = true",
            "aws_dynamodb_table.rate_limits_table",
        ),
        refused(
            "a_function_without_code",
            &format!("{NO_BUCKET}\n enable_audit_archival = false"),
            "aws_lambda_function.aggregator_function",
        ),
    ]
}

fn run(name: &str, variables: &str, asserts: &[(&str, &str)]) -> Part {
    let variables = if variables.is_empty() {
        String::new()
    } else {
        format!("variables {{\n{variables}\n}}\n")
    };
    let asserts = asserts.iter().map(|(condition, message)| {
        format!("assert {{\n condition = {condition}\n error_message = \"{message}\"\n }}\n")
    });
    Part::new(format!(
        "run \"{name}\" {{\n command = plan\n {variables}{}}}",
        asserts.collect::<Vec<_>>().concat()
    ))
}

fn refused(name: &str, variables: &str, by: &str) -> Part {
    Part::new(format!(
        "run \"{name}\" {{\n command = plan\n expect_failures = [{by}]\n variables {{\n{variables}\n}}\n }}"
    ))
}

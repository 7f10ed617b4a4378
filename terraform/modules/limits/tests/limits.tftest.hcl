# Needs Terraform 1.7 or later and no AWS account: `terraform init && terraform test`.

# The provider refuses policies and ARNs of random text, which a mock returns otherwise.
mock_provider "aws" {
  mock_data "aws_caller_identity" {
    defaults = { account_id = "123456789012" }
  }

  mock_data "aws_partition" {
    defaults = { partition = "aws", dns_suffix = "amazonaws.com" }
  }

  mock_data "aws_region" {
    defaults = { id = "eu-central-1", region = "eu-central-1" }
  }

  mock_data "aws_iam_policy_document" {
    defaults = { json = "{\"Version\":\"2012-10-17\",\"Statement\":[]}" }
  }

  mock_resource "aws_sqs_queue" {
    defaults = { arn = "arn:aws:sqs:eu-central-1:123456789012:limiter-dlq" }
  }

  mock_resource "aws_cloudwatch_log_group" {
    defaults = { arn = "arn:aws:logs:eu-central-1:123456789012:log-group:limiter" }
  }

  mock_resource "aws_iam_role" {
    defaults = { arn = "arn:aws:iam::123456789012:role/limiter" }
  }

  mock_resource "aws_lambda_function" {
    defaults = { arn = "arn:aws:lambda:eu-central-1:123456789012:function:limiter" }
  }

  mock_resource "aws_lambda_invocation" {
    defaults = { result = "{\"Created\":0}" }
  }
}

# Any file will do for an archive.
variables {
  table_name = "limiter"
  archive    = "versions.tf"
  limits     = "system: {limits: {rpm: 100}}"
}

run "defaults" {
  command = plan

  assert {
    condition     = aws_lambda_function.provisioner_function.function_name == "limiter-provisioner"
    error_message = "The function has the name of the table."
  }

  assert {
    condition     = aws_lambda_invocation.limits.lifecycle_scope == "CRUD"
    error_message = "A file that is removed is withdrawn."
  }
}

run "a_company" {
  command = plan

  variables {
    kms_key_arn         = "arn:aws:kms:eu-central-1:123456789012:key/11111111-2222-3333-4444-555555555555"
    alarm_sns_topic     = "arn:aws:sns:eu-central-1:123456789012:ops"
    permission_boundary = "company-boundary"
    role_name_format    = "pb-{}"
    regional_iam_names  = true
    enable_tracing      = true
  }

  assert {
    condition     = aws_iam_role.provisioner_role.name == "pb-limiter-eu-central-1-prov"
    error_message = "The role has a name of its region."
  }

  assert {
    condition     = aws_iam_role.provisioner_role.permissions_boundary == "arn:aws:iam::123456789012:policy/company-boundary"
    error_message = "The role has the boundary."
  }
}

run "a_name_of_a_wrong_form" {
  command         = plan
  expect_failures = [var.table_name]

  variables {
    table_name = "1"
  }
}

run "an_unknown_processor" {
  command         = plan
  expect_failures = [var.architecture]

  variables {
    architecture = "riscv"
  }
}

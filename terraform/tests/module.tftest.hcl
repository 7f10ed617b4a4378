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

  mock_resource "aws_dynamodb_table" {
    defaults = { arn = "arn:aws:dynamodb:eu-central-1:123456789012:table/limiter", stream_arn = "arn:aws:dynamodb:eu-central-1:123456789012:table/limiter/stream/2026-01-01T00:00:00.000" }
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

  mock_resource "aws_iam_policy" {
    defaults = { arn = "arn:aws:iam::123456789012:policy/limiter" }
  }

  mock_resource "aws_lambda_function" {
    defaults = { arn = "arn:aws:lambda:eu-central-1:123456789012:function:limiter" }
  }

  mock_resource "aws_s3_bucket" {
    defaults = { arn = "arn:aws:s3:::limiter-audit" }
  }
}

variables {
  name                = "limiter"
  code_bucket         = "code-bucket"
  aggregator_code_key = "aggregator.zip"
  archiver_code_key   = "archiver.zip"
}

run "defaults" {
  command = plan

  assert {
    condition     = aws_dynamodb_table.rate_limits_table.name == "limiter"
    error_message = "The table has the module's name."
  }

  assert {
    condition     = aws_lambda_function.aggregator_function[0].memory_size == 256
    error_message = "Options have their defaults."
  }

  assert {
    condition     = length(aws_s3_bucket.audit_archive_bucket) == 1
    error_message = "There is an archive."
  }

  assert {
    condition     = length(aws_iam_role.app_role) == 0
    error_message = "There are no roles for applications."
  }

  assert {
    condition     = length(aws_cloudwatch_metric_alarm.dynamodb_read_throttle_alarm) == 1
    error_message = "There are alarms."
  }
}

run "everything_on" {
  command = plan

  variables {
    kms_key_arn                    = "arn:aws:kms:eu-central-1:123456789012:key/11111111-2222-3333-4444-555555555555"
    alarm_sns_topic                = "arn:aws:sns:eu-central-1:123456789012:ops"
    enable_contributor_insights    = true
    event_bus                      = "default"
    enable_dashboard               = true
    enable_tracing                 = true
    create_iam_roles               = true
    permission_boundary            = "boundary"
    audit_archive_object_lock_days = 30
  }

  assert {
    condition     = length(aws_iam_role.app_role) == 1
    error_message = "There are roles for applications."
  }

  assert {
    condition     = length(aws_cloudwatch_dashboard.dashboard) == 1
    error_message = "There is a dashboard."
  }

  assert {
    condition     = length(aws_s3_bucket_object_lock_configuration.audit_archive_bucket) == 1
    error_message = "The archive is locked."
  }

  assert {
    condition     = aws_sqs_queue.aggregator_dlq[0].kms_master_key_id == var.kms_key_arn
    error_message = "Queues use the key."
  }
}

run "nothing_optional" {
  command = plan

  variables {
    enable_aggregator     = false
    enable_audit_archival = false
    enable_alarms         = false
    create_iam            = false
  }

  assert {
    condition     = length(aws_lambda_function.aggregator_function) == 0
    error_message = "There is no aggregator."
  }

  assert {
    condition     = length(aws_iam_policy.acquire_only_policy) == 0
    error_message = "There are no policies."
  }

  assert {
    condition     = output.table_name == "limiter"
    error_message = "There is a table."
  }

  assert {
    condition     = output.aggregator_function_arn == null
    error_message = "Outputs of what does not exist are null."
  }
}

run "from_a_release" {
  command = plan

  variables {
    code_bucket         = null
    aggregator_code_key = null
    archiver_code_key   = null
    release = {
      url = "https://example.com/releases"
      sha256 = {
        aggregator = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
        archiver   = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
      }
    }
  }

  assert {
    condition     = length(terraform_data.aggregator_archive) == 1 && length(terraform_data.archiver_archive) == 1
    error_message = "The archives are downloaded."
  }

  assert {
    condition     = endswith(aws_lambda_function.aggregator_function[0].filename, "/aggregator-${var.release.sha256.aggregator}.zip")
    error_message = "The function has the archive of the release."
  }
}

run "a_checksum_of_a_wrong_form" {
  command         = plan
  expect_failures = [var.release]

  variables {
    code_bucket         = null
    aggregator_code_key = null
    archiver_code_key   = null
    release = {
      url = "https://example.com/releases"
      sha256 = {
        aggregator = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
        archiver   = "abc"
      }
    }
  }
}

run "a_release_without_tls" {
  command         = plan
  expect_failures = [var.release]

  variables {
    code_bucket         = null
    aggregator_code_key = null
    archiver_code_key   = null
    release = {
      url = "http://example.com/releases"
      sha256 = {
        aggregator = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
        archiver   = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
      }
    }
  }
}

run "a_name_of_a_wrong_form" {
  command         = plan
  expect_failures = [var.name]

  variables {
    name = "1"
  }
}

run "too_little_memory" {
  command         = plan
  expect_failures = [var.lambda_memory]

  variables {
    lambda_memory = 64
  }
}

run "options_that_contradict_each_other" {
  command         = plan
  expect_failures = [aws_dynamodb_table.rate_limits_table]

  variables {
    create_iam       = false
    create_iam_roles = true
  }
}

run "a_function_without_code" {
  command         = plan
  expect_failures = [aws_lambda_function.aggregator_function]

  variables {
    code_bucket           = null
    aggregator_code_key   = null
    archiver_code_key     = null
    enable_audit_archival = false
  }
}

run "one_checksum_of_two" {
  command         = plan
  expect_failures = [aws_lambda_function.archiver_function]

  variables {
    code_bucket         = null
    aggregator_code_key = null
    archiver_code_key   = null
    release = {
      url    = "https://example.com/releases"
      sha256 = { aggregator = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef" }
    }
  }
}

run "a_bucket_without_archives" {
  command         = plan
  expect_failures = [aws_lambda_function.aggregator_function, aws_lambda_function.archiver_function]

  variables {
    aggregator_code_key = null
    archiver_code_key   = null
  }
}

locals {
  has_aggregator           = var.enable_aggregator && (var.create_iam || var.aggregator_role_arn != null)
  creates_aggregator_role  = local.has_aggregator && var.aggregator_role_arn == null
  aggregator_role_arn      = var.aggregator_role_arn != null ? var.aggregator_role_arn : one(aws_iam_role.aggregator_role[*].arn)
  aggregator_function_name = length(var.name) > 53 ? "${var.name}-aggr" : "${var.name}-aggregator"

  # The archive is an object that exists, or a file: from a release, or from a directory.
  aggregator_checksum  = var.release == null ? null : var.release.sha256.aggregator
  aggregator_download  = local.aggregator_checksum == null ? null : "${local.downloads}/aggregator-${local.aggregator_checksum}.zip"
  aggregator_file      = var.release != null ? local.aggregator_download : (var.code_directory == null ? null : "${var.code_directory}/aggregator.zip")
  aggregator_has_code  = local.aggregator_file != null || (var.code_bucket != null && var.aggregator_code_key != null)
  downloads_aggregator = local.has_aggregator && local.aggregator_download != null && var.aggregator_code_key == null
  uploads_aggregator   = local.has_aggregator && local.aggregator_file != null && var.code_bucket != null && var.aggregator_code_key == null

  # Which download the file is of. A file that is missing, as on a runner that starts empty, is downloaded again.
  aggregator_download_id = local.aggregator_download == null ? null : (
    fileexists(local.aggregator_download) && fileexists("${local.aggregator_download}.id") ? file("${local.aggregator_download}.id") : plantimestamp()
  )
}

resource "aws_sqs_queue" "aggregator_dlq" {
  count = local.has_aggregator ? 1 : 0

  name                       = "${var.name}-aggregator-dlq"
  message_retention_seconds  = 1209600
  visibility_timeout_seconds = 300
  sqs_managed_sse_enabled    = var.kms_key_arn == null ? true : null
  kms_master_key_id          = var.kms_key_arn
  tags                       = local.tags
}

data "aws_iam_policy_document" "aggregator_dlq_policy" {
  count = local.has_aggregator ? 1 : 0

  statement {
    sid       = "TlsOnly"
    effect    = "Deny"
    actions   = ["sqs:*"]
    resources = [aws_sqs_queue.aggregator_dlq[0].arn]

    principals {
      type        = "AWS"
      identifiers = ["*"]
    }

    condition {
      test     = "Bool"
      variable = "aws:SecureTransport"
      values   = ["false"]
    }
  }
}

resource "aws_sqs_queue_policy" "aggregator_dlq_policy" {
  count = local.has_aggregator ? 1 : 0

  queue_url = aws_sqs_queue.aggregator_dlq[0].url
  policy    = data.aws_iam_policy_document.aggregator_dlq_policy[0].json
}

resource "aws_cloudwatch_log_group" "aggregator_log_group" {
  count = local.has_aggregator ? 1 : 0

  name              = "/aws/lambda/${local.aggregator_function_name}"
  retention_in_days = var.log_retention_days
  kms_key_id        = var.kms_key_arn
  tags              = local.tags
}

data "aws_iam_policy_document" "aggregator_role_trust" {
  count = local.creates_aggregator_role ? 1 : 0

  statement {
    sid     = "Lambda"
    effect  = "Allow"
    actions = ["sts:AssumeRole"]

    principals {
      type        = "Service"
      identifiers = ["lambda.amazonaws.com"]
    }
  }
}

resource "aws_iam_role" "aggregator_role" {
  count = local.creates_aggregator_role ? 1 : 0

  name                 = local.role_names.aggr
  path                 = var.iam_path
  description          = "For the aggregator of the rate limiter"
  assume_role_policy   = data.aws_iam_policy_document.aggregator_role_trust[0].json
  permissions_boundary = local.permissions_boundary
  tags                 = local.tags

  lifecycle {
    precondition {
      condition     = length(local.role_names.aggr) <= 64
      error_message = "The name of the role must have at most 64 characters; shorten name or role_name_format."
    }
  }
}

data "aws_iam_policy_document" "aggregator_role" {
  count = local.creates_aggregator_role ? 1 : 0

  statement {
    sid       = "Usage"
    effect    = "Allow"
    actions   = ["dynamodb:UpdateItem"]
    resources = [aws_dynamodb_table.rate_limits_table.arn]

    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["ENTITY#*"]
    }
  }

  dynamic "statement" {
    for_each = var.event_bus != null ? [true] : []

    content {
      sid     = "Events"
      effect  = "Allow"
      actions = ["events:PutEvents"]
      resources = [
        "arn:${data.aws_partition.current.partition}:events:${data.aws_region.current.id}:${data.aws_caller_identity.current.account_id}:event-bus/${var.event_bus}",
      ]

      condition {
        test     = "ForAllValues:StringLike"
        variable = "events:source"
        values   = ["zae-limiter"]
      }

      condition {
        test     = "ForAllValues:StringLike"
        variable = "events:detail-type"
        values   = ["Quota threshold crossed"]
      }
    }
  }

  statement {
    sid       = "Stream"
    effect    = "Allow"
    actions   = ["dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator"]
    resources = [aws_dynamodb_table.rate_limits_table.stream_arn]
  }

  statement {
    sid       = "ListStreams"
    effect    = "Allow"
    actions   = ["dynamodb:ListStreams"]
    resources = ["*"]
  }

  statement {
    sid       = "DeadLetters"
    effect    = "Allow"
    actions   = ["sqs:SendMessage"]
    resources = [aws_sqs_queue.aggregator_dlq[0].arn]
  }

  statement {
    sid       = "Logs"
    effect    = "Allow"
    actions   = ["logs:CreateLogStream", "logs:PutLogEvents"]
    resources = ["${aws_cloudwatch_log_group.aggregator_log_group[0].arn}:*"]
  }

  dynamic "statement" {
    for_each = length(var.lambda_subnet_ids) > 0 ? [true] : []

    content {
      sid    = "Network"
      effect = "Allow"
      actions = [
        "ec2:AssignPrivateIpAddresses",
        "ec2:CreateNetworkInterface",
        "ec2:DeleteNetworkInterface",
        "ec2:DescribeNetworkInterfaces",
        "ec2:DescribeSubnets",
        "ec2:UnassignPrivateIpAddresses",
      ]
      resources = ["*"]
    }
  }

  dynamic "statement" {
    for_each = var.enable_tracing ? [true] : []

    content {
      sid       = "Tracing"
      effect    = "Allow"
      actions   = ["xray:PutTelemetryRecords", "xray:PutTraceSegments"]
      resources = ["*"]
    }
  }

  dynamic "statement" {
    for_each = var.kms_key_arn != null ? [true] : []

    content {
      sid       = "Key"
      effect    = "Allow"
      actions   = ["kms:Decrypt", "kms:GenerateDataKey"]
      resources = [var.kms_key_arn]
    }
  }
}

resource "aws_iam_role_policy" "aggregator_role" {
  count = local.creates_aggregator_role ? 1 : 0

  name   = "aggregator"
  role   = aws_iam_role.aggregator_role[0].name
  policy = data.aws_iam_policy_document.aggregator_role[0].json
}

# Downloads the archive of a release when its checksum changes, and again where the file is missing: a function or an object that has
# to be created again needs it.
resource "terraform_data" "aggregator_archive" {
  count = local.downloads_aggregator ? 1 : 0

  triggers_replace = [local.aggregator_function_name, local.aggregator_checksum, var.lambda_architecture, local.aggregator_download_id]

  provisioner "local-exec" {
    command = <<-EOT
      set -eu
      mkdir -p '${local.downloads}'
      part=$(mktemp '${local.downloads}/part.XXXXXX')
      trap 'rm -f "$part"' EXIT
      curl --fail --silent --show-error --location --output "$part" \
        '${var.release.url}/v${var.release.version}/zae-limiter-aggregator-${var.lambda_architecture}.zip'
      { sha256sum "$part" 2>/dev/null || shasum -a 256 "$part"; } | grep --quiet '^${local.aggregator_checksum} '
      printf %s '${local.aggregator_download_id}' >'${local.aggregator_download}.id'
      mv "$part" '${local.aggregator_download}'
    EOT
  }
}

# A function that is rolled back needs the archive it had before.
resource "aws_s3_object" "aggregator_archive" {
  count = local.uploads_aggregator ? 1 : 0

  bucket     = var.code_bucket
  key        = "${var.name}/${local.aggregator_checksum != null ? local.aggregator_checksum : filesha256(local.aggregator_file)}.zip"
  source     = local.aggregator_file
  depends_on = [terraform_data.aggregator_archive]

  lifecycle {
    create_before_destroy = true
  }
}

resource "aws_lambda_function" "aggregator_function" {
  count = local.has_aggregator ? 1 : 0

  function_name                  = local.aggregator_function_name
  description                    = "Counts usage from the changes of buckets"
  runtime                        = "provided.al2023"
  architectures                  = [var.lambda_architecture]
  handler                        = "bootstrap"
  filename                       = var.code_bucket == null ? local.aggregator_file : null
  source_code_hash               = var.code_bucket == null && var.release == null && local.aggregator_file != null ? filebase64sha256(local.aggregator_file) : null
  s3_bucket                      = var.code_bucket
  s3_key                         = var.aggregator_code_key != null ? var.aggregator_code_key : one(aws_s3_object.aggregator_archive[*].key)
  role                           = local.aggregator_role_arn
  memory_size                    = var.lambda_memory
  timeout                        = var.lambda_timeout
  reserved_concurrent_executions = var.lambda_reserved_concurrency
  kms_key_arn                    = var.kms_key_arn
  tags                           = local.tags
  depends_on                     = [aws_iam_role_policy.aggregator_role, terraform_data.aggregator_archive]

  environment {
    variables = merge(var.event_bus == null ? {} : { EVENT_BUS = var.event_bus }, {
      DLQ_URL                    = aws_sqs_queue.aggregator_dlq[0].url
      SNAPSHOT_TTL_DAYS          = tostring(var.usage_retention_days)
      SNAPSHOT_WINDOWS           = join(",", [for window in ["hourly", "daily", "monthly"] : window if contains(var.snapshot_windows, window)])
      TABLE_NAME                 = aws_dynamodb_table.rate_limits_table.name
      ZAE_LIMITER_SCHEMA_VERSION = "0.8.0"
    })
  }

  dynamic "vpc_config" {
    for_each = length(var.lambda_subnet_ids) > 0 ? [true] : []

    content {
      subnet_ids         = var.lambda_subnet_ids
      security_group_ids = var.lambda_security_group_ids
    }
  }

  dead_letter_config {
    target_arn = aws_sqs_queue.aggregator_dlq[0].arn
  }

  tracing_config {
    mode = var.enable_tracing ? "Active" : "PassThrough"
  }

  logging_config {
    log_format = "Text"
    log_group  = aws_cloudwatch_log_group.aggregator_log_group[0].name
  }

  lifecycle {
    precondition {
      condition     = local.aggregator_has_code
      error_message = "The aggregator has no code: set release with sha256.aggregator, or code_directory, or code_bucket with aggregator_code_key, or set enable_aggregator to false."
    }
  }
}

resource "aws_lambda_event_source_mapping" "aggregator_event_source_mapping" {
  count = local.has_aggregator ? 1 : 0

  event_source_arn                   = aws_dynamodb_table.rate_limits_table.stream_arn
  function_name                      = aws_lambda_function.aggregator_function[0].arn
  enabled                            = true
  starting_position                  = upper(var.stream_start)
  batch_size                         = 1000
  maximum_batching_window_in_seconds = 5
  maximum_retry_attempts             = -1
  maximum_record_age_in_seconds      = 79200
  bisect_batch_on_function_error     = true
  parallelization_factor             = var.aggregator_parallelization
  function_response_types            = ["ReportBatchItemFailures"]
  tags                               = local.tags
  depends_on                         = [aws_iam_role_policy.aggregator_role]

  destination_config {
    on_failure {
      destination_arn = aws_sqs_queue.aggregator_dlq[0].arn
    }
  }

  filter_criteria {
    filter {
      pattern = jsonencode({
        eventName = ["INSERT", "MODIFY"]
        dynamodb  = { Keys = { SK = { S = [{ prefix = "#BUCKET#" }] } } }
      })
    }
  }

  metrics_config {
    metrics = ["EventCount"]
  }

  # The position counts when the mapping is created; a change would replace the mapping and read the stream again.
  lifecycle {
    ignore_changes = [starting_position]
  }
}

locals {
  has_archiver           = var.enable_audit_archival && (var.create_iam || var.archiver_role_arn != null)
  creates_archiver_role  = local.has_archiver && var.archiver_role_arn == null
  archiver_role_arn      = var.archiver_role_arn != null ? var.archiver_role_arn : one(aws_iam_role.archiver_role[*].arn)
  archiver_function_name = length(var.name) > 55 ? "${var.name}-arch" : "${var.name}-archiver"

  # The archive is an object that exists, or a file: from a release, or from a directory.
  archiver_checksum  = var.release == null ? null : var.release.sha256.archiver
  archiver_download  = local.archiver_checksum == null ? null : "${local.downloads}/archiver-${local.archiver_checksum}.zip"
  archiver_file      = var.release != null ? local.archiver_download : (var.code_directory == null ? null : "${var.code_directory}/archiver.zip")
  archiver_has_code  = local.archiver_file != null || (var.code_bucket != null && var.archiver_code_key != null)
  downloads_archiver = local.has_archiver && local.archiver_download != null && var.archiver_code_key == null
  uploads_archiver   = local.has_archiver && local.archiver_file != null && var.code_bucket != null && var.archiver_code_key == null

  # Which download the file is of. A file that is missing, as on a runner that starts empty, is downloaded again.
  archiver_download_id = local.archiver_download == null ? null : (
    fileexists(local.archiver_download) && fileexists("${local.archiver_download}.id") ? file("${local.archiver_download}.id") : plantimestamp()
  )
}

resource "aws_sqs_queue" "archiver_dlq" {
  count = local.has_archiver ? 1 : 0

  name                       = "${var.name}-archiver-dlq"
  message_retention_seconds  = 1209600
  visibility_timeout_seconds = 300
  sqs_managed_sse_enabled    = var.kms_key_arn == null ? true : null
  kms_master_key_id          = var.kms_key_arn
  tags                       = local.tags
}

data "aws_iam_policy_document" "archiver_dlq_policy" {
  count = local.has_archiver ? 1 : 0

  statement {
    sid       = "TlsOnly"
    effect    = "Deny"
    actions   = ["sqs:*"]
    resources = [aws_sqs_queue.archiver_dlq[0].arn]

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

resource "aws_sqs_queue_policy" "archiver_dlq_policy" {
  count = local.has_archiver ? 1 : 0

  queue_url = aws_sqs_queue.archiver_dlq[0].url
  policy    = data.aws_iam_policy_document.archiver_dlq_policy[0].json
}

resource "aws_cloudwatch_log_group" "archiver_log_group" {
  count = local.has_archiver ? 1 : 0

  name              = "/aws/lambda/${local.archiver_function_name}"
  retention_in_days = var.log_retention_days
  kms_key_id        = var.kms_key_arn
  tags              = local.tags
}

data "aws_iam_policy_document" "archiver_role_trust" {
  count = local.creates_archiver_role ? 1 : 0

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

resource "aws_iam_role" "archiver_role" {
  count = local.creates_archiver_role ? 1 : 0

  name                 = local.role_names.arch
  path                 = var.iam_path
  description          = "For the archiver of the rate limiter"
  assume_role_policy   = data.aws_iam_policy_document.archiver_role_trust[0].json
  permissions_boundary = local.permissions_boundary
  tags                 = local.tags

  lifecycle {
    precondition {
      condition     = length(local.role_names.arch) <= 64
      error_message = "The name of the role must have at most 64 characters; shorten name or role_name_format."
    }
  }
}

data "aws_iam_policy_document" "archiver_role" {
  count = local.creates_archiver_role ? 1 : 0

  statement {
    sid       = "Archive"
    effect    = "Allow"
    actions   = ["s3:PutObject"]
    resources = ["${local.archive_bucket_arn}/audit/*"]
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
    resources = [aws_sqs_queue.archiver_dlq[0].arn]
  }

  statement {
    sid       = "Logs"
    effect    = "Allow"
    actions   = ["logs:CreateLogStream", "logs:PutLogEvents"]
    resources = ["${aws_cloudwatch_log_group.archiver_log_group[0].arn}:*"]
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

resource "aws_iam_role_policy" "archiver_role" {
  count = local.creates_archiver_role ? 1 : 0

  name   = "archiver"
  role   = aws_iam_role.archiver_role[0].name
  policy = data.aws_iam_policy_document.archiver_role[0].json
}

# Downloads the archive of a release when its checksum changes, and again where the file is missing: a function or an object that has
# to be created again needs it.
resource "terraform_data" "archiver_archive" {
  count = local.downloads_archiver ? 1 : 0

  triggers_replace = [local.archiver_function_name, local.archiver_checksum, var.lambda_architecture, local.archiver_download_id]

  provisioner "local-exec" {
    command = <<-EOT
      set -eu
      mkdir -p '${local.downloads}'
      part=$(mktemp '${local.downloads}/part.XXXXXX')
      trap 'rm -f "$part"' EXIT
      curl --fail --silent --show-error --location --output "$part" \
        '${var.release.url}/v${var.release.version}/zae-limiter-archiver-${var.lambda_architecture}.zip'
      { sha256sum "$part" 2>/dev/null || shasum -a 256 "$part"; } | grep --quiet '^${local.archiver_checksum} '
      printf %s '${local.archiver_download_id}' >'${local.archiver_download}.id'
      mv "$part" '${local.archiver_download}'
    EOT
  }
}

# A function that is rolled back needs the archive it had before.
resource "aws_s3_object" "archiver_archive" {
  count = local.uploads_archiver ? 1 : 0

  bucket     = var.code_bucket
  key        = "${var.name}/${local.archiver_checksum != null ? local.archiver_checksum : filesha256(local.archiver_file)}.zip"
  source     = local.archiver_file
  depends_on = [terraform_data.archiver_archive]

  lifecycle {
    create_before_destroy = true
  }
}

resource "aws_lambda_function" "archiver_function" {
  count = local.has_archiver ? 1 : 0

  function_name                  = local.archiver_function_name
  description                    = "Writes audit events to S3"
  runtime                        = "provided.al2023"
  architectures                  = [var.lambda_architecture]
  handler                        = "bootstrap"
  filename                       = var.code_bucket == null ? local.archiver_file : null
  source_code_hash               = var.code_bucket == null && var.release == null && local.archiver_file != null ? filebase64sha256(local.archiver_file) : null
  s3_bucket                      = var.code_bucket
  s3_key                         = var.archiver_code_key != null ? var.archiver_code_key : one(aws_s3_object.archiver_archive[*].key)
  role                           = local.archiver_role_arn
  memory_size                    = var.lambda_memory
  timeout                        = var.lambda_timeout
  reserved_concurrent_executions = var.lambda_reserved_concurrency
  kms_key_arn                    = var.kms_key_arn
  tags                           = local.tags
  depends_on                     = [aws_iam_role_policy.archiver_role, terraform_data.archiver_archive]

  environment {
    variables = {
      ARCHIVE_BUCKET_NAME        = local.archive_bucket_name
      DLQ_URL                    = aws_sqs_queue.archiver_dlq[0].url
      ZAE_LIMITER_SCHEMA_VERSION = "0.8.0"
    }
  }

  dynamic "vpc_config" {
    for_each = length(var.lambda_subnet_ids) > 0 ? [true] : []

    content {
      subnet_ids         = var.lambda_subnet_ids
      security_group_ids = var.lambda_security_group_ids
    }
  }

  dead_letter_config {
    target_arn = aws_sqs_queue.archiver_dlq[0].arn
  }

  tracing_config {
    mode = var.enable_tracing ? "Active" : "PassThrough"
  }

  logging_config {
    log_format = "Text"
    log_group  = aws_cloudwatch_log_group.archiver_log_group[0].name
  }

  lifecycle {
    precondition {
      condition     = local.archiver_has_code
      error_message = "The archiver has no code: set release with sha256.archiver, or code_directory, or code_bucket with archiver_code_key, or set enable_audit_archival to false."
    }
  }
}

resource "aws_lambda_event_source_mapping" "archiver_event_source_mapping" {
  count = local.has_archiver ? 1 : 0

  event_source_arn                   = aws_dynamodb_table.rate_limits_table.stream_arn
  function_name                      = aws_lambda_function.archiver_function[0].arn
  enabled                            = true
  starting_position                  = upper(var.stream_start)
  batch_size                         = 100
  maximum_batching_window_in_seconds = 5
  maximum_retry_attempts             = -1
  maximum_record_age_in_seconds      = 79200
  bisect_batch_on_function_error     = true
  parallelization_factor             = 1
  function_response_types            = ["ReportBatchItemFailures"]
  tags                               = local.tags
  depends_on                         = [aws_iam_role_policy.archiver_role]

  destination_config {
    on_failure {
      destination_arn = aws_sqs_queue.archiver_dlq[0].arn
    }
  }

  filter_criteria {
    filter {
      pattern = jsonencode({
        eventName = ["INSERT"]
        dynamodb  = { Keys = { PK = { S = [{ prefix = "AUDIT#" }] } } }
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

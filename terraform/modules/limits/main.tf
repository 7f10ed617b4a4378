data "aws_caller_identity" "current" {}

data "aws_partition" "current" {}

data "aws_region" "current" {}

locals {
  iam_name             = var.regional_iam_names ? "${var.table_name}-${data.aws_region.current.id}" : var.table_name
  role_name            = replace(var.role_name_format == null ? "{}" : var.role_name_format, "{}", "${local.iam_name}-prov")
  boundary_by_name     = "arn:${data.aws_partition.current.partition}:iam::${data.aws_caller_identity.current.account_id}:policy/"
  permissions_boundary = var.permission_boundary == null ? null : (startswith(var.permission_boundary, "arn:") ? var.permission_boundary : "${local.boundary_by_name}${var.permission_boundary}")
  alarm_actions        = var.alarm_sns_topic == null ? [] : [var.alarm_sns_topic]
}

resource "aws_sqs_queue" "provisioner_dlq" {
  name                       = "${var.table_name}-provisioner-dlq"
  message_retention_seconds  = 1209600
  visibility_timeout_seconds = 300
  sqs_managed_sse_enabled    = var.kms_key_arn == null ? true : null
  kms_master_key_id          = var.kms_key_arn
  tags                       = var.tags
}

data "aws_iam_policy_document" "provisioner_dlq_policy" {
  statement {
    sid       = "TlsOnly"
    effect    = "Deny"
    actions   = ["sqs:*"]
    resources = [aws_sqs_queue.provisioner_dlq.arn]

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

resource "aws_sqs_queue_policy" "provisioner_dlq_policy" {
  queue_url = aws_sqs_queue.provisioner_dlq.url
  policy    = data.aws_iam_policy_document.provisioner_dlq_policy.json
}

resource "aws_cloudwatch_log_group" "provisioner_log_group" {
  name              = "/aws/lambda/${var.table_name}-provisioner"
  retention_in_days = var.log_retention_days
  kms_key_id        = var.kms_key_arn
  tags              = var.tags
}

data "aws_iam_policy_document" "provisioner_role_trust" {
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

resource "aws_iam_role" "provisioner_role" {
  name                 = local.role_name
  path                 = var.iam_path
  description          = "For the provisioner of the rate limiter"
  assume_role_policy   = data.aws_iam_policy_document.provisioner_role_trust.json
  permissions_boundary = local.permissions_boundary
  tags                 = var.tags

  lifecycle {
    precondition {
      condition     = length(local.role_name) <= 64
      error_message = "The name of the role must have at most 64 characters; shorten role_name_format."
    }
  }
}

data "aws_iam_policy_document" "provisioner_role" {
  statement {
    sid    = "Levels"
    effect = "Allow"
    actions = [
      "dynamodb:BatchGetItem",
      "dynamodb:DeleteItem",
      "dynamodb:GetItem",
      "dynamodb:PutItem",
      "dynamodb:Query",
      "dynamodb:UpdateItem",
    ]
    resources = [
      "arn:${data.aws_partition.current.partition}:dynamodb:${data.aws_region.current.id}:${data.aws_caller_identity.current.account_id}:table/${var.table_name}",
    ]

    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["AUDIT#*", "ENTITY#*", "RESOURCE#*", "SYSTEM#"]
    }
  }

  statement {
    sid       = "DeadLetters"
    effect    = "Allow"
    actions   = ["sqs:SendMessage"]
    resources = [aws_sqs_queue.provisioner_dlq.arn]
  }

  statement {
    sid       = "Logs"
    effect    = "Allow"
    actions   = ["logs:CreateLogStream", "logs:PutLogEvents"]
    resources = ["${aws_cloudwatch_log_group.provisioner_log_group.arn}:*"]
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

resource "aws_iam_role_policy" "provisioner_role" {
  name   = "provisioner"
  role   = aws_iam_role.provisioner_role.name
  policy = data.aws_iam_policy_document.provisioner_role.json
}

resource "aws_lambda_function" "provisioner_function" {
  function_name    = "${var.table_name}-provisioner"
  description      = "Applies limits files"
  runtime          = "provided.al2023"
  architectures    = [var.architecture]
  handler          = "bootstrap"
  filename         = var.archive
  source_code_hash = filebase64sha256(var.archive)
  role             = aws_iam_role.provisioner_role.arn
  memory_size      = 256
  timeout          = 300
  kms_key_arn      = var.kms_key_arn
  tags             = merge(var.tags, { "zae-limiter:lambda-version" = "0.1.0" })
  depends_on       = [aws_iam_role_policy.provisioner_role]

  environment {
    variables = { TABLE_NAME = var.table_name }
  }

  dynamic "vpc_config" {
    for_each = length(var.lambda_subnet_ids) > 0 ? [true] : []

    content {
      subnet_ids         = var.lambda_subnet_ids
      security_group_ids = var.lambda_security_group_ids
    }
  }

  dead_letter_config {
    target_arn = aws_sqs_queue.provisioner_dlq.arn
  }

  tracing_config {
    mode = var.enable_tracing ? "Active" : "PassThrough"
  }

  logging_config {
    log_format = "Text"
    log_group  = aws_cloudwatch_log_group.provisioner_log_group.name
  }
}

# A retry could apply a file after a newer one.
resource "aws_lambda_function_event_invoke_config" "provisioner_invocations" {
  function_name                = aws_lambda_function.provisioner_function.function_name
  qualifier                    = "$LATEST"
  maximum_event_age_in_seconds = 3600
  maximum_retry_attempts       = 0
}

# Its id tells this module from every other that applies limits to the table.
resource "terraform_data" "owner" {}

# Applies the file when it changes. On destroy, deletes what the file declared, unless another owner has taken it over.
resource "aws_lambda_invocation" "limits" {
  function_name   = aws_lambda_function.provisioner_function.function_name
  lifecycle_scope = "CRUD"
  input = jsonencode({
    Owner              = "terraform:${terraform_data.owner.id}"
    ResourceProperties = { Limits = var.limits }
  })
}

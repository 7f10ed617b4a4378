data "aws_caller_identity" "current" {}

data "aws_partition" "current" {}

data "aws_region" "current" {}

resource "aws_sqs_queue" "provisioner_dlq" {
  name                       = "${var.table_name}-provisioner-dlq"
  message_retention_seconds  = 1209600
  visibility_timeout_seconds = 300
  sqs_managed_sse_enabled    = true
  tags                       = var.tags
}

resource "aws_sqs_queue_policy" "provisioner_dlq_policy" {
  queue_url = aws_sqs_queue.provisioner_dlq.url
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Sid       = "TlsOnly"
        Effect    = "Deny"
        Principal = { AWS = "*" }
        Action    = ["sqs:*"]
        Resource  = [aws_sqs_queue.provisioner_dlq.arn]
        Condition = { Bool = { "aws:SecureTransport" = "false" } }
      },
    ]
  })
}

resource "aws_cloudwatch_log_group" "provisioner_log_group" {
  name              = "/aws/lambda/${var.table_name}-provisioner"
  retention_in_days = 30
  tags              = var.tags
}

resource "aws_iam_role" "provisioner_role" {
  name        = "${var.table_name}-prov"
  description = "For the provisioner of the rate limiter"
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Sid       = "Lambda"
        Effect    = "Allow"
        Principal = { Service = "lambda.amazonaws.com" }
        Action    = ["sts:AssumeRole"]
      },
    ]
  })
  tags = var.tags
}

resource "aws_iam_role_policy" "provisioner_role" {
  name = "provisioner"
  role = aws_iam_role.provisioner_role.name
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Sid    = "Levels"
        Effect = "Allow"
        Action = [
          "dynamodb:BatchGetItem",
          "dynamodb:DeleteItem",
          "dynamodb:GetItem",
          "dynamodb:PutItem",
          "dynamodb:Query",
          "dynamodb:UpdateItem",
        ]
        Resource = [
          "arn:${data.aws_partition.current.partition}:dynamodb:${data.aws_region.current.id}:${data.aws_caller_identity.current.account_id}:table/${var.table_name}",
        ]
        Condition = {
          "ForAllValues:StringLike" = {
            "dynamodb:LeadingKeys" = ["AUDIT#*", "ENTITY#*", "RESOURCE#*", "SYSTEM#"]
          }
        }
      },
      {
        Sid      = "DeadLetters"
        Effect   = "Allow"
        Action   = ["sqs:SendMessage"]
        Resource = [aws_sqs_queue.provisioner_dlq.arn]
      },
      {
        Sid      = "Logs"
        Effect   = "Allow"
        Action   = ["logs:CreateLogStream", "logs:PutLogEvents"]
        Resource = ["${aws_cloudwatch_log_group.provisioner_log_group.arn}:*"]
      },
    ]
  })
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
  tags             = merge(var.tags, { "zae-limiter:lambda-version" = "0.1.0" })
  depends_on       = [aws_iam_role_policy.provisioner_role]

  environment {
    variables = { TABLE_NAME = var.table_name }
  }

  dead_letter_config {
    target_arn = aws_sqs_queue.provisioner_dlq.arn
  }

  tracing_config {
    mode = "PassThrough"
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

data "aws_iam_policy_document" "acquire_only_policy" {
  count = var.create_iam ? 1 : 0

  statement {
    sid       = "Read"
    effect    = "Allow"
    actions   = ["dynamodb:BatchGetItem", "dynamodb:GetItem"]
    resources = [aws_dynamodb_table.rate_limits_table.arn]

    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["ENTITY#*", "RESOURCE#*", "SYSTEM#"]
    }
  }

  statement {
    sid       = "Consume"
    effect    = "Allow"
    actions   = ["dynamodb:UpdateItem"]
    resources = [aws_dynamodb_table.rate_limits_table.arn]

    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["ENTITY#*"]
    }

    dynamic "condition" {
      for_each = var.acquire_policy == "attributes" ? [true] : []

      content {
        test     = "ForAllValues:StringLike"
        variable = "dynamodb:Attributes"
        values = [
          "PK",
          "SK",
          "entity_id",
          "resource",
          "rf",
          "cascade",
          "parent_id",
          "ttl",
          "GSI2PK",
          "GSI2SK",
          "cf",
          "ev",
          "rj",
          "ro",
          "o_*",
          "b_*",
          "q_*",
          "c_*",
        ]
      }
    }
  }

  dynamic "statement" {
    for_each = var.kms_key_arn != null ? [true] : []

    content {
      sid       = "Key"
      effect    = "Allow"
      actions   = ["kms:Decrypt", "kms:GenerateDataKey"]
      resources = [var.kms_key_arn]

      condition {
        test     = "StringEquals"
        variable = "kms:ViaService"
        values   = ["dynamodb.${data.aws_region.current.id}.${data.aws_partition.current.dns_suffix}"]
      }
    }
  }
}

resource "aws_iam_policy" "acquire_only_policy" {
  count = var.create_iam ? 1 : 0

  name        = local.policy_names.acq
  path        = var.iam_path
  description = "Acquire, adjust and release rate limits"
  policy      = data.aws_iam_policy_document.acquire_only_policy[0].json
  tags        = local.tags

  lifecycle {
    precondition {
      condition     = length(local.policy_names.acq) <= 128
      error_message = "The name of the policy must have at most 128 characters; shorten name or policy_name_format."
    }
  }
}

data "aws_iam_policy_document" "full_access_policy" {
  count = var.create_iam ? 1 : 0

  statement {
    sid    = "Table"
    effect = "Allow"
    actions = [
      "dynamodb:BatchGetItem",
      "dynamodb:BatchWriteItem",
      "dynamodb:ConditionCheckItem",
      "dynamodb:DeleteItem",
      "dynamodb:DescribeTable",
      "dynamodb:GetItem",
      "dynamodb:PutItem",
      "dynamodb:Query",
      "dynamodb:Scan",
      "dynamodb:UpdateItem",
    ]
    resources = [aws_dynamodb_table.rate_limits_table.arn]
  }

  statement {
    sid       = "Index"
    effect    = "Allow"
    actions   = ["dynamodb:Query"]
    resources = ["${aws_dynamodb_table.rate_limits_table.arn}/index/*"]
  }

  dynamic "statement" {
    for_each = var.kms_key_arn != null ? [true] : []

    content {
      sid       = "Key"
      effect    = "Allow"
      actions   = ["kms:Decrypt", "kms:GenerateDataKey"]
      resources = [var.kms_key_arn]

      condition {
        test     = "StringEquals"
        variable = "kms:ViaService"
        values   = ["dynamodb.${data.aws_region.current.id}.${data.aws_partition.current.dns_suffix}"]
      }
    }
  }
}

resource "aws_iam_policy" "full_access_policy" {
  count = var.create_iam ? 1 : 0

  name        = local.policy_names.full
  path        = var.iam_path
  description = "Full access to the data of the rate limiter's table"
  policy      = data.aws_iam_policy_document.full_access_policy[0].json
  tags        = local.tags

  lifecycle {
    precondition {
      condition     = length(local.policy_names.full) <= 128
      error_message = "The name of the policy must have at most 128 characters; shorten name or policy_name_format."
    }
  }
}

data "aws_iam_policy_document" "read_only_policy" {
  count = var.create_iam ? 1 : 0

  statement {
    sid    = "Table"
    effect = "Allow"
    actions = [
      "dynamodb:BatchGetItem",
      "dynamodb:DescribeTable",
      "dynamodb:GetItem",
      "dynamodb:Query",
      "dynamodb:Scan",
    ]
    resources = [aws_dynamodb_table.rate_limits_table.arn]
  }

  statement {
    sid       = "Index"
    effect    = "Allow"
    actions   = ["dynamodb:Query"]
    resources = ["${aws_dynamodb_table.rate_limits_table.arn}/index/*"]
  }

  statement {
    sid     = "Stack"
    effect  = "Allow"
    actions = ["cloudformation:DescribeStacks", "cloudformation:GetTemplate"]
    resources = [
      "arn:${data.aws_partition.current.partition}:cloudformation:${data.aws_region.current.id}:${data.aws_caller_identity.current.account_id}:stack/${aws_dynamodb_table.rate_limits_table.name}/*",
    ]
  }

  statement {
    sid     = "DeadLetters"
    effect  = "Allow"
    actions = ["sqs:GetQueueAttributes", "sqs:GetQueueUrl"]
    resources = [
      "arn:${data.aws_partition.current.partition}:sqs:${data.aws_region.current.id}:${data.aws_caller_identity.current.account_id}:${aws_dynamodb_table.rate_limits_table.name}-*-dlq",
    ]
  }

  statement {
    sid       = "Functions"
    effect    = "Allow"
    actions   = ["cloudwatch:GetMetricStatistics", "lambda:ListEventSourceMappings"]
    resources = ["*"]
  }

  dynamic "statement" {
    for_each = var.kms_key_arn != null ? [true] : []

    content {
      sid       = "Key"
      effect    = "Allow"
      actions   = ["kms:Decrypt", "kms:GenerateDataKey"]
      resources = [var.kms_key_arn]

      condition {
        test     = "StringEquals"
        variable = "kms:ViaService"
        values   = ["dynamodb.${data.aws_region.current.id}.${data.aws_partition.current.dns_suffix}"]
      }
    }
  }
}

resource "aws_iam_policy" "read_only_policy" {
  count = var.create_iam ? 1 : 0

  name        = local.policy_names.read
  path        = var.iam_path
  description = "Read limits, buckets, usage and audit events"
  policy      = data.aws_iam_policy_document.read_only_policy[0].json
  tags        = local.tags

  lifecycle {
    precondition {
      condition     = length(local.policy_names.read) <= 128
      error_message = "The name of the policy must have at most 128 characters; shorten name or policy_name_format."
    }
  }
}

data "aws_iam_policy_document" "app_role_trust" {
  count = var.create_iam && var.create_iam_roles ? 1 : 0

  statement {
    sid     = "Account"
    effect  = "Allow"
    actions = ["sts:AssumeRole"]

    principals {
      type = "AWS"
      identifiers = [
        "arn:${data.aws_partition.current.partition}:iam::${data.aws_caller_identity.current.account_id}:root",
      ]
    }
  }

  dynamic "statement" {
    for_each = length(var.trusted_accounts) > 0 ? [true] : []

    content {
      sid     = "OtherAccounts"
      effect  = "Allow"
      actions = ["sts:AssumeRole"]

      principals {
        type        = "AWS"
        identifiers = [for account in var.trusted_accounts : "arn:${data.aws_partition.current.partition}:iam::${account}:root"]
      }
    }
  }
}

resource "aws_iam_role" "app_role" {
  count = var.create_iam && var.create_iam_roles ? 1 : 0

  name                 = local.role_names.app
  path                 = var.iam_path
  description          = "For applications that acquire rate limits"
  assume_role_policy   = data.aws_iam_policy_document.app_role_trust[0].json
  permissions_boundary = local.permissions_boundary
  tags                 = local.tags

  lifecycle {
    precondition {
      condition     = length(local.role_names.app) <= 64
      error_message = "The name of the role must have at most 64 characters; shorten name or role_name_format."
    }
  }
}

resource "aws_iam_role_policy_attachment" "app_role" {
  count = var.create_iam && var.create_iam_roles ? 1 : 0

  role       = aws_iam_role.app_role[0].name
  policy_arn = aws_iam_policy.acquire_only_policy[0].arn
}

data "aws_iam_policy_document" "account_trust" {
  count = var.create_iam && var.create_iam_roles ? 1 : 0

  statement {
    sid     = "Account"
    effect  = "Allow"
    actions = ["sts:AssumeRole"]

    principals {
      type = "AWS"
      identifiers = [
        "arn:${data.aws_partition.current.partition}:iam::${data.aws_caller_identity.current.account_id}:root",
      ]
    }
  }
}

resource "aws_iam_role" "admin_role" {
  count = var.create_iam && var.create_iam_roles ? 1 : 0

  name                 = local.role_names.admin
  path                 = var.iam_path
  description          = "For administrators of the rate limiter"
  assume_role_policy   = data.aws_iam_policy_document.account_trust[0].json
  permissions_boundary = local.permissions_boundary
  tags                 = local.tags

  lifecycle {
    precondition {
      condition     = length(local.role_names.admin) <= 64
      error_message = "The name of the role must have at most 64 characters; shorten name or role_name_format."
    }
  }
}

resource "aws_iam_role_policy_attachment" "admin_role" {
  count = var.create_iam && var.create_iam_roles ? 1 : 0

  role       = aws_iam_role.admin_role[0].name
  policy_arn = aws_iam_policy.full_access_policy[0].arn
}

resource "aws_iam_role" "read_only_role" {
  count = var.create_iam && var.create_iam_roles ? 1 : 0

  name                 = local.role_names.read
  path                 = var.iam_path
  description          = "For readers of limits and usage"
  assume_role_policy   = data.aws_iam_policy_document.account_trust[0].json
  permissions_boundary = local.permissions_boundary
  tags                 = local.tags

  lifecycle {
    precondition {
      condition     = length(local.role_names.read) <= 64
      error_message = "The name of the role must have at most 64 characters; shorten name or role_name_format."
    }
  }
}

resource "aws_iam_role_policy_attachment" "read_only_role" {
  count = var.create_iam && var.create_iam_roles ? 1 : 0

  role       = aws_iam_role.read_only_role[0].name
  policy_arn = aws_iam_policy.read_only_policy[0].arn
}

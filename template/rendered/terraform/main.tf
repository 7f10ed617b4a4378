data "aws_caller_identity" "current" {}

data "aws_partition" "current" {}

data "aws_region" "current" {}

locals {
  iam_name               = var.regional_iam_names ? "${var.name}-${data.aws_region.current.id}" : var.name
  role_name_format       = var.role_name_format == null ? "{}" : var.role_name_format
  policy_name_format     = var.policy_name_format == null ? "{}" : var.policy_name_format
  boundary_by_name       = "arn:${data.aws_partition.current.partition}:iam::${data.aws_caller_identity.current.account_id}:policy/"
  permissions_boundary   = var.permission_boundary == null ? null : (startswith(var.permission_boundary, "arn:") ? var.permission_boundary : "${local.boundary_by_name}${var.permission_boundary}")
  alarm_actions          = var.alarm_sns_topic == null ? [] : [var.alarm_sns_topic]
  creates_archive_bucket = local.has_archiver && var.archive_bucket == null
  archive_bucket_name    = var.archive_bucket != null ? var.archive_bucket : one(aws_s3_bucket.audit_archive_bucket[*].bucket)
  archive_bucket_arn     = var.archive_bucket != null ? "arn:${data.aws_partition.current.partition}:s3:::${var.archive_bucket}" : one(aws_s3_bucket.audit_archive_bucket[*].arn)
  tags = merge(var.tags, {
    ManagedBy                    = "terraform"
    "zae-limiter:name"           = var.name
    "zae-limiter:version"        = "0.1.0"
    "zae-limiter:schema-version" = "0.8.0"
    "zae-limiter:lambda-version" = "0.1.0"
    "zae-limiter:type"           = "limiter"
  })
}

locals {
  has_aggregator           = var.enable_aggregator && (var.create_iam || var.aggregator_role_arn != null)
  creates_aggregator_role  = local.has_aggregator && var.aggregator_role_arn == null
  aggregator_role_arn      = var.aggregator_role_arn != null ? var.aggregator_role_arn : one(aws_iam_role.aggregator_role[*].arn)
  aggregator_function_name = length(var.name) > 53 ? "${var.name}-aggr" : "${var.name}-aggregator"
  aggregator_directory     = var.code_directory == null ? null : "${var.code_directory}/aggregator.zip"
  aggregator_archive       = var.release == null ? local.aggregator_directory : "${path.root}/.terraform/zae-limiter/${var.release.sha256.aggregator}.zip"
  uploads_aggregator       = local.has_aggregator && var.code_bucket != null && var.aggregator_code_key == null
  downloads_aggregator     = local.has_aggregator && var.release != null && var.aggregator_code_key == null
}

locals {
  has_archiver           = var.enable_audit_archival && (var.create_iam || var.archiver_role_arn != null)
  creates_archiver_role  = local.has_archiver && var.archiver_role_arn == null
  archiver_role_arn      = var.archiver_role_arn != null ? var.archiver_role_arn : one(aws_iam_role.archiver_role[*].arn)
  archiver_function_name = length(var.name) > 55 ? "${var.name}-arch" : "${var.name}-archiver"
  archiver_directory     = var.code_directory == null ? null : "${var.code_directory}/archiver.zip"
  archiver_archive       = var.release == null ? local.archiver_directory : "${path.root}/.terraform/zae-limiter/${var.release.sha256.archiver}.zip"
  uploads_archiver       = local.has_archiver && var.code_bucket != null && var.archiver_code_key == null
  downloads_archiver     = local.has_archiver && var.release != null && var.archiver_code_key == null
}

# CloudFormation retains the table; here it cannot be destroyed. The README says how to remove it.
resource "aws_dynamodb_table" "rate_limits_table" {
  name                        = var.name
  billing_mode                = "PAY_PER_REQUEST"
  hash_key                    = "PK"
  range_key                   = "SK"
  stream_enabled              = true
  stream_view_type            = "NEW_AND_OLD_IMAGES"
  deletion_protection_enabled = var.enable_deletion_protection
  tags                        = merge(local.tags, { Application = "zae-limiter" })

  attribute {
    name = "PK"
    type = "S"
  }

  attribute {
    name = "SK"
    type = "S"
  }

  attribute {
    name = "GSI1PK"
    type = "S"
  }

  attribute {
    name = "GSI1SK"
    type = "S"
  }

  attribute {
    name = "GSI2PK"
    type = "S"
  }

  attribute {
    name = "GSI2SK"
    type = "S"
  }

  attribute {
    name = "GSI3PK"
    type = "S"
  }

  attribute {
    name = "GSI3SK"
    type = "S"
  }

  global_secondary_index {
    name            = "GSI1"
    hash_key        = "GSI1PK"
    range_key       = "GSI1SK"
    projection_type = "ALL"
  }

  global_secondary_index {
    name            = "GSI2"
    hash_key        = "GSI2PK"
    range_key       = "GSI2SK"
    projection_type = var.gsi2_projection == "all" ? "ALL" : "KEYS_ONLY"
  }

  global_secondary_index {
    name            = "GSI3"
    hash_key        = "GSI3PK"
    range_key       = "GSI3SK"
    projection_type = "KEYS_ONLY"
  }

  ttl {
    attribute_name = "ttl"
    enabled        = true
  }

  point_in_time_recovery {
    enabled                 = true
    recovery_period_in_days = var.pitr_recovery_days
  }

  dynamic "server_side_encryption" {
    for_each = var.kms_key_arn == null ? [] : [var.kms_key_arn]

    content {
      enabled     = true
      kms_key_arn = server_side_encryption.value
    }
  }

  lifecycle {
    prevent_destroy = true

    precondition {
      condition     = !var.create_iam_roles || var.create_iam
      error_message = "create_iam_roles must be false when create_iam is false."
    }

    precondition {
      condition     = var.archive_bucket == null || var.audit_archive_object_lock_days == null
      error_message = "audit_archive_object_lock_days must not be set together with archive_bucket, which the module leaves as it is."
    }

    precondition {
      condition     = var.code_bucket != null || (var.aggregator_code_key == null && var.archiver_code_key == null)
      error_message = "aggregator_code_key and archiver_code_key need code_bucket, the bucket that has them."
    }
  }
}

resource "aws_dynamodb_contributor_insights" "rate_limits_table" {
  count = var.enable_contributor_insights ? 1 : 0

  table_name = aws_dynamodb_table.rate_limits_table.name
}

# Clients write this record if it is missing, and update it: it is written once, and left alone.
resource "aws_dynamodb_table_item" "version" {
  count = var.write_version_record ? 1 : 0

  table_name = aws_dynamodb_table.rate_limits_table.name
  hash_key   = aws_dynamodb_table.rate_limits_table.hash_key
  range_key  = aws_dynamodb_table.rate_limits_table.range_key
  item = jsonencode({
    PK                 = { S = "SYSTEM#" }
    SK                 = { S = "#VERSION" }
    client_min_version = { S = "0.0.0" }
    lambda_version     = { NULL = true }
    schema_version     = { S = "0.8.0" }
    updated_at         = { S = timestamp() }
    updated_by         = { S = "terraform:0.1.0" }
  })

  lifecycle {
    prevent_destroy = true
    ignore_changes  = [item]
  }
}

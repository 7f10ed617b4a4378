locals {
  has_maximum          = var.max_read_request_units != null || var.max_write_request_units != null
  on_demand_throughput = local.has_maximum ? [{ reads = var.max_read_request_units, writes = var.max_write_request_units }] : []
}

# CloudFormation retains the table; here it cannot be destroyed. The README says how to remove it.
resource "aws_dynamodb_table" "rate_limits_table" {
  name                        = var.name
  billing_mode                = "PAY_PER_REQUEST"
  hash_key                    = "PK"
  range_key                   = "SK"
  stream_enabled              = true
  stream_view_type            = "NEW_AND_OLD_IMAGES"
  table_class                 = var.table_class == "standard" ? null : "STANDARD_INFREQUENT_ACCESS"
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
    projection_type = "ALL"

    key_schema {
      attribute_name = "GSI1PK"
      key_type       = "HASH"
    }

    key_schema {
      attribute_name = "GSI1SK"
      key_type       = "RANGE"
    }

    dynamic "on_demand_throughput" {
      for_each = local.on_demand_throughput

      content {
        max_read_request_units  = on_demand_throughput.value.reads
        max_write_request_units = on_demand_throughput.value.writes
      }
    }
  }

  global_secondary_index {
    name            = "GSI2"
    projection_type = var.gsi2_projection == "all" ? "ALL" : "KEYS_ONLY"

    key_schema {
      attribute_name = "GSI2PK"
      key_type       = "HASH"
    }

    key_schema {
      attribute_name = "GSI2SK"
      key_type       = "RANGE"
    }

    dynamic "on_demand_throughput" {
      for_each = local.on_demand_throughput

      content {
        max_read_request_units  = on_demand_throughput.value.reads
        max_write_request_units = on_demand_throughput.value.writes
      }
    }
  }

  global_secondary_index {
    name            = "GSI3"
    projection_type = "KEYS_ONLY"

    key_schema {
      attribute_name = "GSI3PK"
      key_type       = "HASH"
    }

    key_schema {
      attribute_name = "GSI3SK"
      key_type       = "RANGE"
    }

    dynamic "on_demand_throughput" {
      for_each = local.on_demand_throughput

      content {
        max_read_request_units  = on_demand_throughput.value.reads
        max_write_request_units = on_demand_throughput.value.writes
      }
    }
  }

  ttl {
    attribute_name = "ttl"
    enabled        = true
  }

  point_in_time_recovery {
    enabled                 = true
    recovery_period_in_days = var.pitr_recovery_days
  }

  dynamic "on_demand_throughput" {
    for_each = local.on_demand_throughput

    content {
      max_read_request_units  = on_demand_throughput.value.reads
      max_write_request_units = on_demand_throughput.value.writes
    }
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
      condition     = length(var.trusted_accounts) == 0 || var.create_iam_roles
      error_message = "trusted_accounts need create_iam_roles: these accounts assume the role for applications."
    }

    precondition {
      condition     = (length(var.lambda_subnet_ids) > 0) == (length(var.lambda_security_group_ids) > 0)
      error_message = "lambda_subnet_ids must be set together with lambda_security_group_ids, or neither."
    }

    precondition {
      condition     = var.archive_bucket == null || var.audit_archive_object_lock_days == null
      error_message = "audit_archive_object_lock_days must not be set together with archive_bucket, which the module leaves as it is."
    }

    precondition {
      condition     = var.archive_bucket == null || var.archive_bucket_name == null
      error_message = "archive_bucket_name must not be set together with archive_bucket, which the module leaves as it is."
    }

    # `make functions` and releases have one directory per processor.
    precondition {
      condition     = var.code_directory == null ? true : !contains(["x86_64", "arm64"], basename(var.code_directory)) || basename(var.code_directory) == var.lambda_architecture
      error_message = "code_directory has archives for another processor; set lambda_architecture to the name of the directory."
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

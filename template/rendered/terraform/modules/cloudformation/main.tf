terraform {
  required_version = ">= 1.5"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.80, < 7"
    }
  }
}

resource "aws_s3_object" "aggregator" {
  bucket      = var.code_bucket
  key         = "${var.name}/${filesha256(var.aggregator_zip)}.zip"
  source      = var.aggregator_zip
  source_hash = filebase64sha256(var.aggregator_zip)

  # An update that is rolled back needs the archive it rolls back to.
  lifecycle {
    create_before_destroy = true
  }
}

resource "aws_s3_object" "archiver" {
  bucket      = var.code_bucket
  key         = "${var.name}/${filesha256(var.archiver_zip)}.zip"
  source      = var.archiver_zip
  source_hash = filebase64sha256(var.archiver_zip)

  # An update that is rolled back needs the archive it rolls back to.
  lifecycle {
    create_before_destroy = true
  }
}

resource "aws_cloudformation_stack" "limiter" {
  name              = var.name
  template_body     = file("${path.module}/template.json")
  capabilities      = ["CAPABILITY_NAMED_IAM"]
  notification_arns = var.notification_arns

  parameters = {
    CodeBucket        = var.code_bucket
    AggregatorCodeKey = aws_s3_object.aggregator.key
    ArchiverCodeKey   = aws_s3_object.archiver.key
  }

  tags = merge(var.tags, {
    "ManagedBy"                  = "zae-limiter"
    "zae-limiter:name"           = var.name
    "zae-limiter:version"        = "0.1.0"
    "zae-limiter:schema-version" = "0.8.0"
    "zae-limiter:lambda-version" = "0.1.0"
    "zae-limiter:type"           = "limiter"
  })
}

# A client writes this record too if it is missing, so it is left alone once it is there.
resource "aws_dynamodb_table_item" "version" {
  count = var.write_version_record ? 1 : 0

  table_name = aws_cloudformation_stack.limiter.outputs["TableName"]
  hash_key   = "PK"
  range_key  = "SK"

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
    ignore_changes = [item]
  }
}

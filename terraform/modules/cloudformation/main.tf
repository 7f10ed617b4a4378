locals {
  body     = file("${path.module}/template.json")
  template = jsondecode(local.body)

  # A template without functions takes no parameters.
  taken = keys(lookup(local.template, "Parameters", {}))
  parameters = {
    CodeBucket        = var.code_bucket
    AggregatorCodeKey = one(aws_s3_object.aggregator[*].key)
    ArchiverCodeKey   = one(aws_s3_object.archiver[*].key)
  }

  # CloudFormation takes a larger template from a bucket only.
  is_large = length(local.body) > 51200
}

data "aws_partition" "current" {}

data "aws_region" "current" {}

resource "aws_s3_object" "aggregator" {
  count = contains(local.taken, "AggregatorCodeKey") ? 1 : 0

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
  count = contains(local.taken, "ArchiverCodeKey") ? 1 : 0

  bucket      = var.code_bucket
  key         = "${var.name}/${filesha256(var.archiver_zip)}.zip"
  source      = var.archiver_zip
  source_hash = filebase64sha256(var.archiver_zip)

  lifecycle {
    create_before_destroy = true
  }
}

resource "aws_s3_object" "template" {
  count = local.is_large ? 1 : 0

  bucket  = var.code_bucket
  key     = "${var.name}/${sha256(local.body)}.json"
  content = local.body

  lifecycle {
    create_before_destroy = true
  }
}

resource "aws_cloudformation_stack" "limiter" {
  name              = var.name
  template_body     = local.is_large ? null : local.body
  template_url      = local.is_large ? "https://s3.${data.aws_region.current.id}.${data.aws_partition.current.dns_suffix}/${var.code_bucket}/${aws_s3_object.template[0].key}" : null
  capabilities      = ["CAPABILITY_NAMED_IAM"]
  notification_arns = var.notification_arns
  parameters        = { for name, value in local.parameters : name => value if contains(local.taken, name) }

  tags = merge(var.tags, {
    ManagedBy                    = "zae-limiter"
    "zae-limiter:name"           = var.name
    "zae-limiter:version"        = "0.1.0"
    "zae-limiter:schema-version" = "0.8.0"
    "zae-limiter:lambda-version" = "0.1.0"
    "zae-limiter:type"           = "limiter"
  })
}

# Clients write this record if it is missing, and update it: it is written once, and left alone. It stays with the table,
# which the stack retains; the README says how to remove the module.
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
    prevent_destroy = true
    ignore_changes  = [item]
  }
}

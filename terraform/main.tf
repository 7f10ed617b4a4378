data "aws_caller_identity" "current" {}

data "aws_partition" "current" {}

data "aws_region" "current" {}

locals {
  # One directory per name. Calls of one name, in several regions, replace each file by an equal one.
  downloads = "${path.root}/.terraform/zae-limiter/${var.name}"

  iam_name = var.regional_iam_names ? "${var.name}-${data.aws_region.current.id}" : var.name
  role_names = {
    for component in ["aggr", "arch", "app", "admin", "read"] :
    component => replace(var.role_name_format == null ? "{}" : var.role_name_format, "{}", "${local.iam_name}-${component}")
  }
  policy_names = {
    for component in ["acq", "full", "read"] :
    component => replace(var.policy_name_format == null ? "{}" : var.policy_name_format, "{}", "${local.iam_name}-${component}")
  }
  boundary_by_name     = "arn:${data.aws_partition.current.partition}:iam::${data.aws_caller_identity.current.account_id}:policy/"
  permissions_boundary = var.permission_boundary == null ? null : (startswith(var.permission_boundary, "arn:") ? var.permission_boundary : "${local.boundary_by_name}${var.permission_boundary}")
  alarm_actions        = var.alarm_sns_topic == null ? [] : [var.alarm_sns_topic]
  tags = merge(var.tags, {
    ManagedBy                    = "terraform"
    "zae-limiter:name"           = var.name
    "zae-limiter:version"        = "0.1.0"
    "zae-limiter:schema-version" = "0.8.0"
    "zae-limiter:lambda-version" = "0.1.0"
    "zae-limiter:type"           = "limiter"
  })
}

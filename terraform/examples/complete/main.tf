provider "aws" {
  region = var.region
}

module "limiter" {
  source = "../.."

  name                           = "limiter"
  release                        = var.release
  snapshot_windows               = ["hourly", "daily"]
  usage_retention_days           = 90
  audit_retention_days           = 90
  enable_aggregator              = true
  aggregator_parallelization     = 1
  event_bus                      = "default"
  stream_start                   = "trim_horizon"
  gsi2_projection                = "keys"
  table_class                    = "standard"
  max_read_request_units         = 10000
  max_write_request_units        = 10000
  pitr_recovery_days             = 14
  enable_deletion_protection     = true
  enable_contributor_insights    = true
  kms_key_arn                    = var.kms_key_arn
  log_retention_days             = 30
  lambda_timeout                 = 60
  lambda_memory                  = 256
  lambda_architecture            = "x86_64"
  lambda_reserved_concurrency    = 10
  lambda_subnet_ids              = ["subnet-0a1b2c3d4e5f60718"]
  lambda_security_group_ids      = ["sg-0a1b2c3d4e5f60718"]
  enable_tracing                 = true
  enable_alarms                  = true
  alarm_sns_topic                = var.alarm_sns_topic
  lambda_duration_threshold_pct  = 80
  alarm_error_rate_pct           = 1
  alarm_iterator_age_seconds     = 30
  alarm_throttled_requests       = 1
  enable_dashboard               = true
  create_iam                     = true
  create_iam_roles               = true
  trusted_accounts               = ["210987654321"]
  iam_path                       = "/limiter/"
  permission_boundary            = "company-boundary"
  role_name_format               = "company-{}"
  policy_name_format             = "company-{}"
  regional_iam_names             = false
  acquire_policy                 = "keys"
  aggregator_role_arn            = var.aggregator_role_arn
  archiver_role_arn              = var.archiver_role_arn
  enable_audit_archival          = true
  audit_archive_glacier_days     = 90
  audit_archive_object_lock_days = 365
  audit_archive_object_lock_mode = "governance"
  tags                           = { team = "platform" }
  write_version_record           = true
}

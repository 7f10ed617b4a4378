output "table_name" {
  description = "Name of the table."
  value       = aws_dynamodb_table.rate_limits_table.name
}

output "table_arn" {
  description = "ARN of the table."
  value       = aws_dynamodb_table.rate_limits_table.arn
}

output "stream_arn" {
  description = "ARN of the table's stream."
  value       = aws_dynamodb_table.rate_limits_table.stream_arn
}

output "audit_retention_days" {
  description = "Days to keep audit events in the table."
  value       = tostring(var.audit_retention_days)
}

output "aggregator_function_arn" {
  description = "ARN of the aggregator."
  value       = one(aws_lambda_function.aggregator_function[*].arn)
}

output "aggregator_function_name" {
  description = "Name of the aggregator."
  value       = one(aws_lambda_function.aggregator_function[*].function_name)
}

output "aggregator_role_arn" {
  description = "ARN of the role that the aggregator runs as."
  value       = local.aggregator_role_arn
}

output "aggregator_dlq_url" {
  description = "URL of the dead-letter queue of the aggregator."
  value       = one(aws_sqs_queue.aggregator_dlq[*].url)
}

output "aggregator_dlq_arn" {
  description = "ARN of the dead-letter queue of the aggregator."
  value       = one(aws_sqs_queue.aggregator_dlq[*].arn)
}

output "archiver_function_arn" {
  description = "ARN of the archiver."
  value       = one(aws_lambda_function.archiver_function[*].arn)
}

output "archiver_function_name" {
  description = "Name of the archiver."
  value       = one(aws_lambda_function.archiver_function[*].function_name)
}

output "archiver_role_arn" {
  description = "ARN of the role that the archiver runs as."
  value       = local.archiver_role_arn
}

output "archiver_dlq_url" {
  description = "URL of the dead-letter queue of the archiver."
  value       = one(aws_sqs_queue.archiver_dlq[*].url)
}

output "archiver_dlq_arn" {
  description = "ARN of the dead-letter queue of the archiver."
  value       = one(aws_sqs_queue.archiver_dlq[*].arn)
}

output "aggregator_dlq_alarm_name" {
  description = "Name of the alarm."
  value       = one(aws_cloudwatch_metric_alarm.aggregator_dlq_alarm[*].alarm_name)
}

output "lambda_error_rate_alarm_name" {
  description = "Name of the alarm."
  value       = one(aws_cloudwatch_metric_alarm.lambda_error_rate_alarm[*].alarm_name)
}

output "lambda_duration_alarm_name" {
  description = "Name of the alarm."
  value       = one(aws_cloudwatch_metric_alarm.lambda_duration_alarm[*].alarm_name)
}

output "stream_iterator_age_alarm_name" {
  description = "Name of the alarm."
  value       = one(aws_cloudwatch_metric_alarm.stream_iterator_age_alarm[*].alarm_name)
}

output "aggregator_throttle_alarm_name" {
  description = "Name of the alarm."
  value       = one(aws_cloudwatch_metric_alarm.aggregator_throttle_alarm[*].alarm_name)
}

output "aggregator_destination_alarm_name" {
  description = "Name of the alarm."
  value       = one(aws_cloudwatch_metric_alarm.aggregator_destination_alarm[*].alarm_name)
}

output "aggregator_stopped_alarm_name" {
  description = "Name of the alarm."
  value       = one(aws_cloudwatch_metric_alarm.aggregator_stopped_alarm[*].alarm_name)
}

output "aggregator_failed_events_alarm_name" {
  description = "Name of the alarm."
  value       = one(aws_cloudwatch_metric_alarm.aggregator_failed_events_alarm[*].alarm_name)
}

output "archiver_dlq_alarm_name" {
  description = "Name of the alarm."
  value       = one(aws_cloudwatch_metric_alarm.archiver_dlq_alarm[*].alarm_name)
}

output "archiver_error_rate_alarm_name" {
  description = "Name of the alarm."
  value       = one(aws_cloudwatch_metric_alarm.archiver_error_rate_alarm[*].alarm_name)
}

output "archiver_duration_alarm_name" {
  description = "Name of the alarm."
  value       = one(aws_cloudwatch_metric_alarm.archiver_duration_alarm[*].alarm_name)
}

output "archiver_iterator_age_alarm_name" {
  description = "Name of the alarm."
  value       = one(aws_cloudwatch_metric_alarm.archiver_iterator_age_alarm[*].alarm_name)
}

output "archiver_throttle_alarm_name" {
  description = "Name of the alarm."
  value       = one(aws_cloudwatch_metric_alarm.archiver_throttle_alarm[*].alarm_name)
}

output "archiver_destination_alarm_name" {
  description = "Name of the alarm."
  value       = one(aws_cloudwatch_metric_alarm.archiver_destination_alarm[*].alarm_name)
}

output "archiver_stopped_alarm_name" {
  description = "Name of the alarm."
  value       = one(aws_cloudwatch_metric_alarm.archiver_stopped_alarm[*].alarm_name)
}

output "archiver_failed_events_alarm_name" {
  description = "Name of the alarm."
  value       = one(aws_cloudwatch_metric_alarm.archiver_failed_events_alarm[*].alarm_name)
}

output "dynamodb_read_throttle_alarm_name" {
  description = "Name of the alarm."
  value       = one(aws_cloudwatch_metric_alarm.dynamodb_read_throttle_alarm[*].alarm_name)
}

output "dynamodb_write_throttle_alarm_name" {
  description = "Name of the alarm."
  value       = one(aws_cloudwatch_metric_alarm.dynamodb_write_throttle_alarm[*].alarm_name)
}

output "gsi1_read_throttle_alarm_name" {
  description = "Name of the alarm."
  value       = one(aws_cloudwatch_metric_alarm.gsi1_read_throttle_alarm[*].alarm_name)
}

output "gsi1_write_throttle_alarm_name" {
  description = "Name of the alarm."
  value       = one(aws_cloudwatch_metric_alarm.gsi1_write_throttle_alarm[*].alarm_name)
}

output "gsi2_read_throttle_alarm_name" {
  description = "Name of the alarm."
  value       = one(aws_cloudwatch_metric_alarm.gsi2_read_throttle_alarm[*].alarm_name)
}

output "gsi2_write_throttle_alarm_name" {
  description = "Name of the alarm."
  value       = one(aws_cloudwatch_metric_alarm.gsi2_write_throttle_alarm[*].alarm_name)
}

output "gsi3_read_throttle_alarm_name" {
  description = "Name of the alarm."
  value       = one(aws_cloudwatch_metric_alarm.gsi3_read_throttle_alarm[*].alarm_name)
}

output "gsi3_write_throttle_alarm_name" {
  description = "Name of the alarm."
  value       = one(aws_cloudwatch_metric_alarm.gsi3_write_throttle_alarm[*].alarm_name)
}

output "dashboard_name" {
  description = "Name of the dashboard."
  value       = one(aws_cloudwatch_dashboard.dashboard[*].dashboard_name)
}

output "audit_archive_bucket_name" {
  description = "Bucket with archived audit events."
  value       = local.archive_bucket_name
}

output "audit_archive_bucket_arn" {
  description = "ARN of the bucket with archived audit events."
  value       = local.archive_bucket_arn
}

output "acquire_only_policy_arn" {
  description = "ARN of the policy for applications that acquire."
  value       = one(aws_iam_policy.acquire_only_policy[*].arn)
}

output "full_access_policy_arn" {
  description = "ARN of the policy for administrators."
  value       = one(aws_iam_policy.full_access_policy[*].arn)
}

output "read_only_policy_arn" {
  description = "ARN of the policy for readers."
  value       = one(aws_iam_policy.read_only_policy[*].arn)
}

output "app_role_arn" {
  description = "ARN of the role of applications."
  value       = one(aws_iam_role.app_role[*].arn)
}

output "app_role_name" {
  description = "Name of the role of applications."
  value       = one(aws_iam_role.app_role[*].name)
}

output "admin_role_arn" {
  description = "ARN of the role of administrators."
  value       = one(aws_iam_role.admin_role[*].arn)
}

output "admin_role_name" {
  description = "Name of the role of administrators."
  value       = one(aws_iam_role.admin_role[*].name)
}

output "read_only_role_arn" {
  description = "ARN of the role of readers."
  value       = one(aws_iam_role.read_only_role[*].arn)
}

output "read_only_role_name" {
  description = "Name of the role of readers."
  value       = one(aws_iam_role.read_only_role[*].name)
}

output "table_name" {
  description = "Name of the table."
  value       = lookup(aws_cloudformation_stack.limiter.outputs, "TableName", null)
}

output "table_arn" {
  description = "ARN of the table."
  value       = lookup(aws_cloudformation_stack.limiter.outputs, "TableArn", null)
}

output "stream_arn" {
  description = "ARN of the table's stream."
  value       = lookup(aws_cloudformation_stack.limiter.outputs, "StreamArn", null)
}

output "audit_retention_days" {
  description = "Days to keep audit events in the table."
  value       = lookup(aws_cloudformation_stack.limiter.outputs, "AuditRetentionDays", null)
}

output "aggregator_function_arn" {
  description = "ARN of the aggregator."
  value       = lookup(aws_cloudformation_stack.limiter.outputs, "AggregatorFunctionArn", null)
}

output "aggregator_function_name" {
  description = "Name of the aggregator."
  value       = lookup(aws_cloudformation_stack.limiter.outputs, "AggregatorFunctionName", null)
}

output "aggregator_role_arn" {
  description = "ARN of the role that the aggregator runs as."
  value       = lookup(aws_cloudformation_stack.limiter.outputs, "AggregatorRoleArn", null)
}

output "aggregator_dlq_url" {
  description = "URL of the dead-letter queue of the aggregator."
  value       = lookup(aws_cloudformation_stack.limiter.outputs, "AggregatorDLQUrl", null)
}

output "aggregator_dlq_arn" {
  description = "ARN of the dead-letter queue of the aggregator."
  value       = lookup(aws_cloudformation_stack.limiter.outputs, "AggregatorDLQArn", null)
}

output "archiver_function_arn" {
  description = "ARN of the archiver."
  value       = lookup(aws_cloudformation_stack.limiter.outputs, "ArchiverFunctionArn", null)
}

output "archiver_function_name" {
  description = "Name of the archiver."
  value       = lookup(aws_cloudformation_stack.limiter.outputs, "ArchiverFunctionName", null)
}

output "archiver_role_arn" {
  description = "ARN of the role that the archiver runs as."
  value       = lookup(aws_cloudformation_stack.limiter.outputs, "ArchiverRoleArn", null)
}

output "archiver_dlq_url" {
  description = "URL of the dead-letter queue of the archiver."
  value       = lookup(aws_cloudformation_stack.limiter.outputs, "ArchiverDLQUrl", null)
}

output "archiver_dlq_arn" {
  description = "ARN of the dead-letter queue of the archiver."
  value       = lookup(aws_cloudformation_stack.limiter.outputs, "ArchiverDLQArn", null)
}

output "aggregator_dlq_alarm_name" {
  description = "Name of the alarm."
  value       = lookup(aws_cloudformation_stack.limiter.outputs, "AggregatorDLQAlarmName", null)
}

output "lambda_error_rate_alarm_name" {
  description = "Name of the alarm."
  value       = lookup(aws_cloudformation_stack.limiter.outputs, "LambdaErrorRateAlarmName", null)
}

output "lambda_duration_alarm_name" {
  description = "Name of the alarm."
  value       = lookup(aws_cloudformation_stack.limiter.outputs, "LambdaDurationAlarmName", null)
}

output "stream_iterator_age_alarm_name" {
  description = "Name of the alarm."
  value       = lookup(aws_cloudformation_stack.limiter.outputs, "StreamIteratorAgeAlarmName", null)
}

output "aggregator_throttle_alarm_name" {
  description = "Name of the alarm."
  value       = lookup(aws_cloudformation_stack.limiter.outputs, "AggregatorThrottleAlarmName", null)
}

output "aggregator_destination_alarm_name" {
  description = "Name of the alarm."
  value       = lookup(aws_cloudformation_stack.limiter.outputs, "AggregatorDestinationAlarmName", null)
}

output "aggregator_stopped_alarm_name" {
  description = "Name of the alarm."
  value       = lookup(aws_cloudformation_stack.limiter.outputs, "AggregatorStoppedAlarmName", null)
}

output "aggregator_failed_events_alarm_name" {
  description = "Name of the alarm."
  value       = lookup(aws_cloudformation_stack.limiter.outputs, "AggregatorFailedEventsAlarmName", null)
}

output "archiver_dlq_alarm_name" {
  description = "Name of the alarm."
  value       = lookup(aws_cloudformation_stack.limiter.outputs, "ArchiverDLQAlarmName", null)
}

output "archiver_error_rate_alarm_name" {
  description = "Name of the alarm."
  value       = lookup(aws_cloudformation_stack.limiter.outputs, "ArchiverErrorRateAlarmName", null)
}

output "archiver_duration_alarm_name" {
  description = "Name of the alarm."
  value       = lookup(aws_cloudformation_stack.limiter.outputs, "ArchiverDurationAlarmName", null)
}

output "archiver_iterator_age_alarm_name" {
  description = "Name of the alarm."
  value       = lookup(aws_cloudformation_stack.limiter.outputs, "ArchiverIteratorAgeAlarmName", null)
}

output "archiver_throttle_alarm_name" {
  description = "Name of the alarm."
  value       = lookup(aws_cloudformation_stack.limiter.outputs, "ArchiverThrottleAlarmName", null)
}

output "archiver_destination_alarm_name" {
  description = "Name of the alarm."
  value       = lookup(aws_cloudformation_stack.limiter.outputs, "ArchiverDestinationAlarmName", null)
}

output "archiver_stopped_alarm_name" {
  description = "Name of the alarm."
  value       = lookup(aws_cloudformation_stack.limiter.outputs, "ArchiverStoppedAlarmName", null)
}

output "archiver_failed_events_alarm_name" {
  description = "Name of the alarm."
  value       = lookup(aws_cloudformation_stack.limiter.outputs, "ArchiverFailedEventsAlarmName", null)
}

output "dynamodb_read_throttle_alarm_name" {
  description = "Name of the alarm."
  value       = lookup(aws_cloudformation_stack.limiter.outputs, "DynamoDBReadThrottleAlarmName", null)
}

output "dynamodb_write_throttle_alarm_name" {
  description = "Name of the alarm."
  value       = lookup(aws_cloudformation_stack.limiter.outputs, "DynamoDBWriteThrottleAlarmName", null)
}

output "gsi1_read_throttle_alarm_name" {
  description = "Name of the alarm."
  value       = lookup(aws_cloudformation_stack.limiter.outputs, "GSI1ReadThrottleAlarmName", null)
}

output "gsi1_write_throttle_alarm_name" {
  description = "Name of the alarm."
  value       = lookup(aws_cloudformation_stack.limiter.outputs, "GSI1WriteThrottleAlarmName", null)
}

output "gsi2_read_throttle_alarm_name" {
  description = "Name of the alarm."
  value       = lookup(aws_cloudformation_stack.limiter.outputs, "GSI2ReadThrottleAlarmName", null)
}

output "gsi2_write_throttle_alarm_name" {
  description = "Name of the alarm."
  value       = lookup(aws_cloudformation_stack.limiter.outputs, "GSI2WriteThrottleAlarmName", null)
}

output "gsi3_read_throttle_alarm_name" {
  description = "Name of the alarm."
  value       = lookup(aws_cloudformation_stack.limiter.outputs, "GSI3ReadThrottleAlarmName", null)
}

output "gsi3_write_throttle_alarm_name" {
  description = "Name of the alarm."
  value       = lookup(aws_cloudformation_stack.limiter.outputs, "GSI3WriteThrottleAlarmName", null)
}

output "dashboard_name" {
  description = "Name of the dashboard."
  value       = lookup(aws_cloudformation_stack.limiter.outputs, "DashboardName", null)
}

output "audit_archive_bucket_name" {
  description = "Bucket with archived audit events."
  value       = lookup(aws_cloudformation_stack.limiter.outputs, "AuditArchiveBucketName", null)
}

output "audit_archive_bucket_arn" {
  description = "ARN of the bucket with archived audit events."
  value       = lookup(aws_cloudformation_stack.limiter.outputs, "AuditArchiveBucketArn", null)
}

output "acquire_only_policy_arn" {
  description = "ARN of the policy for applications that acquire."
  value       = lookup(aws_cloudformation_stack.limiter.outputs, "AcquireOnlyPolicyArn", null)
}

output "full_access_policy_arn" {
  description = "ARN of the policy for administrators."
  value       = lookup(aws_cloudformation_stack.limiter.outputs, "FullAccessPolicyArn", null)
}

output "read_only_policy_arn" {
  description = "ARN of the policy for readers."
  value       = lookup(aws_cloudformation_stack.limiter.outputs, "ReadOnlyPolicyArn", null)
}

output "app_role_arn" {
  description = "ARN of the role of applications."
  value       = lookup(aws_cloudformation_stack.limiter.outputs, "AppRoleArn", null)
}

output "app_role_name" {
  description = "Name of the role of applications."
  value       = lookup(aws_cloudformation_stack.limiter.outputs, "AppRoleName", null)
}

output "admin_role_arn" {
  description = "ARN of the role of administrators."
  value       = lookup(aws_cloudformation_stack.limiter.outputs, "AdminRoleArn", null)
}

output "admin_role_name" {
  description = "Name of the role of administrators."
  value       = lookup(aws_cloudformation_stack.limiter.outputs, "AdminRoleName", null)
}

output "read_only_role_arn" {
  description = "ARN of the role of readers."
  value       = lookup(aws_cloudformation_stack.limiter.outputs, "ReadOnlyRoleArn", null)
}

output "read_only_role_name" {
  description = "Name of the role of readers."
  value       = lookup(aws_cloudformation_stack.limiter.outputs, "ReadOnlyRoleName", null)
}

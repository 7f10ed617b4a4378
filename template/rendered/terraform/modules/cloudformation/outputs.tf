output "table_name" {
  description = "Name of the table."
  value       = aws_cloudformation_stack.limiter.outputs["TableName"]
}

output "table_arn" {
  description = "ARN of the table."
  value       = aws_cloudformation_stack.limiter.outputs["TableArn"]
}

output "stream_arn" {
  description = "ARN of the table's stream."
  value       = aws_cloudformation_stack.limiter.outputs["StreamArn"]
}

output "audit_retention_days" {
  description = "Days to keep audit events in the table."
  value       = aws_cloudformation_stack.limiter.outputs["AuditRetentionDays"]
}

output "aggregator_function_arn" {
  description = "ARN of the aggregator."
  value       = aws_cloudformation_stack.limiter.outputs["AggregatorFunctionArn"]
}

output "aggregator_function_name" {
  description = "Name of the aggregator."
  value       = aws_cloudformation_stack.limiter.outputs["AggregatorFunctionName"]
}

output "aggregator_role_arn" {
  description = "ARN of the role that the aggregator runs as."
  value       = aws_cloudformation_stack.limiter.outputs["AggregatorRoleArn"]
}

output "aggregator_dlq_url" {
  description = "URL of the dead-letter queue of the aggregator."
  value       = aws_cloudformation_stack.limiter.outputs["AggregatorDLQUrl"]
}

output "aggregator_dlq_arn" {
  description = "ARN of the dead-letter queue of the aggregator."
  value       = aws_cloudformation_stack.limiter.outputs["AggregatorDLQArn"]
}

output "archiver_function_arn" {
  description = "ARN of the archiver."
  value       = aws_cloudformation_stack.limiter.outputs["ArchiverFunctionArn"]
}

output "archiver_function_name" {
  description = "Name of the archiver."
  value       = aws_cloudformation_stack.limiter.outputs["ArchiverFunctionName"]
}

output "archiver_role_arn" {
  description = "ARN of the role that the archiver runs as."
  value       = aws_cloudformation_stack.limiter.outputs["ArchiverRoleArn"]
}

output "archiver_dlq_url" {
  description = "URL of the dead-letter queue of the archiver."
  value       = aws_cloudformation_stack.limiter.outputs["ArchiverDLQUrl"]
}

output "archiver_dlq_arn" {
  description = "ARN of the dead-letter queue of the archiver."
  value       = aws_cloudformation_stack.limiter.outputs["ArchiverDLQArn"]
}

output "aggregator_dlq_alarm_name" {
  description = "Name of the alarm."
  value       = aws_cloudformation_stack.limiter.outputs["AggregatorDLQAlarmName"]
}

output "lambda_error_rate_alarm_name" {
  description = "Name of the alarm."
  value       = aws_cloudformation_stack.limiter.outputs["LambdaErrorRateAlarmName"]
}

output "lambda_duration_alarm_name" {
  description = "Name of the alarm."
  value       = aws_cloudformation_stack.limiter.outputs["LambdaDurationAlarmName"]
}

output "stream_iterator_age_alarm_name" {
  description = "Name of the alarm."
  value       = aws_cloudformation_stack.limiter.outputs["StreamIteratorAgeAlarmName"]
}

output "aggregator_throttle_alarm_name" {
  description = "Name of the alarm."
  value       = aws_cloudformation_stack.limiter.outputs["AggregatorThrottleAlarmName"]
}

output "aggregator_destination_alarm_name" {
  description = "Name of the alarm."
  value       = aws_cloudformation_stack.limiter.outputs["AggregatorDestinationAlarmName"]
}

output "aggregator_stopped_alarm_name" {
  description = "Name of the alarm."
  value       = aws_cloudformation_stack.limiter.outputs["AggregatorStoppedAlarmName"]
}

output "aggregator_failed_events_alarm_name" {
  description = "Name of the alarm."
  value       = aws_cloudformation_stack.limiter.outputs["AggregatorFailedEventsAlarmName"]
}

output "archiver_dlq_alarm_name" {
  description = "Name of the alarm."
  value       = aws_cloudformation_stack.limiter.outputs["ArchiverDLQAlarmName"]
}

output "archiver_error_rate_alarm_name" {
  description = "Name of the alarm."
  value       = aws_cloudformation_stack.limiter.outputs["ArchiverErrorRateAlarmName"]
}

output "archiver_duration_alarm_name" {
  description = "Name of the alarm."
  value       = aws_cloudformation_stack.limiter.outputs["ArchiverDurationAlarmName"]
}

output "archiver_iterator_age_alarm_name" {
  description = "Name of the alarm."
  value       = aws_cloudformation_stack.limiter.outputs["ArchiverIteratorAgeAlarmName"]
}

output "archiver_throttle_alarm_name" {
  description = "Name of the alarm."
  value       = aws_cloudformation_stack.limiter.outputs["ArchiverThrottleAlarmName"]
}

output "archiver_destination_alarm_name" {
  description = "Name of the alarm."
  value       = aws_cloudformation_stack.limiter.outputs["ArchiverDestinationAlarmName"]
}

output "archiver_stopped_alarm_name" {
  description = "Name of the alarm."
  value       = aws_cloudformation_stack.limiter.outputs["ArchiverStoppedAlarmName"]
}

output "archiver_failed_events_alarm_name" {
  description = "Name of the alarm."
  value       = aws_cloudformation_stack.limiter.outputs["ArchiverFailedEventsAlarmName"]
}

output "dynamodb_read_throttle_alarm_name" {
  description = "Name of the alarm."
  value       = aws_cloudformation_stack.limiter.outputs["DynamoDBReadThrottleAlarmName"]
}

output "dynamodb_write_throttle_alarm_name" {
  description = "Name of the alarm."
  value       = aws_cloudformation_stack.limiter.outputs["DynamoDBWriteThrottleAlarmName"]
}

output "gsi1_read_throttle_alarm_name" {
  description = "Name of the alarm."
  value       = aws_cloudformation_stack.limiter.outputs["GSI1ReadThrottleAlarmName"]
}

output "gsi1_write_throttle_alarm_name" {
  description = "Name of the alarm."
  value       = aws_cloudformation_stack.limiter.outputs["GSI1WriteThrottleAlarmName"]
}

output "gsi2_read_throttle_alarm_name" {
  description = "Name of the alarm."
  value       = aws_cloudformation_stack.limiter.outputs["GSI2ReadThrottleAlarmName"]
}

output "gsi2_write_throttle_alarm_name" {
  description = "Name of the alarm."
  value       = aws_cloudformation_stack.limiter.outputs["GSI2WriteThrottleAlarmName"]
}

output "gsi3_read_throttle_alarm_name" {
  description = "Name of the alarm."
  value       = aws_cloudformation_stack.limiter.outputs["GSI3ReadThrottleAlarmName"]
}

output "gsi3_write_throttle_alarm_name" {
  description = "Name of the alarm."
  value       = aws_cloudformation_stack.limiter.outputs["GSI3WriteThrottleAlarmName"]
}

output "audit_archive_bucket_name" {
  description = "Bucket with archived audit events."
  value       = aws_cloudformation_stack.limiter.outputs["AuditArchiveBucketName"]
}

output "audit_archive_bucket_arn" {
  description = "ARN of the bucket with archived audit events."
  value       = aws_cloudformation_stack.limiter.outputs["AuditArchiveBucketArn"]
}

output "acquire_only_policy_arn" {
  description = "ARN of the policy for applications that acquire."
  value       = aws_cloudformation_stack.limiter.outputs["AcquireOnlyPolicyArn"]
}

output "full_access_policy_arn" {
  description = "ARN of the policy for administrators."
  value       = aws_cloudformation_stack.limiter.outputs["FullAccessPolicyArn"]
}

output "read_only_policy_arn" {
  description = "ARN of the policy for readers."
  value       = aws_cloudformation_stack.limiter.outputs["ReadOnlyPolicyArn"]
}

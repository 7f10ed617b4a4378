resource "aws_cloudwatch_metric_alarm" "aggregator_dlq_alarm" {
  count = var.enable_alarms && local.has_aggregator ? 1 : 0

  alarm_name          = "${var.name}-aggregator-dlq-alarm"
  alarm_description   = "The aggregator's dead-letter queue has changes that it could not count"
  namespace           = "AWS/SQS"
  metric_name         = "ApproximateNumberOfMessagesVisible"
  dimensions          = { QueueName = aws_sqs_queue.aggregator_dlq[0].name }
  statistic           = "Maximum"
  period              = 300
  evaluation_periods  = 1
  comparison_operator = "GreaterThanOrEqualToThreshold"
  threshold           = 1
  treat_missing_data  = "notBreaching"
  alarm_actions       = local.alarm_actions
  ok_actions          = local.alarm_actions
  tags                = local.tags
}

resource "aws_cloudwatch_metric_alarm" "lambda_error_rate_alarm" {
  count = var.enable_alarms && local.has_aggregator ? 1 : 0

  alarm_name          = "${var.name}-aggregator-error-rate"
  alarm_description   = "Invocations of the aggregator fail"
  namespace           = "AWS/Lambda"
  metric_name         = "Errors"
  dimensions          = { FunctionName = aws_lambda_function.aggregator_function[0].function_name }
  statistic           = "Average"
  period              = 300
  evaluation_periods  = 2
  comparison_operator = "GreaterThanThreshold"
  threshold           = var.alarm_error_rate_pct / 100
  treat_missing_data  = "notBreaching"
  alarm_actions       = local.alarm_actions
  ok_actions          = local.alarm_actions
  tags                = local.tags
}

resource "aws_cloudwatch_metric_alarm" "lambda_duration_alarm" {
  count = var.enable_alarms && local.has_aggregator ? 1 : 0

  alarm_name          = "${var.name}-aggregator-duration"
  alarm_description   = "Invocations of the aggregator come close to their timeout"
  namespace           = "AWS/Lambda"
  metric_name         = "Duration"
  dimensions          = { FunctionName = aws_lambda_function.aggregator_function[0].function_name }
  statistic           = "Average"
  period              = 300
  evaluation_periods  = 2
  comparison_operator = "GreaterThanThreshold"
  threshold           = floor(var.lambda_timeout * 1000 * var.lambda_duration_threshold_pct / 100)
  treat_missing_data  = "notBreaching"
  alarm_actions       = local.alarm_actions
  ok_actions          = local.alarm_actions
  tags                = local.tags
}

resource "aws_cloudwatch_metric_alarm" "stream_iterator_age_alarm" {
  count = var.enable_alarms && local.has_aggregator ? 1 : 0

  alarm_name          = "${var.name}-stream-iterator-age"
  alarm_description   = "The aggregator falls behind; after 22 hours changes are lost from usage"
  namespace           = "AWS/Lambda"
  metric_name         = "IteratorAge"
  dimensions          = { FunctionName = aws_lambda_function.aggregator_function[0].function_name }
  statistic           = "Maximum"
  period              = 300
  evaluation_periods  = 2
  comparison_operator = "GreaterThanThreshold"
  threshold           = var.alarm_iterator_age_seconds * 1000
  treat_missing_data  = "notBreaching"
  alarm_actions       = local.alarm_actions
  ok_actions          = local.alarm_actions
  tags                = local.tags
}

resource "aws_cloudwatch_metric_alarm" "aggregator_throttle_alarm" {
  count = var.enable_alarms && local.has_aggregator ? 1 : 0

  alarm_name          = "${var.name}-aggregator-throttles"
  alarm_description   = "Invocations of the aggregator are throttled; check its concurrency"
  namespace           = "AWS/Lambda"
  metric_name         = "Throttles"
  dimensions          = { FunctionName = aws_lambda_function.aggregator_function[0].function_name }
  statistic           = "Sum"
  period              = 300
  evaluation_periods  = 2
  comparison_operator = "GreaterThanThreshold"
  threshold           = var.alarm_throttled_requests
  treat_missing_data  = "notBreaching"
  alarm_actions       = local.alarm_actions
  ok_actions          = local.alarm_actions
  tags                = local.tags
}

resource "aws_cloudwatch_metric_alarm" "aggregator_destination_alarm" {
  count = var.enable_alarms && local.has_aggregator ? 1 : 0

  alarm_name          = "${var.name}-aggregator-destination-failures"
  alarm_description   = "Lambda cannot write to the aggregator's dead-letter queue"
  namespace           = "AWS/Lambda"
  metric_name         = "DestinationDeliveryFailures"
  dimensions          = { FunctionName = aws_lambda_function.aggregator_function[0].function_name }
  statistic           = "Sum"
  period              = 300
  evaluation_periods  = 1
  comparison_operator = "GreaterThanThreshold"
  threshold           = 0
  treat_missing_data  = "notBreaching"
  alarm_actions       = local.alarm_actions
  ok_actions          = local.alarm_actions
  tags                = local.tags
}

resource "aws_cloudwatch_metric_alarm" "aggregator_stopped_alarm" {
  count = var.enable_alarms && local.has_aggregator ? 1 : 0

  alarm_name        = "${var.name}-aggregator-stopped"
  alarm_description = "The aggregator's event source mapping is disabled or cannot read the stream"
  namespace         = "AWS/Lambda"
  metric_name       = "PolledEventCount"
  dimensions = {
    EventSourceMappingUUID = aws_lambda_event_source_mapping.aggregator_event_source_mapping[0].uuid
  }
  statistic           = "Sum"
  period              = 300
  evaluation_periods  = 3
  comparison_operator = "LessThanThreshold"
  threshold           = 0
  treat_missing_data  = "breaching"
  alarm_actions       = local.alarm_actions
  ok_actions          = local.alarm_actions
  tags                = local.tags
}

resource "aws_cloudwatch_metric_alarm" "aggregator_failed_events_alarm" {
  count = var.enable_alarms && local.has_aggregator ? 1 : 0

  alarm_name        = "${var.name}-aggregator-failed-events"
  alarm_description = "The aggregator cannot be invoked, or fails for the same records; check its role and code"
  namespace         = "AWS/Lambda"
  metric_name       = "FailedInvokeEventCount"
  dimensions = {
    EventSourceMappingUUID = aws_lambda_event_source_mapping.aggregator_event_source_mapping[0].uuid
  }
  statistic           = "Sum"
  period              = 300
  evaluation_periods  = 3
  comparison_operator = "GreaterThanThreshold"
  threshold           = 0
  treat_missing_data  = "notBreaching"
  alarm_actions       = local.alarm_actions
  ok_actions          = local.alarm_actions
  tags                = local.tags
}

resource "aws_cloudwatch_metric_alarm" "archiver_dlq_alarm" {
  count = var.enable_alarms && local.has_archiver ? 1 : 0

  alarm_name          = "${var.name}-archiver-dlq-alarm"
  alarm_description   = "The archiver's dead-letter queue has audit events that it could not archive"
  namespace           = "AWS/SQS"
  metric_name         = "ApproximateNumberOfMessagesVisible"
  dimensions          = { QueueName = aws_sqs_queue.archiver_dlq[0].name }
  statistic           = "Maximum"
  period              = 300
  evaluation_periods  = 1
  comparison_operator = "GreaterThanOrEqualToThreshold"
  threshold           = 1
  treat_missing_data  = "notBreaching"
  alarm_actions       = local.alarm_actions
  ok_actions          = local.alarm_actions
  tags                = local.tags
}

resource "aws_cloudwatch_metric_alarm" "archiver_error_rate_alarm" {
  count = var.enable_alarms && local.has_archiver ? 1 : 0

  alarm_name          = "${var.name}-archiver-error-rate"
  alarm_description   = "Invocations of the archiver fail"
  namespace           = "AWS/Lambda"
  metric_name         = "Errors"
  dimensions          = { FunctionName = aws_lambda_function.archiver_function[0].function_name }
  statistic           = "Average"
  period              = 300
  evaluation_periods  = 2
  comparison_operator = "GreaterThanThreshold"
  threshold           = var.alarm_error_rate_pct / 100
  treat_missing_data  = "notBreaching"
  alarm_actions       = local.alarm_actions
  ok_actions          = local.alarm_actions
  tags                = local.tags
}

resource "aws_cloudwatch_metric_alarm" "archiver_duration_alarm" {
  count = var.enable_alarms && local.has_archiver ? 1 : 0

  alarm_name          = "${var.name}-archiver-duration"
  alarm_description   = "Invocations of the archiver come close to their timeout"
  namespace           = "AWS/Lambda"
  metric_name         = "Duration"
  dimensions          = { FunctionName = aws_lambda_function.archiver_function[0].function_name }
  statistic           = "Average"
  period              = 300
  evaluation_periods  = 2
  comparison_operator = "GreaterThanThreshold"
  threshold           = floor(var.lambda_timeout * 1000 * var.lambda_duration_threshold_pct / 100)
  treat_missing_data  = "notBreaching"
  alarm_actions       = local.alarm_actions
  ok_actions          = local.alarm_actions
  tags                = local.tags
}

resource "aws_cloudwatch_metric_alarm" "archiver_iterator_age_alarm" {
  count = var.enable_alarms && local.has_archiver ? 1 : 0

  alarm_name          = "${var.name}-archiver-iterator-age"
  alarm_description   = "The archiver falls behind; after 22 hours events are missing from the archive"
  namespace           = "AWS/Lambda"
  metric_name         = "IteratorAge"
  dimensions          = { FunctionName = aws_lambda_function.archiver_function[0].function_name }
  statistic           = "Maximum"
  period              = 300
  evaluation_periods  = 2
  comparison_operator = "GreaterThanThreshold"
  threshold           = var.alarm_iterator_age_seconds * 1000
  treat_missing_data  = "notBreaching"
  alarm_actions       = local.alarm_actions
  ok_actions          = local.alarm_actions
  tags                = local.tags
}

resource "aws_cloudwatch_metric_alarm" "archiver_throttle_alarm" {
  count = var.enable_alarms && local.has_archiver ? 1 : 0

  alarm_name          = "${var.name}-archiver-throttles"
  alarm_description   = "Invocations of the archiver are throttled; check its concurrency"
  namespace           = "AWS/Lambda"
  metric_name         = "Throttles"
  dimensions          = { FunctionName = aws_lambda_function.archiver_function[0].function_name }
  statistic           = "Sum"
  period              = 300
  evaluation_periods  = 2
  comparison_operator = "GreaterThanThreshold"
  threshold           = var.alarm_throttled_requests
  treat_missing_data  = "notBreaching"
  alarm_actions       = local.alarm_actions
  ok_actions          = local.alarm_actions
  tags                = local.tags
}

resource "aws_cloudwatch_metric_alarm" "archiver_destination_alarm" {
  count = var.enable_alarms && local.has_archiver ? 1 : 0

  alarm_name          = "${var.name}-archiver-destination-failures"
  alarm_description   = "Lambda cannot write to the archiver's dead-letter queue"
  namespace           = "AWS/Lambda"
  metric_name         = "DestinationDeliveryFailures"
  dimensions          = { FunctionName = aws_lambda_function.archiver_function[0].function_name }
  statistic           = "Sum"
  period              = 300
  evaluation_periods  = 1
  comparison_operator = "GreaterThanThreshold"
  threshold           = 0
  treat_missing_data  = "notBreaching"
  alarm_actions       = local.alarm_actions
  ok_actions          = local.alarm_actions
  tags                = local.tags
}

resource "aws_cloudwatch_metric_alarm" "archiver_stopped_alarm" {
  count = var.enable_alarms && local.has_archiver ? 1 : 0

  alarm_name        = "${var.name}-archiver-stopped"
  alarm_description = "The archiver's event source mapping is disabled or cannot read the stream"
  namespace         = "AWS/Lambda"
  metric_name       = "PolledEventCount"
  dimensions = {
    EventSourceMappingUUID = aws_lambda_event_source_mapping.archiver_event_source_mapping[0].uuid
  }
  statistic           = "Sum"
  period              = 300
  evaluation_periods  = 3
  comparison_operator = "LessThanThreshold"
  threshold           = 0
  treat_missing_data  = "breaching"
  alarm_actions       = local.alarm_actions
  ok_actions          = local.alarm_actions
  tags                = local.tags
}

resource "aws_cloudwatch_metric_alarm" "archiver_failed_events_alarm" {
  count = var.enable_alarms && local.has_archiver ? 1 : 0

  alarm_name        = "${var.name}-archiver-failed-events"
  alarm_description = "The archiver cannot be invoked, or fails for the same records; check its role and code"
  namespace         = "AWS/Lambda"
  metric_name       = "FailedInvokeEventCount"
  dimensions = {
    EventSourceMappingUUID = aws_lambda_event_source_mapping.archiver_event_source_mapping[0].uuid
  }
  statistic           = "Sum"
  period              = 300
  evaluation_periods  = 3
  comparison_operator = "GreaterThanThreshold"
  threshold           = 0
  treat_missing_data  = "notBreaching"
  alarm_actions       = local.alarm_actions
  ok_actions          = local.alarm_actions
  tags                = local.tags
}

resource "aws_cloudwatch_metric_alarm" "dynamodb_read_throttle_alarm" {
  count = var.enable_alarms ? 1 : 0

  alarm_name          = "${var.name}-read-throttle"
  alarm_description   = "Reads of the table are throttled"
  namespace           = "AWS/DynamoDB"
  metric_name         = "ReadThrottleEvents"
  dimensions          = { TableName = aws_dynamodb_table.rate_limits_table.name }
  statistic           = "Sum"
  period              = 300
  evaluation_periods  = 2
  comparison_operator = "GreaterThanThreshold"
  threshold           = var.alarm_throttled_requests
  treat_missing_data  = "notBreaching"
  alarm_actions       = local.alarm_actions
  ok_actions          = local.alarm_actions
  tags                = local.tags
}

resource "aws_cloudwatch_metric_alarm" "dynamodb_write_throttle_alarm" {
  count = var.enable_alarms ? 1 : 0

  alarm_name          = "${var.name}-write-throttle"
  alarm_description   = "Writes of the table are throttled; look for a hot entity"
  namespace           = "AWS/DynamoDB"
  metric_name         = "WriteThrottleEvents"
  dimensions          = { TableName = aws_dynamodb_table.rate_limits_table.name }
  statistic           = "Sum"
  period              = 300
  evaluation_periods  = 2
  comparison_operator = "GreaterThanThreshold"
  threshold           = var.alarm_throttled_requests
  treat_missing_data  = "notBreaching"
  alarm_actions       = local.alarm_actions
  ok_actions          = local.alarm_actions
  tags                = local.tags
}

resource "aws_cloudwatch_metric_alarm" "gsi1_read_throttle_alarm" {
  count = var.enable_alarms ? 1 : 0

  alarm_name        = "${var.name}-gsi1-read-throttle"
  alarm_description = "Reads of an index are throttled"
  namespace         = "AWS/DynamoDB"
  metric_name       = "ReadThrottleEvents"
  dimensions = {
    TableName                = aws_dynamodb_table.rate_limits_table.name
    GlobalSecondaryIndexName = "GSI1"
  }
  statistic           = "Sum"
  period              = 300
  evaluation_periods  = 2
  comparison_operator = "GreaterThanThreshold"
  threshold           = var.alarm_throttled_requests
  treat_missing_data  = "notBreaching"
  alarm_actions       = local.alarm_actions
  ok_actions          = local.alarm_actions
  tags                = local.tags
}

resource "aws_cloudwatch_metric_alarm" "gsi1_write_throttle_alarm" {
  count = var.enable_alarms ? 1 : 0

  alarm_name        = "${var.name}-gsi1-write-throttle"
  alarm_description = "Writes of an index are throttled; look for a hot resource or parent"
  namespace         = "AWS/DynamoDB"
  metric_name       = "WriteThrottleEvents"
  dimensions = {
    TableName                = aws_dynamodb_table.rate_limits_table.name
    GlobalSecondaryIndexName = "GSI1"
  }
  statistic           = "Sum"
  period              = 300
  evaluation_periods  = 2
  comparison_operator = "GreaterThanThreshold"
  threshold           = var.alarm_throttled_requests
  treat_missing_data  = "notBreaching"
  alarm_actions       = local.alarm_actions
  ok_actions          = local.alarm_actions
  tags                = local.tags
}

resource "aws_cloudwatch_metric_alarm" "gsi2_read_throttle_alarm" {
  count = var.enable_alarms ? 1 : 0

  alarm_name        = "${var.name}-gsi2-read-throttle"
  alarm_description = "Reads of an index are throttled"
  namespace         = "AWS/DynamoDB"
  metric_name       = "ReadThrottleEvents"
  dimensions = {
    TableName                = aws_dynamodb_table.rate_limits_table.name
    GlobalSecondaryIndexName = "GSI2"
  }
  statistic           = "Sum"
  period              = 300
  evaluation_periods  = 2
  comparison_operator = "GreaterThanThreshold"
  threshold           = var.alarm_throttled_requests
  treat_missing_data  = "notBreaching"
  alarm_actions       = local.alarm_actions
  ok_actions          = local.alarm_actions
  tags                = local.tags
}

resource "aws_cloudwatch_metric_alarm" "gsi2_write_throttle_alarm" {
  count = var.enable_alarms ? 1 : 0

  alarm_name        = "${var.name}-gsi2-write-throttle"
  alarm_description = "Writes of an index are throttled; look for a hot resource or parent"
  namespace         = "AWS/DynamoDB"
  metric_name       = "WriteThrottleEvents"
  dimensions = {
    TableName                = aws_dynamodb_table.rate_limits_table.name
    GlobalSecondaryIndexName = "GSI2"
  }
  statistic           = "Sum"
  period              = 300
  evaluation_periods  = 2
  comparison_operator = "GreaterThanThreshold"
  threshold           = var.alarm_throttled_requests
  treat_missing_data  = "notBreaching"
  alarm_actions       = local.alarm_actions
  ok_actions          = local.alarm_actions
  tags                = local.tags
}

resource "aws_cloudwatch_metric_alarm" "gsi3_read_throttle_alarm" {
  count = var.enable_alarms ? 1 : 0

  alarm_name        = "${var.name}-gsi3-read-throttle"
  alarm_description = "Reads of an index are throttled"
  namespace         = "AWS/DynamoDB"
  metric_name       = "ReadThrottleEvents"
  dimensions = {
    TableName                = aws_dynamodb_table.rate_limits_table.name
    GlobalSecondaryIndexName = "GSI3"
  }
  statistic           = "Sum"
  period              = 300
  evaluation_periods  = 2
  comparison_operator = "GreaterThanThreshold"
  threshold           = var.alarm_throttled_requests
  treat_missing_data  = "notBreaching"
  alarm_actions       = local.alarm_actions
  ok_actions          = local.alarm_actions
  tags                = local.tags
}

resource "aws_cloudwatch_metric_alarm" "gsi3_write_throttle_alarm" {
  count = var.enable_alarms ? 1 : 0

  alarm_name        = "${var.name}-gsi3-write-throttle"
  alarm_description = "Writes of an index are throttled; look for a hot resource or parent"
  namespace         = "AWS/DynamoDB"
  metric_name       = "WriteThrottleEvents"
  dimensions = {
    TableName                = aws_dynamodb_table.rate_limits_table.name
    GlobalSecondaryIndexName = "GSI3"
  }
  statistic           = "Sum"
  period              = 300
  evaluation_periods  = 2
  comparison_operator = "GreaterThanThreshold"
  threshold           = var.alarm_throttled_requests
  treat_missing_data  = "notBreaching"
  alarm_actions       = local.alarm_actions
  ok_actions          = local.alarm_actions
  tags                = local.tags
}

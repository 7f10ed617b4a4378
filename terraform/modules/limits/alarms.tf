resource "aws_cloudwatch_metric_alarm" "provisioner_dlq_alarm" {
  count = var.enable_alarms ? 1 : 0

  alarm_name          = "${var.table_name}-provisioner-dlq-alarm"
  alarm_description   = "The provisioner's dead-letter queue has requests without a response"
  namespace           = "AWS/SQS"
  metric_name         = "ApproximateNumberOfMessagesVisible"
  dimensions          = { QueueName = aws_sqs_queue.provisioner_dlq.name }
  statistic           = "Maximum"
  period              = 300
  evaluation_periods  = 1
  comparison_operator = "GreaterThanOrEqualToThreshold"
  threshold           = 1
  treat_missing_data  = "notBreaching"
  alarm_actions       = local.alarm_actions
  ok_actions          = local.alarm_actions
  tags                = var.tags
}

resource "aws_cloudwatch_metric_alarm" "provisioner_error_alarm" {
  count = var.enable_alarms ? 1 : 0

  alarm_name          = "${var.table_name}-provisioner-errors"
  alarm_description   = "Invocations of the provisioner fail"
  namespace           = "AWS/Lambda"
  metric_name         = "Errors"
  dimensions          = { FunctionName = aws_lambda_function.provisioner_function.function_name }
  statistic           = "Sum"
  period              = 300
  evaluation_periods  = 1
  comparison_operator = "GreaterThanOrEqualToThreshold"
  threshold           = 1
  treat_missing_data  = "notBreaching"
  alarm_actions       = local.alarm_actions
  ok_actions          = local.alarm_actions
  tags                = var.tags
}

locals {
  # A row of the table's panels, then one group of panels per function.
  table_panels = [
    {
      title = "Consumed capacity, and its estimated cost (on-demand, us-east-1)"
      stat  = "Sum"
      metrics = [
        [{
          expression = "(FILL(m0,0)+FILL(m1,0)+FILL(m2,0)+FILL(m3,0))*0.000000125+(FILL(m4,0)+FILL(m5,0)+FILL(m6,0)+FILL(m7,0))*0.000000625"
          label      = "US dollars"
          yAxis      = "right"
        }],
        ["AWS/DynamoDB", "ConsumedReadCapacityUnits", "TableName", aws_dynamodb_table.rate_limits_table.name, { label = "reads, table", id = "m0" }],
        ["AWS/DynamoDB", "ConsumedReadCapacityUnits", "TableName", aws_dynamodb_table.rate_limits_table.name, "GlobalSecondaryIndexName", "GSI1", { label = "reads, GSI1", id = "m1" }],
        [".", ".", ".", ".", ".", "GSI2", { label = "reads, GSI2", id = "m2" }],
        [".", ".", ".", ".", ".", "GSI3", { label = "reads, GSI3", id = "m3" }],
        ["AWS/DynamoDB", "ConsumedWriteCapacityUnits", "TableName", aws_dynamodb_table.rate_limits_table.name, { label = "writes, table", id = "m4" }],
        ["AWS/DynamoDB", "ConsumedWriteCapacityUnits", "TableName", aws_dynamodb_table.rate_limits_table.name, "GlobalSecondaryIndexName", "GSI1", { label = "writes, GSI1", id = "m5" }],
        [".", ".", ".", ".", ".", "GSI2", { label = "writes, GSI2", id = "m6" }],
        [".", ".", ".", ".", ".", "GSI3", { label = "writes, GSI3", id = "m7" }],
      ]
    },
    {
      title = "Throttled requests"
      stat  = "Sum"
      metrics = [
        ["AWS/DynamoDB", "ReadThrottleEvents", "TableName", aws_dynamodb_table.rate_limits_table.name, { label = "reads, table" }],
        ["AWS/DynamoDB", "ReadThrottleEvents", "TableName", aws_dynamodb_table.rate_limits_table.name, "GlobalSecondaryIndexName", "GSI1", { label = "reads, GSI1" }],
        [".", ".", ".", ".", ".", "GSI2", { label = "reads, GSI2" }],
        [".", ".", ".", ".", ".", "GSI3", { label = "reads, GSI3" }],
        ["AWS/DynamoDB", "WriteThrottleEvents", "TableName", aws_dynamodb_table.rate_limits_table.name, { label = "writes, table" }],
        ["AWS/DynamoDB", "WriteThrottleEvents", "TableName", aws_dynamodb_table.rate_limits_table.name, "GlobalSecondaryIndexName", "GSI1", { label = "writes, GSI1" }],
        [".", ".", ".", ".", ".", "GSI2", { label = "writes, GSI2" }],
        [".", ".", ".", ".", ".", "GSI3", { label = "writes, GSI3" }],
      ]
    },
    {
      title = "Latency of the table"
      stat  = "p50"
      metrics = [
        ["AWS/DynamoDB", "SuccessfulRequestLatency", "TableName", aws_dynamodb_table.rate_limits_table.name, "Operation", "UpdateItem", { label = "UpdateItem p50" }],
        [".", ".", ".", ".", ".", ".", { label = "UpdateItem p99", stat = "p99" }],
        [".", ".", ".", ".", ".", "BatchGetItem", { label = "BatchGetItem p50" }],
        [".", ".", ".", ".", ".", ".", { label = "BatchGetItem p99", stat = "p99" }],
        [".", ".", ".", ".", ".", "GetItem", { label = "GetItem p50" }],
        [".", ".", ".", ".", ".", ".", { label = "GetItem p99", stat = "p99" }],
      ]
      yAxis = { left = { label = "ms" } }
    },
  ]

  aggregator_panels = [for function in aws_lambda_function.aggregator_function : [
    {
      title   = "Lag of the aggregator"
      stat    = "Maximum"
      metrics = [["AWS/Lambda", "IteratorAge", "FunctionName", function.function_name, { label = "iterator age" }]]
      yAxis   = { left = { label = "ms" } }
    },
    {
      title = "Invocations of the aggregator"
      stat  = "Sum"
      metrics = [
        ["AWS/Lambda", "Invocations", "FunctionName", function.function_name, { label = "invocations" }],
        [".", "Errors", ".", ".", { label = "errors" }],
        [".", "Throttles", ".", ".", { label = "throttles" }],
      ]
    },
    {
      title = "Events of the aggregator"
      stat  = "Sum"
      metrics = [
        ["AWS/Lambda", "PolledEventCount", "EventSourceMappingUUID", aws_lambda_event_source_mapping.aggregator_event_source_mapping[0].uuid, { label = "polled" }],
        [".", "InvokedEventCount", ".", ".", { label = "delivered" }],
        [".", "FailedInvokeEventCount", ".", ".", { label = "failed" }],
        ["ZaeLimiter", "Snapshots", "FunctionName", function.function_name, { label = "usage rows written" }],
      ]
    },
    {
      title = "Dead letters of the aggregator"
      stat  = "Maximum"
      metrics = [
        ["AWS/SQS", "ApproximateNumberOfMessagesVisible", "QueueName", aws_sqs_queue.aggregator_dlq[0].name, { label = "in the queue" }],
        ["ZaeLimiter", "DeadLetters", "FunctionName", function.function_name, { label = "written by the function", stat = "Sum" }],
      ]
    },
  ]]

  archiver_panels = [for function in aws_lambda_function.archiver_function : [
    {
      title   = "Lag of the archiver"
      stat    = "Maximum"
      metrics = [["AWS/Lambda", "IteratorAge", "FunctionName", function.function_name, { label = "iterator age" }]]
      yAxis   = { left = { label = "ms" } }
    },
    {
      title = "Invocations of the archiver"
      stat  = "Sum"
      metrics = [
        ["AWS/Lambda", "Invocations", "FunctionName", function.function_name, { label = "invocations" }],
        [".", "Errors", ".", ".", { label = "errors" }],
        [".", "Throttles", ".", ".", { label = "throttles" }],
      ]
    },
    {
      title = "Events of the archiver"
      stat  = "Sum"
      metrics = [
        ["AWS/Lambda", "PolledEventCount", "EventSourceMappingUUID", aws_lambda_event_source_mapping.archiver_event_source_mapping[0].uuid, { label = "polled" }],
        [".", "InvokedEventCount", ".", ".", { label = "delivered" }],
        [".", "FailedInvokeEventCount", ".", ".", { label = "failed" }],
        ["ZaeLimiter", "Records", "FunctionName", function.function_name, { label = "events" }],
      ]
    },
    {
      title = "Dead letters of the archiver"
      stat  = "Maximum"
      metrics = [
        ["AWS/SQS", "ApproximateNumberOfMessagesVisible", "QueueName", aws_sqs_queue.archiver_dlq[0].name, { label = "in the queue" }],
        ["ZaeLimiter", "DeadLetters", "FunctionName", function.function_name, { label = "written by the function", stat = "Sum" }],
      ]
    },
  ]]

  acquire_panels = [for function in aws_lambda_function.aggregator_function : [
    {
      title = "Acquires per resource"
      stat  = "Sum"
      metrics = [
        [{
          expression = "SEARCH('{ZaeLimiter,FunctionName,Resource} MetricName=\"Acquires\" FunctionName=\"${function.function_name}\"', 'Sum', 300)"
          id         = "e1"
        }],
      ]
    },
  ]]

  panels = concat(
    local.table_panels,
    flatten(local.aggregator_panels),
    flatten(local.archiver_panels),
    flatten(local.acquire_panels),
  )
}

# Three panels in a row; a dashboard is 24 units wide.
resource "aws_cloudwatch_dashboard" "dashboard" {
  count = var.enable_dashboard ? 1 : 0

  dashboard_name = var.name
  dashboard_body = jsonencode({
    widgets = [for place, panel in local.panels : {
      type       = "metric"
      x          = place % 3 * 8
      y          = floor(place / 3) * 6
      width      = 8
      height     = 6
      properties = merge(panel, { region = data.aws_region.current.id })
    }]
  })
}

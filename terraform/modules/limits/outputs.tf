output "function_arn" {
  description = "ARN of the provisioner."
  value       = aws_lambda_function.provisioner_function.arn
}

output "result" {
  description = "What the last apply changed: Created, Updated, Deleted and Unchanged levels."
  value       = jsondecode(aws_lambda_invocation.limits.result)
}

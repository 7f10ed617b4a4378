output "table_name" {
  description = "Name of the table, which clients connect with."
  value       = module.limiter.table_name
}

output "app_role_arn" {
  description = "ARN of the role of applications."
  value       = module.limiter.app_role_arn
}

output "dashboard_name" {
  description = "Name of the CloudWatch dashboard."
  value       = module.limiter.dashboard_name
}

output "table_name" {
  description = "Name of the table, which clients connect with."
  value       = module.limiter.table_name
}

output "acquire_only_policy_arn" {
  description = "ARN of the policy for applications that acquire."
  value       = module.limiter.acquire_only_policy_arn
}

output "limits" {
  description = "What the last apply changed: Created, Updated, Deleted and Unchanged levels."
  value       = module.limits.result
}

provider "aws" {
  region = "eu-central-1"
}

variable "code_directory" {
  description = "Directory with aggregator.zip and archiver.zip."
  type        = string
}

module "limiter" {
  source         = "../.."
  name           = "limiter"
  code_directory = var.code_directory
}

# What an application needs to acquire.
output "acquire_policy_arn" {
  value = module.limiter.acquire_only_policy_arn
}

output "table_name" {
  value = module.limiter.table_name
}

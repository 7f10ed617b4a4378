provider "aws" {
  region = "eu-central-1"
}

variable "code_bucket" {
  description = "Bucket for the functions' archives."
  type        = string
}

module "limiter" {
  source         = "../"
  name           = "limiter"
  code_bucket    = var.code_bucket
  aggregator_zip = "${path.module}/aggregator.zip"
  archiver_zip   = "${path.module}/archiver.zip"
}

output "table_name" {
  value = module.limiter.table_name
}

provider "aws" {
  region = var.region
}

# The table's name. Deleting a stack of this name leaves the table behind.
import {
  to = module.limiter.aws_dynamodb_table.rate_limits_table
  id = "limiter"
}

# Another aggregator has counted the table's usage until now, and the table has its version record.
module "limiter" {
  source = "../.."

  name                 = "limiter"
  code_directory       = var.code_directory
  stream_start         = "latest"
  write_version_record = false
}

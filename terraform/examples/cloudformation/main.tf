provider "aws" {
  region = var.region
}

module "limiter" {
  source = "../../modules/cloudformation"

  name           = "limiter"
  code_bucket    = var.code_bucket
  aggregator_zip = "${var.code_directory}/aggregator.zip"
  archiver_zip   = "${var.code_directory}/archiver.zip"
}

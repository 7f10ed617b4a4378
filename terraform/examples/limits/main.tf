provider "aws" {
  region = var.region
}

module "limiter" {
  source = "../.."

  name           = "limiter"
  code_directory = var.code_directory
}

module "limits" {
  source = "../../modules/limits"

  table_name = module.limiter.table_name
  archive    = "${var.code_directory}/provisioner.zip"
  limits     = file("${path.module}/limits.yaml")
}

provider "aws" {
  region = var.region
}

module "limiter" {
  source = "../.."

  name           = "limiter"
  code_directory = var.code_directory
}

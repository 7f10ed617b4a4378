provider "aws" {
  region = "eu-central-1"
}

resource "aws_s3_bucket" "code" {
  bucket_prefix = "limiter-code-"
}

resource "aws_s3_bucket_versioning" "code" {
  bucket = aws_s3_bucket.code.id

  versioning_configuration {
    status = "Enabled"
  }
}

resource "aws_s3_bucket_public_access_block" "code" {
  bucket                  = aws_s3_bucket.code.id
  block_public_acls       = true
  block_public_policy     = true
  ignore_public_acls      = true
  restrict_public_buckets = true
}

module "limiter" {
  source         = "../"
  name           = "limiter"
  code_bucket    = aws_s3_bucket.code.id
  aggregator_zip = "${path.module}/aggregator.zip"
  archiver_zip   = "${path.module}/archiver.zip"
}

output "table_name" {
  value = module.limiter.table_name
}

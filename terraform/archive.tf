locals {
  creates_archive_bucket = local.has_archiver && var.archive_bucket == null
  archive_bucket_name    = var.archive_bucket != null ? var.archive_bucket : one(aws_s3_bucket.audit_archive_bucket[*].bucket)
  archive_bucket_arn     = var.archive_bucket != null ? "arn:${data.aws_partition.current.partition}:s3:::${var.archive_bucket}" : one(aws_s3_bucket.audit_archive_bucket[*].arn)
}

# CloudFormation retains the archive; here nothing of it can be destroyed, so that it does not lose its protection. The README
# says how to remove the rest.
resource "aws_s3_bucket" "audit_archive_bucket" {
  count = local.creates_archive_bucket ? 1 : 0

  bucket              = var.archive_bucket_name
  bucket_prefix       = var.archive_bucket_name == null ? "${substr(lower(var.name), 0, 30)}-audit-" : null
  object_lock_enabled = var.audit_archive_object_lock_days != null
  tags                = local.tags

  lifecycle {
    prevent_destroy = true
  }
}

resource "aws_s3_bucket_server_side_encryption_configuration" "audit_archive_bucket" {
  count = local.creates_archive_bucket ? 1 : 0

  bucket = aws_s3_bucket.audit_archive_bucket[0].bucket

  rule {
    bucket_key_enabled = var.kms_key_arn == null ? null : true

    apply_server_side_encryption_by_default {
      sse_algorithm     = var.kms_key_arn == null ? "AES256" : "aws:kms"
      kms_master_key_id = var.kms_key_arn
    }
  }

  lifecycle {
    prevent_destroy = true
  }
}

resource "aws_s3_bucket_versioning" "audit_archive_bucket" {
  count = local.creates_archive_bucket ? 1 : 0

  bucket = aws_s3_bucket.audit_archive_bucket[0].bucket

  versioning_configuration {
    status = "Enabled"
  }

  lifecycle {
    prevent_destroy = true
  }
}

resource "aws_s3_bucket_public_access_block" "audit_archive_bucket" {
  count = local.creates_archive_bucket ? 1 : 0

  bucket                  = aws_s3_bucket.audit_archive_bucket[0].bucket
  block_public_acls       = true
  block_public_policy     = true
  ignore_public_acls      = true
  restrict_public_buckets = true

  lifecycle {
    prevent_destroy = true
  }
}

resource "aws_s3_bucket_ownership_controls" "audit_archive_bucket" {
  count = local.creates_archive_bucket ? 1 : 0

  bucket = aws_s3_bucket.audit_archive_bucket[0].bucket

  rule {
    object_ownership = "BucketOwnerEnforced"
  }

  lifecycle {
    prevent_destroy = true
  }
}

resource "aws_s3_bucket_lifecycle_configuration" "audit_archive_bucket" {
  count = local.creates_archive_bucket ? 1 : 0

  bucket     = aws_s3_bucket.audit_archive_bucket[0].bucket
  depends_on = [aws_s3_bucket_versioning.audit_archive_bucket]

  rule {
    id     = "archive"
    status = "Enabled"

    filter {
      prefix = "audit/"
    }

    transition {
      days          = var.audit_archive_glacier_days
      storage_class = "GLACIER_IR"
    }
  }

  rule {
    id     = "tidy"
    status = "Enabled"

    filter {}

    noncurrent_version_expiration {
      noncurrent_days = 30
    }

    abort_incomplete_multipart_upload {
      days_after_initiation = 7
    }
  }

  lifecycle {
    prevent_destroy = true
  }
}

resource "aws_s3_bucket_object_lock_configuration" "audit_archive_bucket" {
  count = local.creates_archive_bucket && var.audit_archive_object_lock_days != null ? 1 : 0

  bucket = aws_s3_bucket.audit_archive_bucket[0].bucket

  rule {
    default_retention {
      mode = upper(var.audit_archive_object_lock_mode)
      days = var.audit_archive_object_lock_days
    }
  }

  lifecycle {
    prevent_destroy = true
  }
}

data "aws_iam_policy_document" "audit_archive_bucket_policy" {
  count = local.creates_archive_bucket ? 1 : 0

  statement {
    sid       = "TlsOnly"
    effect    = "Deny"
    actions   = ["s3:*"]
    resources = [local.archive_bucket_arn, "${local.archive_bucket_arn}/*"]

    principals {
      type        = "AWS"
      identifiers = ["*"]
    }

    condition {
      test     = "Bool"
      variable = "aws:SecureTransport"
      values   = ["false"]
    }
  }
}

resource "aws_s3_bucket_policy" "audit_archive_bucket_policy" {
  count = local.creates_archive_bucket ? 1 : 0

  bucket = aws_s3_bucket.audit_archive_bucket[0].bucket
  policy = data.aws_iam_policy_document.audit_archive_bucket_policy[0].json

  lifecycle {
    prevent_destroy = true
  }
}

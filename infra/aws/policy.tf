# The bucket that `costguard policy publish` writes to and every function reads, and where digests are kept.

locals {
  bucket        = "${var.name}-${local.account}-${var.region}" # no dots: docs/settings.md
  policy_source = "s3://${local.bucket}/policy?region=${var.region}"
  reports       = "s3://${local.bucket}/reports?region=${var.region}"
}

resource "aws_s3_bucket" "policy" {
  bucket        = local.bucket
  force_destroy = !var.deletion_protection
}

resource "aws_s3_bucket_versioning" "policy" {
  bucket = aws_s3_bucket.policy.id

  versioning_configuration {
    status = "Enabled"
  }
}

resource "aws_s3_bucket_server_side_encryption_configuration" "policy" {
  bucket = aws_s3_bucket.policy.id

  rule {
    apply_server_side_encryption_by_default {
      sse_algorithm = "AES256"
    }
  }
}

resource "aws_s3_bucket_public_access_block" "policy" {
  bucket = aws_s3_bucket.policy.id

  block_public_acls       = true
  block_public_policy     = true
  ignore_public_acls      = true
  restrict_public_buckets = true
}

resource "aws_s3_bucket_ownership_controls" "policy" {
  bucket = aws_s3_bucket.policy.id

  rule {
    object_ownership = "BucketOwnerEnforced"
  }
}

# The history of policies is in the ledger, and their bundles are never written twice: an old version is a mistake's.
resource "aws_s3_bucket_lifecycle_configuration" "policy" {
  bucket = aws_s3_bucket.policy.id

  rule {
    id     = "old-versions"
    status = "Enabled"

    filter {}

    noncurrent_version_expiration {
      noncurrent_days = 365
    }

    abort_incomplete_multipart_upload {
      days_after_initiation = 7
    }
  }

  depends_on = [aws_s3_bucket_versioning.policy]
}

resource "aws_s3_bucket_policy" "policy" {
  bucket = aws_s3_bucket.policy.id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid       = "OnlyOverTls"
      Effect    = "Deny"
      Principal = "*"
      Action    = "s3:*"
      Resource  = [aws_s3_bucket.policy.arn, "${aws_s3_bucket.policy.arn}/*"]
      Condition = { Bool = { "aws:SecureTransport" = "false" } }
    }]
  })

  depends_on = [aws_s3_bucket_public_access_block.policy]
}

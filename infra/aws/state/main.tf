# The bucket that Terraform's own state is kept in: private, encrypted, versioned, reached over TLS alone, and locked by
# S3 itself (`use_lockfile`, Terraform 1.10 and newer). `costguard deploy aws --backend` applies this before anything else,
# keeps its state in the same bucket, and moves the deployment's there. Nothing of it is destroyed with the deployment.

terraform {
  required_version = ">= 1.10"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = "~> 5.80"
    }
  }
}

variable "name" {
  description = "The deployment's `name`: the bucket's begins with it."
  type        = string
  default     = "costguard"
}

variable "region" {
  description = "Where the bucket is: the deployment's own region."
  type        = string
}

provider "aws" {
  region = var.region

  default_tags {
    tags = { app = "costguard", deployment = var.name }
  }
}

data "aws_caller_identity" "here" {}

locals {
  account = data.aws_caller_identity.here.account_id
  bucket  = "${var.name}-state-${local.account}-${var.region}"
}

resource "aws_s3_bucket" "state" {
  #checkov:skip=CKV2_AWS_61:Every version of a state is kept: it is small, and the one before may be all that is left of a deployment.
  bucket        = local.bucket
  force_destroy = false

  lifecycle {
    prevent_destroy = true
  }
}

# Whoever foresees the name could have made the bucket: S3 refuses these where another account owns it.
resource "aws_s3_bucket_versioning" "state" {
  bucket                = aws_s3_bucket.state.id
  expected_bucket_owner = local.account

  versioning_configuration {
    status = "Enabled"
  }
}

resource "aws_s3_bucket_server_side_encryption_configuration" "state" {
  bucket                = aws_s3_bucket.state.id
  expected_bucket_owner = local.account

  rule {
    apply_server_side_encryption_by_default {
      sse_algorithm = "AES256"
    }
  }
}

resource "aws_s3_bucket_public_access_block" "state" {
  bucket = aws_s3_bucket.state.id

  block_public_acls       = true
  block_public_policy     = true
  ignore_public_acls      = true
  restrict_public_buckets = true
}

resource "aws_s3_bucket_ownership_controls" "state" {
  bucket = aws_s3_bucket.state.id

  rule {
    object_ownership = "BucketOwnerEnforced"
  }
}

resource "aws_s3_bucket_policy" "state" {
  bucket = aws_s3_bucket.state.id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid       = "OnlyOverTls"
      Effect    = "Deny"
      Principal = "*"
      Action    = "s3:*"
      Resource  = [aws_s3_bucket.state.arn, "${aws_s3_bucket.state.arn}/*"]
      Condition = { Bool = { "aws:SecureTransport" = "false" } }
    }]
  })

  depends_on = [aws_s3_bucket_public_access_block.state]
}

output "backend" {
  description = "Arguments of Terraform's backend \"s3\", but for its key."
  value       = { bucket = local.bucket, region = var.region, encrypt = true, use_lockfile = true }
}

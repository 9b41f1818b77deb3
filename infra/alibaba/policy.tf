# The bucket that `costguard policy publish` writes to and every function reads, and where digests and bundles are kept.

locals {
  bucket        = "${var.name}-${local.account}-${var.region}" # no dots: docs/settings.md
  policy_source = "oss://${local.bucket}/policy?region=${var.region}"
  reports       = "oss://${local.bucket}/reports?region=${var.region}"
}

resource "alicloud_oss_bucket" "policy" {
  bucket        = local.bucket
  storage_class = "Standard"
  force_destroy = !var.deletion_protection
  tags          = local.tags

  # The history of policies is in the ledger, and their bundles are never written twice: an old version is a mistake's.
  lifecycle_rule {
    id      = "old-versions"
    enabled = true
    prefix  = ""

    noncurrent_version_expiration {
      days = 365
    }

    abort_multipart_upload {
      days = 7
    }
  }

  lifecycle {
    ignore_changes = [policy, server_side_encryption_rule, versioning] # the resources below set these
  }
}

resource "alicloud_oss_bucket_acl" "policy" {
  bucket = alicloud_oss_bucket.policy.bucket
  acl    = "private"
}

resource "alicloud_oss_bucket_versioning" "policy" {
  bucket = alicloud_oss_bucket.policy.bucket
  status = "Enabled"
}

resource "alicloud_oss_bucket_server_side_encryption" "policy" {
  bucket        = alicloud_oss_bucket.policy.bucket
  sse_algorithm = "AES256"
}

resource "alicloud_oss_bucket_public_access_block" "policy" {
  bucket              = alicloud_oss_bucket.policy.bucket
  block_public_access = true
}

# Bundles are left out: FC fetches them by itself, and how is not told.
resource "alicloud_oss_bucket_policy" "policy" {
  bucket = alicloud_oss_bucket.policy.bucket
  policy = jsonencode({
    Version = "1"
    Statement = [{
      Effect    = "Deny"
      Principal = ["*"]
      Action    = ["oss:*"]
      Resource  = [for prefix in ["policy", "reports", "secrets"] : "acs:oss:*:${local.account}:${local.bucket}/${prefix}/*"]
      Condition = { Bool = { "acs:SecureTransport" = ["false"] } }
    }]
  })

  depends_on = [alicloud_oss_bucket_public_access_block.policy]
}

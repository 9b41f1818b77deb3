# The bucket that `costguard policy publish` writes to and every function reads, and where digests and bundles are kept.

locals {
  bucket        = "${var.name}-${var.region}-${local.app_id}" # COS wants the account's APPID last
  policy_source = "cos://${local.bucket}/policy?region=${var.region}"
  reports       = "cos://${local.bucket}/reports?region=${var.region}"
}

resource "tencentcloud_cos_bucket" "policy" {
  bucket               = local.bucket
  acl                  = "private"
  versioning_enable    = true
  encryption_algorithm = "AES256"
  force_clean          = !var.deletion_protection
  tags                 = local.tags

  # The history of policies is in the ledger, and their bundles are never written twice: an old version is a mistake's.
  lifecycle_rules {
    id            = "old-versions"
    filter_prefix = ""

    non_current_expiration {
      non_current_days = 365
    }

    abort_incomplete_multipart_upload {
      days_after_initiation = 7
    }
  }
}

# Bundles are left out: SCF fetches them by itself, and how is not told.
resource "tencentcloud_cos_bucket_policy" "policy" {
  bucket = tencentcloud_cos_bucket.policy.bucket
  policy = jsonencode({
    version = "2.0"
    Statement = [{
      Principal = { qcs = ["qcs::cam::anyone:anyone"] }
      Effect    = "deny"
      Action    = ["name/cos:*"]
      Resource  = [for prefix in ["policy", "reports"] : "qcs::cos:${var.region}:uid/${local.app_id}:${local.bucket}/${prefix}/*"]
      Condition = { bool_equal = { "cos:secure-transport" = "false" } }
    }]
  })
}

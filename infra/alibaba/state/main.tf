# The bucket that Terraform's own state is kept in: private, encrypted, versioned, with public access blocked; and the
# table of Tablestore that locks it. `costguard deploy alibaba --backend` applies this before anything else, keeps its
# state in the same bucket, and moves the deployment's there. Nothing of it is destroyed with the deployment.

terraform {
  required_version = ">= 1.9"

  required_providers {
    alicloud = {
      source  = "aliyun/alicloud"
      version = "~> 1.289"
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

provider "alicloud" {
  region = var.region
}

data "alicloud_account" "here" {}

locals {
  account = data.alicloud_account.here.id
  bucket  = "${var.name}-state-${local.account}-${var.region}"
  lock    = "cgstate-${substr(sha256("${local.account}/${var.region}/${var.name}"), 0, 8)}" # Tablestore takes 16 letters
  tags    = { app = "costguard", deployment = var.name }
}

# The provider refuses to make a bucket whose name is taken, by whomever: nothing of anybody else's is written over.
resource "alicloud_oss_bucket" "state" {
  bucket        = local.bucket
  force_destroy = false
  tags          = local.tags

  lifecycle {
    prevent_destroy = true
  }
}

resource "alicloud_oss_bucket_acl" "state" {
  bucket = alicloud_oss_bucket.state.bucket
  acl    = "private"
}

resource "alicloud_oss_bucket_versioning" "state" {
  bucket = alicloud_oss_bucket.state.bucket
  status = "Enabled"
}

resource "alicloud_oss_bucket_server_side_encryption" "state" {
  bucket        = alicloud_oss_bucket.state.bucket
  sse_algorithm = "AES256"
}

resource "alicloud_oss_bucket_public_access_block" "state" {
  bucket              = alicloud_oss_bucket.state.bucket
  block_public_access = true
}

# Terraform's backend "oss" writes a row into it while it works: its key is LockID.
resource "alicloud_ots_instance" "lock" {
  name        = local.lock
  description = "Locks the Terraform state of ${var.name}"
  accessed_by = "Any" # who deploys sits anywhere; RAM says who may
  tags        = local.tags
}

resource "alicloud_ots_table" "lock" {
  instance_name = alicloud_ots_instance.lock.name
  table_name    = "statelock"
  time_to_live  = -1
  max_version   = 1
  enable_sse    = true
  sse_key_type  = "SSE_KMS_SERVICE"

  primary_key {
    name = "LockID"
    type = "String"
  }
}

output "backend" {
  description = "Arguments of Terraform's backend \"oss\", but for its key."
  value = {
    bucket              = local.bucket
    prefix              = "terraform"
    region              = var.region
    encrypt             = true
    acl                 = "private"
    tablestore_endpoint = "https://${local.lock}.${var.region}.ots.aliyuncs.com"
    tablestore_table    = "statelock"
  }
}

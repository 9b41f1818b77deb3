# The bucket that Terraform's own state is kept in: private, encrypted and versioned; its name ends in the account's APPID,
# so that no other account can have made it. `costguard deploy tencent --backend` applies this before anything else, keeps
# its state in the same bucket, and moves the deployment's there. Nothing of it is destroyed with the deployment. Terraform's
# backend "cos" locks by a file beside the state, which it takes by a tag of that name.

terraform {
  required_version = ">= 1.9"

  required_providers {
    tencentcloud = {
      source  = "tencentcloudstack/tencentcloud"
      version = "~> 1.83"
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

provider "tencentcloud" {
  region = var.region
}

data "tencentcloud_user_info" "here" {}

locals {
  bucket = "${var.name}-state-${var.region}-${data.tencentcloud_user_info.here.app_id}"
}

resource "tencentcloud_cos_bucket" "state" {
  bucket               = local.bucket
  acl                  = "private"
  versioning_enable    = true
  encryption_algorithm = "AES256"
  force_clean          = false
  tags                 = { app = "costguard", deployment = var.name }

  lifecycle {
    prevent_destroy = true
  }
}

output "backend" {
  description = "Arguments of Terraform's backend \"cos\", but for its key."
  value       = { bucket = local.bucket, prefix = "terraform", region = var.region, encrypt = true, acl = "private" }
}

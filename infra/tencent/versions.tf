terraform {
  required_version = ">= 1.9" # validations that look at more than their own variable

  required_providers {
    tencentcloud = {
      source  = "tencentcloudstack/tencentcloud"
      version = "~> 1.83" # tests/infra/published/tencent.json: the edition that arguments were held against
    }
  }

  # State holds no secret, but it names everything: `costguard deploy --backend` keeps it in a bucket (state/main.tf), and
  # writes backend.tf, which says so. A backend of your own may stand here instead.
}

provider "tencentcloud" {
  region = var.region
}

data "tencentcloud_user_info" "here" {}

locals {
  account = data.tencentcloud_user_info.here.owner_uin
  app_id  = data.tencentcloud_user_info.here.app_id # another number: buckets carry it
  tags    = merge({ app = "costguard", deployment = var.name }, var.tags)
}

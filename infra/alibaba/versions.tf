terraform {
  required_version = ">= 1.9" # validations that look at more than their own variable

  required_providers {
    alicloud = {
      source  = "aliyun/alicloud"
      version = "~> 1.289" # tests/infra/published/alibaba.json: the edition that arguments were held against
    }
  }

  # State holds no secret, but it names everything: `costguard deploy --backend` keeps it in a bucket (state/main.tf), and
  # writes backend.tf, which says so. A backend of your own may stand here instead.
}

provider "alicloud" {
  region = var.region
}

# Who SLS notifies is kept in one region for the whole account, whichever region its alerts watch.
provider "alicloud" {
  alias  = "alert_center"
  region = var.alert_region
}

data "alicloud_account" "here" {}

locals {
  account = data.alicloud_account.here.id
  tags    = merge({ app = "costguard", deployment = var.name }, var.tags)
}

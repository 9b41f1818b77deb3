terraform {
  required_version = ">= 1.9" # validations that look at more than their own variable

  required_providers {
    alicloud = {
      source  = "aliyun/alicloud"
      version = "~> 1.289" # tests/infra/published/alibaba.json: the edition that arguments were held against
    }
  }

  # State holds no secret, but it names everything: keep it in a private, versioned bucket of your own.
  # backend "oss" {}
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

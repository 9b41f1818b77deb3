terraform {
  required_version = ">= 1.9" # validations that look at more than their own variable

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = "~> 5.80"
    }
  }

  # State holds no secret, but it names everything: `costguard deploy --backend` keeps it in a bucket (state/main.tf), and
  # writes backend.tf, which says so. A backend of your own may stand here instead.
}

provider "aws" {
  region = var.region

  default_tags {
    tags = local.tags
  }
}

data "aws_caller_identity" "here" {}

data "aws_partition" "here" {}

locals {
  account   = data.aws_caller_identity.here.account_id
  partition = data.aws_partition.here.partition
  tags      = merge({ app = "costguard", deployment = var.name }, var.tags)
}

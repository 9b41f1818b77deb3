terraform {
  required_version = ">= 1.9" # validations that look at more than their own variable

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = "~> 5.80"
    }
  }

  # State holds no secret, but it names everything: keep it in a private, versioned bucket of your own.
  # backend "s3" {}
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

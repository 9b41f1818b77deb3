# What a guarded account has: one role for each function that reads clouds, which that function's own role in the
# account of the deployment may assume, and nobody else. Reading; with `acting`, what the function does as well.
# template.yaml has the same roles for CloudFormation StackSets; a test compares.

data "aws_partition" "here" {}

locals {
  folder    = "${path.module}/../../../functions"
  partition = data.aws_partition.here.partition
  known     = { for file in fileset(local.folder, "*/function.yaml") : dirname(file) => yamldecode(file("${local.folder}/${file}")).needs.policies }

  # Of its purposes those about the guarded account; ledger, secrets and files are the deployment's own.
  purposes = {
    for name, policies in local.known : name => concat(
      [for purpose in policies.always : purpose if startswith(purpose, "scan-") || purpose == "deny"],
      var.acting ? try(policies.enforcing, []) : [],
      var.acting ? sort(setintersection(try(policies.asked, []), var.grants)) : [],
    ) if can(policies.members) && (var.functions == null ? true : contains(var.functions, name))
  }
  wanted   = toset(flatten(values(local.purposes)))
  attached = merge([for name, purposes in local.purposes : { for purpose in purposes : "${name}/${purpose}" => { function = name, purpose = purpose } }]...)
  tags     = merge({ app = "costguard" }, var.tags)
}

resource "aws_iam_policy" "purpose" {
  for_each = local.wanted

  name        = "${var.member_role}-${each.key}"
  description = "Costguard: ${each.key}"
  policy      = jsonencode(jsondecode(replace(file("${path.module}/../policies/${each.key}.json"), "arn:aws:", "arn:${local.partition}:")))
  tags        = local.tags
}

resource "aws_iam_role" "member" {
  for_each = local.purposes

  name                 = "${var.member_role}-${each.key}"
  description          = "Costguard's ${each.key} in account ${var.hub_account} enters by it: ${var.acting ? "reads and acts" : "reads"}"
  max_session_duration = 3600
  tags                 = local.tags

  # The account with a condition, not the role as the principal: a role that is made anew would be somebody else.
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = { AWS = "arn:${local.partition}:iam::${var.hub_account}:root" }
      Action    = "sts:AssumeRole"
      Condition = {
        StringEquals = { "sts:ExternalId" = var.external_id }
        ArnEquals    = { "aws:PrincipalArn" = "arn:${local.partition}:iam::${var.hub_account}:role/${var.name}-${each.key}" }
      }
    }]
  })
}

resource "aws_iam_role_policy_attachment" "member" {
  for_each = local.attached

  role       = aws_iam_role.member[each.value.function].name
  policy_arn = aws_iam_policy.purpose[each.value.purpose].arn
}

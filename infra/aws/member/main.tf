# What a guarded account has: one role for each function that reads clouds, which that function's own role in the
# account of the deployment may assume, and nobody else. Reading; with `acting`, what the function does as well.
# template.yaml has the same roles for CloudFormation StackSets, but for freezes of the organisation, which one account
# alone attaches; a test compares.

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

  # As in ../roles.tf: the files name no policy that freezes an organisation, because Organizations chooses its id.
  attaching = "\"Action\": [\"organizations:AttachPolicy\", \"organizations:DetachPolicy\"], "
  freezing  = join("", [for id in sort(var.freeze_policies) : "${jsonencode("arn:aws:organizations::*:policy/o-*/service_control_policy/${id}")}, "])
  documents = {
    for purpose in local.wanted : purpose => replace(replace(replace(file("${path.module}/../policies/${purpose}.json"),
      "${local.attaching}\"Resource\": [", "${local.attaching}\"Resource\": [${local.freezing}"),
      "${local.attaching}\"NotResource\": [", "${local.attaching}\"NotResource\": [${local.freezing}"),
    "arn:aws:", "arn:${local.partition}:")
  }
}

resource "aws_iam_policy" "purpose" {
  for_each = local.wanted

  name        = "${var.member_role}-${each.key}"
  description = "Costguard: ${each.key}"
  policy      = jsonencode(jsondecode(local.documents[each.key]))
  tags        = local.tags

  lifecycle {
    precondition {
      condition     = length(jsonencode(jsondecode(local.documents[each.key]))) <= 6144
      error_message = "A managed policy holds 6,144 characters; ${each.key} has ${length(jsonencode(jsondecode(local.documents[each.key])))}. Name fewer `freeze_policies`: one can be attached to many targets."
    }
    precondition {
      condition     = !contains(["deny", "freeze-organisation"], each.key) || alltrue([for id in var.freeze_policies : strcontains(local.documents[each.key], "/service_control_policy/${id}\"")])
      error_message = "policies/${each.key}.json is not written as it is read here; make it with `costguard permissions aws`."
    }
  }
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

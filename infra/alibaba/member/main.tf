# What a guarded account has: one role for each function that reads clouds, which that function's own role in the
# account of the deployment may assume, and nobody else. Reading; with `acting`, what the function does as well.

locals {
  folder = "${path.module}/../../../functions"
  known  = { for file in fileset(local.folder, "*/function.yaml") : dirname(file) => yamldecode(file("${local.folder}/${file}")).needs.policies }

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
  dashed   = { for name in concat(keys(local.purposes), tolist(local.wanted)) : name => replace(name, "_", "-") } # RAM's names have no underscore
}

resource "alicloud_ram_policy" "purpose" {
  for_each = local.wanted

  policy_name     = "${var.member_role}-${local.dashed[each.key]}"
  description     = "Costguard: ${each.key}"
  policy_document = jsonencode(jsondecode(file("${path.module}/../policies/${each.key}.json")))
  rotate_strategy = "DeleteOldestNonDefaultVersionWhenLimitExceeded"
  tags            = local.tags
}

resource "alicloud_ram_role" "member" {
  for_each = local.purposes

  role_name            = "${var.member_role}-${local.dashed[each.key]}"
  description          = "Costguard's ${each.key} in account ${var.hub_account} enters by it: ${var.acting ? "reads and acts" : "reads"}"
  max_session_duration = 3600
  tags                 = local.tags

  assume_role_policy_document = jsonencode({
    Version = "1"
    Statement = [{
      Effect    = "Allow"
      Principal = { RAM = ["acs:ram::${var.hub_account}:role/${var.name}-${local.dashed[each.key]}"] }
      Action    = "sts:AssumeRole"
      Condition = { StringEquals = { "sts:ExternalId" = var.external_id } }
    }]
  })
}

resource "alicloud_ram_role_policy_attachment" "member" {
  for_each = local.attached

  role_name   = alicloud_ram_role.member[each.value.function].role_name
  policy_name = alicloud_ram_policy.purpose[each.value.purpose].policy_name
  policy_type = "Custom"
}

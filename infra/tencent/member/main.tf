# What a guarded account has: one role for each function that reads clouds. Reading; with `acting`, what the function
# does as well.
#
# CAM's documents let a role trust accounts and users, and tell of no trust in a role: whoever that account lets take
# these roles, and knows the external id, may enter. There `policies/members.json`, narrowed, lets each function take
# its own alone.

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
}

resource "tencentcloud_cam_policy" "purpose" {
  for_each = local.wanted

  name        = "${var.member_role}-${each.key}"
  description = "Costguard: ${each.key}"
  document    = jsonencode(jsondecode(file("${path.module}/../policies/${each.key}.json")))
}

resource "tencentcloud_cam_role" "member" {
  for_each = local.purposes

  name             = "${var.member_role}-${each.key}"
  description      = "Costguard's ${each.key} in account ${var.hub_account} enters by it: ${var.acting ? "reads and acts" : "reads"}"
  console_login    = false
  session_duration = 7200
  tags             = local.tags

  document = jsonencode({
    version = "2.0"
    statement = [{
      effect    = "allow"
      principal = { qcs = ["qcs::cam::uin/${var.hub_account}:root"] }
      action    = ["name/sts:AssumeRole"]
      condition = { string_equal = { "sts:external_id" = var.external_id } }
    }]
  })
}

resource "tencentcloud_cam_role_policy_attachment" "member" {
  for_each = local.attached

  role_id   = tencentcloud_cam_role.member[each.value.function].id
  policy_id = tencentcloud_cam_policy.purpose[each.value.purpose].id
}

# One role a function. What it may do stands in policies/*.json, made from the operations the code can send
# (`costguard permissions tencent`); here they are joined to one document a function, and narrowed from names that begin
# with costguard to what this deployment has. Logs and network cards SCF looks after with its own role (SCF_QcsRole).

locals {
  purposes = { for file in fileset("${path.module}/policies", "*.json") : trimsuffix(file, ".json") => file("${path.module}/policies/${file}") }

  # Function → the purposes of its role; what has no file is nothing here: the ledger asks CAM for no permission.
  granted = {
    for name, facts in local.functions : name => [
      for purpose in distinct(concat(
        facts.needs.policies.always,
        var.enforce ? try(facts.needs.policies.enforcing, []) : [],
        local.has_members ? try(facts.needs.policies.members, []) : [],
        tolist(setintersection(try(facts.needs.policies.asked, []), concat(["reports"], var.enforce ? tolist(var.grants) : []))),
      )) : purpose if contains(keys(local.purposes), purpose)
    ]
  }

  # Function → the secrets it reads, by name.
  secret_names = {
    for name, reads in local.reads : name => sort(distinct([for key, at in var.secrets : split("?", split("#", at)[0])[0] if contains(reads, key)]))
  }

  narrowed = {
    for pair in flatten([for name, purposes in local.granted : [for purpose in purposes : { function = name, purpose = purpose } if !contains(["deny", "members"], purpose)]]) :
    "${pair.function}/${pair.purpose}" => merge(pair, {
      document = replace(replace(replace(
        local.purposes[pair.purpose],
        "\"qcs::cos:::costguard*/*\"", jsonencode("qcs::cos:${var.region}:uid/${local.app_id}:${local.bucket}/policy/*")),
        "\"qcs::cos:::costguard*/reports/*\"", jsonencode("qcs::cos:${var.region}:uid/${local.app_id}:${local.bucket}/reports/*")),
        "\"qcs::ssm:::secret/creatorUin/*/costguard*\"", join(",", [for secret in local.secret_names[pair.function] : jsonencode("qcs::ssm:${var.region}:uin/${local.account}:secret/creatorUin/*/${secret}")])
      )
    }) if pair.purpose != "secrets" || length(local.secret_names[pair.function]) > 0
  }

  documents = {
    for name, _ in local.functions : name => jsonencode({
      version   = "2.0"
      statement = flatten([for key, one in local.narrowed : jsondecode(one.document).statement if one.function == name])
    })
  }
  deny = jsonencode(jsondecode(lookup(local.purposes, "deny", "{}")))
}

# Whom each function enters: its own role in the accounts listed, 60 names to a policy of 6,144 letters; or, of a whole
# organisation, in any account. CAM has no condition on whose role it is: then the program's policy says which accounts
# are entered, and each member's role whom it lets in. A role holds many policies; of how many no page at hand tells, so it is held to ten here.
locals {
  has_members  = var.organisation_id != "" || length(var.member_accounts) > 0
  listed       = chunklist(distinct(var.member_accounts), 60)
  member_lists = merge({ for id in [var.organisation_id] : "organisation" => ["*"] if id != "" }, { for part, ids in local.listed : part => ids })
  members = {
    for pair in setproduct([for name, purposes in local.granted : name if contains(purposes, "members")], keys(local.member_lists)) :
    "${pair[0]}/${pair[1]}" => {
      function = pair[0]
      list     = pair[1]
      document = jsonencode(jsondecode(replace(lookup(local.purposes, "members", "{}"),
      "\"qcs::cam::uin/*:roleName/costguard\"", join(",", [for id in local.member_lists[pair[1]] : jsonencode("qcs::cam::uin/${id}:roleName/${var.member_role}-${pair[0]}")]))))
    }
  }
}

resource "tencentcloud_cam_role" "function" {
  for_each = local.functions

  name          = "${var.name}-${each.key}"
  description   = "Costguard's ${each.key}, ${var.enforce ? "acting" : "observing"}: ${join(", ", local.granted[each.key])}"
  console_login = false
  tags          = local.tags

  document = jsonencode({
    version   = "2.0"
    statement = [{ effect = "allow", principal = { service = ["scf.qcloud.com"] }, action = ["name/sts:AssumeRole"] }]
  })

  lifecycle {
    precondition {
      condition     = length(local.member_lists) <= 8
      error_message = "A role holds ten policies, and eight name ${8 * 60} accounts: ${length(var.member_accounts)} take ${length(local.listed)}. Say `organisation_id` in place of `member_accounts`: one policy then, whatever its size."
    }
  }
}

resource "tencentcloud_cam_policy" "own" {
  for_each = { for name, facts in local.functions : name => facts if length([for one in local.narrowed : one if one.function == name]) > 0 }

  name        = "${var.name}-${each.key}"
  description = "Costguard's ${each.key}: ${join(", ", local.granted[each.key])}"
  document    = local.documents[each.key]

  lifecycle {
    precondition {
      condition     = length(local.documents[each.key]) <= 6144
      error_message = "CAM takes 6,144 letters a policy; that of ${each.key} has ${length(local.documents[each.key])}."
    }
    precondition {
      condition     = alltrue([for one in local.narrowed : !strcontains(one.document, "costguard*")])
      error_message = "A policy is not narrowed: a file in policies/ names something unknown here."
    }
  }
}

resource "tencentcloud_cam_policy" "deny" {
  name        = "${var.name}-deny"
  description = "Costguard: what no run may ever do, whatever else is attached"
  document    = local.deny

  lifecycle {
    precondition {
      condition     = contains(keys(local.purposes), "deny") && length(local.deny) <= 6144
      error_message = "policies/deny.json is missing, or longer than the 6,144 letters that CAM takes."
    }
  }
}

resource "tencentcloud_cam_role_policy_attachment" "own" {
  for_each = tencentcloud_cam_policy.own

  role_id   = tencentcloud_cam_role.function[each.key].id
  policy_id = each.value.id
}

resource "tencentcloud_cam_role_policy_attachment" "deny" {
  for_each = local.functions

  role_id   = tencentcloud_cam_role.function[each.key].id
  policy_id = tencentcloud_cam_policy.deny.id
}

resource "tencentcloud_cam_policy" "members" {
  for_each = local.members

  name        = "${var.name}-${each.value.function}-members-${each.value.list}"
  description = "Costguard: whose accounts ${each.value.function} enters"
  document    = each.value.document

  lifecycle {
    precondition {
      condition     = length(each.value.document) <= 6144 && !strcontains(each.value.document, "roleName/costguard\"")
      error_message = "CAM takes 6,144 letters a policy; that of ${each.key} has ${length(each.value.document)}. Or policies/members.json is not written as it is read here."
    }
  }
}

resource "tencentcloud_cam_role_policy_attachment" "members" {
  for_each = local.members

  role_id   = tencentcloud_cam_role.function[each.value.function].id
  policy_id = tencentcloud_cam_policy.members[each.key].id
}

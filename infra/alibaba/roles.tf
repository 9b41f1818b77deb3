# One role a function. What it may do stands in policies/*.json, made from the operations the code can send
# (`costguard permissions alibaba`); here they are joined to one document a function, and narrowed from names that begin
# with costguard to what this deployment has. Written here are two things that the program does not ask for: FC puts dead
# letters away with the function's role, and KMS decrypts a secret for whoever may use its key. Logs and network cards FC
# looks after with a role of its own (AliyunServiceRoleForFC).

locals {
  dashed = { for name, _ in local.functions : name => replace(name, "_", "-") } # RAM's names have no underscore

  purposes = { for file in fileset("${path.module}/policies", "*.json") : trimsuffix(file, ".json") => file("${path.module}/policies/${file}") }

  mails = lookup(var.settings, "COSTGUARD_MAIL_VIA", "") == "directmail" ? ["mail"] : []

  # Function → the purposes of its role; what has no file is nothing here: the ledger asks RAM for no permission.
  granted = {
    for name, facts in local.functions : name => [
      for purpose in distinct(concat(
        facts.needs.policies.always,
        var.enforce ? try(facts.needs.policies.enforcing, []) : [],
        local.has_members ? try(facts.needs.policies.members, []) : [],
        tolist(setintersection(try(facts.needs.policies.asked, []), concat(local.mails, ["reports"], var.enforce ? tolist(var.grants) : []))),
      )) : purpose if contains(keys(local.purposes), purpose)
    ]
  }

  # Function → the secrets it reads, by name.
  secret_names = {
    for name, reads in local.reads : name => sort(distinct([for key, at in var.secrets : split("#", at)[0] if contains(reads, key)]))
  }

  narrowed = {
    for pair in flatten([for name, purposes in local.granted : [for purpose in purposes : { function = name, purpose = purpose } if !contains(["deny", "members"], purpose)]]) :
    "${pair.function}/${pair.purpose}" => merge(pair, {
      document = replace(replace(replace(
        local.purposes[pair.purpose],
        "\"acs:oss:*:*:costguard*/*\"", jsonencode("acs:oss:*:${local.account}:${local.bucket}/policy/*")),
        "\"acs:oss:*:*:costguard*/reports/*\"", jsonencode("acs:oss:*:${local.account}:${local.bucket}/reports/*")),
        "\"acs:kms:*:*:secret/costguard*\"", join(",", [for secret in local.secret_names[pair.function] : jsonencode("acs:kms:${var.region}:${local.account}:secret/${secret}")])
      )
    }) if pair.purpose != "secrets" || (var.secret_store == "kms" && length(local.secret_names[pair.function]) > 0)
  }

  documents = {
    for name, facts in local.functions : name => jsonencode({
      Version = "1"
      Statement = concat(
        flatten([for key, one in local.narrowed : jsondecode(one.document).Statement if one.function == name]),
        var.secret_store == "bucket" && length(local.secret_names[name]) > 0 ? [{ Effect = "Allow", Action = ["oss:GetObject"], Resource = [for secret in local.secret_names[name] : "acs:oss:*:${local.account}:${local.bucket}/secrets/${secret}"] }] : [],
        var.secret_store == "kms" && length(var.secret_keys) > 0 && length(local.secret_names[name]) > 0 ? [{ Effect = "Allow", Action = ["kms:Decrypt"], Resource = [for id in var.secret_keys : "acs:kms:${var.region}:${local.account}:key/${id}"] }] : [],
        can(facts.schedule) ? [{ Effect = "Allow", Action = ["mns:SendMessage"], Resource = ["${local.dead_letters}/messages", local.dead_letters] }] : [],
      )
    })
  }
  deny = jsonencode(jsondecode(lookup(local.purposes, "deny", "{}")))
}

# Whom each function enters: its own role in the accounts listed, 60 names to a policy of 6,144 letters; or, of a whole
# organisation, in any account. RAM has no condition on whose role it is: then the program's policy says which accounts
# are entered, and each member's role whom it lets in. A role holds ten policies of one's own ("Limitations"; a ticket raises it).
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
      "\"acs:ram::*:role/costguard\"", join(",", [for id in local.member_lists[pair[1]] : jsonencode("acs:ram::${id}:role/${var.member_role}-${local.dashed[pair[0]]}")]))))
    }
  }
}

resource "alicloud_ram_role" "function" {
  for_each = local.functions

  role_name   = "${var.name}-${local.dashed[each.key]}"
  description = "Costguard's ${each.key}, ${var.enforce ? "acting" : "observing"}: ${join(", ", local.granted[each.key])}"
  tags        = local.tags

  assume_role_policy_document = jsonencode({
    Version   = "1"
    Statement = [{ Effect = "Allow", Principal = { Service = ["fc.aliyuncs.com"] }, Action = "sts:AssumeRole" }]
  })

  lifecycle {
    precondition {
      condition     = length(local.member_lists) <= 8
      error_message = "A role holds ten policies, and eight name ${8 * 60} accounts: ${length(var.member_accounts)} take ${length(local.listed)}. Say `organisation_id` in place of `member_accounts`: one policy then, whatever its size."
    }
  }
}

resource "alicloud_ram_policy" "own" {
  for_each = local.functions

  policy_name     = "${var.name}-${local.dashed[each.key]}"
  description     = "Costguard's ${each.key}: ${join(", ", local.granted[each.key])}"
  policy_document = local.documents[each.key]
  rotate_strategy = "DeleteOldestNonDefaultVersionWhenLimitExceeded"
  tags            = local.tags

  lifecycle {
    precondition {
      condition     = length(local.documents[each.key]) <= 6144
      error_message = "RAM takes 6,144 letters a policy; that of ${each.key} has ${length(local.documents[each.key])}."
    }
    precondition {
      condition     = alltrue([for one in local.narrowed : !strcontains(one.document, "costguard*")])
      error_message = "A policy is not narrowed: a file in policies/ names something unknown here."
    }
  }
}

resource "alicloud_ram_policy" "deny" {
  policy_name     = "${var.name}-deny"
  description     = "Costguard: what no run may ever do, whatever else is attached"
  policy_document = local.deny
  rotate_strategy = "DeleteOldestNonDefaultVersionWhenLimitExceeded"
  tags            = local.tags

  lifecycle {
    precondition {
      condition     = contains(keys(local.purposes), "deny") && length(local.deny) <= 6144
      error_message = "policies/deny.json is missing, or longer than the 6,144 letters that RAM takes."
    }
  }
}

resource "alicloud_ram_role_policy_attachment" "own" {
  for_each = local.functions

  role_name   = alicloud_ram_role.function[each.key].role_name
  policy_name = alicloud_ram_policy.own[each.key].policy_name
  policy_type = "Custom"
}

resource "alicloud_ram_role_policy_attachment" "deny" {
  for_each = local.functions

  role_name   = alicloud_ram_role.function[each.key].role_name
  policy_name = alicloud_ram_policy.deny.policy_name
  policy_type = "Custom"
}

resource "alicloud_ram_policy" "members" {
  for_each = local.members

  policy_name     = "${var.name}-${local.dashed[each.value.function]}-members-${each.value.list}"
  description     = "Costguard: whose accounts ${each.value.function} enters"
  policy_document = each.value.document
  rotate_strategy = "DeleteOldestNonDefaultVersionWhenLimitExceeded"
  tags            = local.tags

  lifecycle {
    precondition {
      condition     = length(each.value.document) <= 6144 && !strcontains(each.value.document, "role/costguard\"")
      error_message = "RAM takes 6,144 letters a policy; that of ${each.key} has ${length(each.value.document)}. Or policies/members.json is not written as it is read here."
    }
  }
}

resource "alicloud_ram_role_policy_attachment" "members" {
  for_each = local.members

  role_name   = alicloud_ram_role.function[each.value.function].role_name
  policy_name = alicloud_ram_policy.members[each.key].policy_name
  policy_type = "Custom"
}

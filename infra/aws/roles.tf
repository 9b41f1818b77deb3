# One role a function. What it may do stands in policies/*.json, made from the operations the code can send
# (`costguard permissions aws`); here they are only narrowed from names that begin with costguard to what this
# deployment has. Written here are two things that the host needs, not the program: its log and its dead letters.

locals {
  purposes = { for file in fileset("${path.module}/policies", "*.json") : trimsuffix(file, ".json") => file("${path.module}/policies/${file}") }

  # Of those that a function has only where they are asked for.
  asked_for = concat(["reports"], lookup(var.settings, "COSTGUARD_MAIL_VIA", "") == "ses" ? ["mail"] : [], var.enforce ? tolist(var.grants) : [])

  # Function → the purposes of its role.
  granted = {
    for name, facts in local.functions : name => distinct(concat(
      facts.needs.policies.always,
      var.enforce ? try(facts.needs.policies.enforcing, []) : [],
      local.has_members ? try(facts.needs.policies.members, []) : [],
      [for purpose in try(facts.needs.policies.asked, []) : purpose if contains(local.asked_for, purpose)],
    ))
  }

  # Function → the ARNs of the secrets it reads.
  secret_arns = {
    for name, reads in local.reads : name => sort(distinct([
      for key, at in var.secrets : data.aws_secretsmanager_secret.named[split("#", at)[0]].arn if contains(reads, key)
    ]))
  }

  # Purposes about things of this deployment: narrowed, function by function, and kept inside its role.
  own = toset(["clicks", "ledger", "objects", "reports", "secrets"])

  narrowed = {
    for pair in flatten([for name, purposes in local.granted : [for purpose in purposes : { function = name, purpose = purpose } if contains(local.own, purpose)]]) :
    "${pair.function}/${pair.purpose}" => merge(pair, {
      document = replace(replace(replace(replace(replace(
        lookup(local.purposes, pair.purpose, ""),
        "\"arn:aws:dynamodb:*:*:table/costguard*\"", jsonencode(aws_dynamodb_table.ledger.arn)),
        "\"arn:aws:s3:::costguard*/*\"", jsonencode("${aws_s3_bucket.policy.arn}/policy/*")),
        "\"arn:aws:s3:::costguard*/reports/*\"", jsonencode("${aws_s3_bucket.policy.arn}/reports/*")),
        "\"arn:aws:secretsmanager:*:*:secret:costguard*\"", join(",", [for arn in local.secret_arns[pair.function] : jsonencode(arn)])),
      "arn:aws:", "arn:${local.partition}:")
    }) if pair.purpose != "secrets" || length(local.secret_arns[pair.function]) > 0
  }

  # The others are the same for all who have them: one policy each, attached. Those two that name the policies which
  # freeze an organisation get their ids here: Organizations chooses them, so the files name none.
  shared = toset([for purpose in distinct(flatten(values(local.granted))) : purpose if !contains(local.own, purpose) && purpose != "members"])
  shared_documents = {
    for purpose in local.shared : purpose => replace(replace(replace(lookup(local.purposes, purpose, "{}"),
      "${local.attaching}\"Resource\": [", "${local.attaching}\"Resource\": [${local.freezing}"),
      "${local.attaching}\"NotResource\": [", "${local.attaching}\"NotResource\": [${local.freezing}"),
    "arn:aws:", "arn:${local.partition}:")
  }
  attaching = "\"Action\": [\"organizations:AttachPolicy\", \"organizations:DetachPolicy\"], "
  freezing  = join("", [for id in sort(var.freeze_policies) : "${jsonencode("arn:aws:organizations::*:policy/o-*/service_control_policy/${id}")}, "])
  attached = merge([
    for name, purposes in local.granted : {
      for purpose in purposes : "${name}/${purpose}" => { function = name, purpose = purpose } if contains(local.shared, purpose)
    }
  ]...)
}

# Whom each function enters: its own role in any account of the organisation, or in those listed. Whose role it is, is
# a condition and no list of ARNs: a role's own policies hold 10,240 characters together and a managed one 6,144 ("IAM
# and AWS STS quotas"), and 91 ARNs fill the latter where 350 ids leave room. Both keys are there for every resource of
# an account, sts:AssumeRole is not among the actions without them ("AWS global condition context keys").
locals {
  has_members = var.organisation_id != "" || length(var.member_accounts) > 0
  listed      = chunklist(distinct(var.member_accounts), 350)
  member_lists = merge(
    { for id in [var.organisation_id] : "organisation" => { key = "aws:ResourceOrgID", ids = [id] } if id != "" },
    { for part, ids in local.listed : part => { key = "aws:ResourceAccount", ids = ids } },
  )
  members = {
    for pair in setproduct([for name, purposes in local.granted : name if contains(purposes, "members")], keys(local.member_lists)) :
    "${pair[0]}/${pair[1]}" => {
      function = pair[0]
      list     = pair[1]
      document = replace(replace(lookup(local.purposes, "members", "{}"),
        "\"arn:aws:iam::*:role/costguard\"]", "${jsonencode("arn:aws:iam::*:role/${var.member_role}-${pair[0]}")}], \"Condition\": ${jsonencode({ StringEquals = { (local.member_lists[pair[1]].key) = local.member_lists[pair[1]].ids } })}"),
      "arn:aws:", "arn:${local.partition}:")
    }
  }

  # Function → what is attached to its role; ten by default, twenty at most ("IAM and AWS STS quotas").
  managed = {
    for name, _ in local.functions : name => concat(
      [for one in values(local.attached) : one.purpose if one.function == name],
      [for one in values(local.members) : "members-${one.list}" if one.function == name],
    )
  }
}

data "aws_secretsmanager_secret" "named" {
  for_each = toset([for at in values(var.secrets) : split("#", at)[0]])

  name = each.key # its description only: a value is read by the functions alone
}

resource "aws_iam_role" "function" {
  for_each = local.functions

  name        = "${var.name}-${each.key}"
  description = "Costguard's ${each.key}, ${var.enforce ? "acting" : "observing"}: ${join(", ", local.granted[each.key])}"

  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = { Service = "lambda.amazonaws.com" }
      Action    = "sts:AssumeRole"
    }]
  })

  lifecycle {
    precondition {
      condition     = length(setsubtract(local.granted[each.key], keys(local.purposes))) == 0
      error_message = "policies/ lacks ${join(", ", setsubtract(local.granted[each.key], keys(local.purposes)))}; make it with `costguard permissions aws`."
    }
    precondition {
      condition     = length(local.managed[each.key]) <= 10
      error_message = "A role holds ten managed policies, and ${each.key} would have ${length(local.managed[each.key])}: ${length(var.member_accounts)} accounts take ${length(local.listed)} of them. Say `organisation_id` in place of `member_accounts`: one policy then, whatever its size."
    }
  }
}

resource "aws_iam_policy" "shared" {
  for_each = local.shared

  name        = "${var.name}-${each.key}"
  description = "Costguard: ${each.key}"
  policy      = jsonencode(jsondecode(local.shared_documents[each.key]))

  lifecycle {
    precondition {
      condition     = length(jsonencode(jsondecode(local.shared_documents[each.key]))) <= 6144
      error_message = "A managed policy holds 6,144 characters; ${each.key} has ${length(jsonencode(jsondecode(local.shared_documents[each.key])))}. Name fewer `freeze_policies`: one can be attached to many targets."
    }
    precondition {
      condition     = !contains(["deny", "freeze-organisation"], each.key) || alltrue([for id in var.freeze_policies : strcontains(local.shared_documents[each.key], "/service_control_policy/${id}\"")])
      error_message = "policies/${each.key}.json is not written as it is read here; make it with `costguard permissions aws`."
    }
  }
}

resource "aws_iam_policy" "members" {
  for_each = local.members

  name        = "${var.name}-${replace(each.key, "/", "-members-")}"
  description = "Costguard: whose accounts ${each.value.function} enters"
  policy      = jsonencode(jsondecode(each.value.document))

  lifecycle {
    precondition {
      condition     = strcontains(each.value.document, "\"Condition\"") && !strcontains(each.value.document, "role/costguard\"")
      error_message = "policies/members.json is not written as it is read here; make it with `costguard permissions aws`."
    }
    precondition {
      condition     = length(jsonencode(jsondecode(each.value.document))) <= 6144
      error_message = "A managed policy holds 6,144 characters; ${each.key} has ${length(jsonencode(jsondecode(each.value.document)))}."
    }
  }
}

resource "aws_iam_role_policy_attachment" "members" {
  for_each = local.members

  role       = aws_iam_role.function[each.value.function].name
  policy_arn = aws_iam_policy.members[each.key].arn
}

resource "aws_iam_role_policy_attachment" "function" {
  for_each = local.attached

  role       = aws_iam_role.function[each.value.function].name
  policy_arn = aws_iam_policy.shared[each.value.purpose].arn
}

resource "aws_iam_role_policy" "own" {
  for_each = local.narrowed

  name   = each.value.purpose
  role   = aws_iam_role.function[each.value.function].id
  policy = jsonencode(jsondecode(each.value.document))

  lifecycle {
    precondition {
      condition     = !strcontains(each.value.document, "costguard*") && !strcontains(each.value.document, "::*:role/")
      error_message = "${each.key} is not narrowed: policies/${each.value.purpose}.json names something unknown here."
    }
  }
}

resource "aws_iam_role_policy" "platform" {
  for_each = local.functions

  name = "platform"
  role = aws_iam_role.function[each.key].id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = concat(contains(local.beats_itself, each.key) ? [{
      Sid      = "TellOfSuccess"
      Effect   = "Allow"
      Action   = "events:PutEvents"
      Resource = local.bus
      }] : [], [
      {
        Sid      = "WriteOwnLog"
        Effect   = "Allow"
        Action   = ["logs:CreateLogStream", "logs:PutLogEvents"]
        Resource = "${aws_cloudwatch_log_group.function[each.key].arn}:*"
      },
      {
        Sid      = "KeepWhatFailed"
        Effect   = "Allow"
        Action   = "sqs:SendMessage"
        Resource = aws_sqs_queue.dead_letters.arn
      },
    ])
  })
}

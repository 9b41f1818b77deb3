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
      length(var.member_accounts) > 0 ? try(facts.needs.policies.members, []) : [],
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
  own = toset(["clicks", "ledger", "members", "objects", "reports", "secrets"])

  narrowed = {
    for pair in flatten([for name, purposes in local.granted : [for purpose in purposes : { function = name, purpose = purpose } if contains(local.own, purpose)]]) :
    "${pair.function}/${pair.purpose}" => merge(pair, {
      document = replace(replace(replace(replace(replace(replace(
        lookup(local.purposes, pair.purpose, ""),
        "\"arn:aws:dynamodb:*:*:table/costguard*\"", jsonencode(aws_dynamodb_table.ledger.arn)),
        "\"arn:aws:s3:::costguard*/*\"", jsonencode("${aws_s3_bucket.policy.arn}/policy/*")),
        "\"arn:aws:s3:::costguard*/reports/*\"", jsonencode("${aws_s3_bucket.policy.arn}/reports/*")),
        "\"arn:aws:secretsmanager:*:*:secret:costguard*\"", join(",", [for arn in local.secret_arns[pair.function] : jsonencode(arn)])),
        "\"arn:aws:iam::*:role/costguard\"", join(",", [for id in var.member_accounts : jsonencode("arn:aws:iam::${id}:role/${var.member_role}-${pair.function}")])),
      "arn:aws:", "arn:${local.partition}:")
    }) if pair.purpose != "secrets" || length(local.secret_arns[pair.function]) > 0
  }

  # The others are the same for all who have them: one policy each, attached.
  shared = toset([for purpose in distinct(flatten(values(local.granted))) : purpose if !contains(local.own, purpose)])
  attached = merge([
    for name, purposes in local.granted : {
      for purpose in purposes : "${name}/${purpose}" => { function = name, purpose = purpose } if contains(local.shared, purpose)
    }
  ]...)
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
  }
}

resource "aws_iam_policy" "shared" {
  for_each = local.shared

  name        = "${var.name}-${each.key}"
  description = "Costguard: ${each.key}"
  policy      = jsonencode(jsondecode(replace(lookup(local.purposes, each.key, "{}"), "arn:aws:", "arn:${local.partition}:")))
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
    Statement = concat(contains(keys(local.beating), each.key) ? [{
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

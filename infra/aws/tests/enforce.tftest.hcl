# What `enforce`, members and the further variables add.

mock_provider "aws" {
  source = "./tests/mocks"
}

variables {
  region  = "us-east-1"
  secrets = { COSTGUARD_SLACK_SIGNING_SECRET = "costguard/slack-signing-secret" }
}

run "enforce_grants_acting" {
  command = apply

  variables {
    enforce = true
  }

  assert {
    condition = { for name, granted in local.granted : name => [for one in granted : one if can(regex("^(act|rotate|succeed|fix|freeze)", one))] } == {
      budget = ["act-budget"], digest = [], idle_gpu = ["act-idle_gpu"], kms_rotation = ["rotate"], network_audit = ["fix_network"], slack_actions = []
    }
    error_message = "each acts with its own purpose"
  }
  assert {
    condition     = !strcontains(aws_iam_policy.shared["act-budget"].policy, "TerminateInstances")
    error_message = "a budget stops only"
  }
}

run "successors_are_asked_for" {
  command = apply

  variables {
    enforce = true
    grants  = ["succeed"]
  }

  assert {
    condition     = [for name, granted in local.granted : name if contains(granted, "succeed")] == ["kms_rotation"]
    error_message = "successors of keys only where they are asked for"
  }
}

run "grants_wait_for_enforce" {
  command = apply

  variables {
    grants = ["succeed"]
  }

  assert {
    condition     = !contains(local.granted["kms_rotation"], "succeed")
    error_message = "observing, nothing is made"
  }
}

run "members_are_entered_by_role" {
  command = apply

  variables {
    member_accounts = ["222233334444", "033344445555"]
    settings        = { COSTGUARD_AWS_EXTERNAL_ID = "made-up" }
  }

  assert {
    condition     = local.environment["idle_gpu"]["COSTGUARD_AWS_ROLE"] == "costguard-member-idle_gpu" && local.environment["idle_gpu"]["COSTGUARD_AWS_EXTERNAL_ID"] == "made-up"
    error_message = "each function enters by its own role"
  }
  assert {
    condition     = [for name, env in local.environment : name if contains(keys(env), "COSTGUARD_AWS_ROLE")] == ["budget", "idle_gpu", "kms_rotation", "network_audit"]
    error_message = "who asks no cloud enters no account"
  }
  assert {
    condition     = one([for statement in jsondecode(aws_iam_policy.members["budget/0"].policy).Statement : [statement.Resource, statement.Condition.StringEquals] if statement.Sid == "Assume"]) == [["arn:aws:iam::*:role/costguard-member-budget"], { "aws:ResourceAccount" = ["222233334444", "033344445555"] }]
    error_message = "these accounts, and this function's role there"
  }
  assert {
    condition     = keys(aws_iam_policy.members) == ["budget/0", "idle_gpu/0", "kms_rotation/0", "network_audit/0"] && keys(aws_iam_role_policy_attachment.members) == keys(aws_iam_policy.members)
    error_message = "one policy each, attached"
  }
}

run "a_thousand_members_of_an_organisation" {
  command = apply

  variables {
    organisation_id = "o-a1b2c3d4e5"
    enforce         = true
    grants          = ["succeed", "freeze", "freeze-organisation"]
    freeze_policies = ["p-7f3k2m9q"]
    settings        = { COSTGUARD_AWS_EXTERNAL_ID = "made-up", COSTGUARD_MAIL_VIA = "ses" }
  }

  assert {
    condition     = one([for statement in jsondecode(aws_iam_policy.members["idle_gpu/organisation"].policy).Statement : [statement.Resource, statement.Condition.StringEquals] if statement.Sid == "Assume"]) == [["arn:aws:iam::*:role/costguard-member-idle_gpu"], { "aws:ResourceOrgID" = ["o-a1b2c3d4e5"] }]
    error_message = "this function's role in any account of the organisation, however many it has"
  }
  assert {
    condition     = length(aws_iam_policy.members) == 4 && local.environment["idle_gpu"]["COSTGUARD_AWS_ROLE"] == "costguard-member-idle_gpu"
    error_message = "one policy a function"
  }
  assert {
    condition     = alltrue([for name, _ in local.functions : length(local.managed[name]) <= 10])
    error_message = "a role holds ten managed policies, with everything asked for too"
  }
}

run "a_thousand_members_by_number" {
  command = apply

  variables {
    member_accounts = [for number in range(1000) : format("%012d", 100000000000 + number)]
    enforce         = true
    grants          = ["succeed", "freeze", "freeze-organisation"]
    freeze_policies = ["p-7f3k2m9q"]
    settings        = { COSTGUARD_AWS_EXTERNAL_ID = "made-up", COSTGUARD_MAIL_VIA = "ses" }
  }

  assert {
    condition = alltrue([for name in ["budget", "idle_gpu", "kms_rotation", "network_audit"] :
      tolist(flatten([for key, policy in aws_iam_policy.members : [for statement in jsondecode(policy.policy).Statement : statement.Condition.StringEquals["aws:ResourceAccount"] if statement.Sid == "Assume"] if startswith(key, "${name}/")])) == var.member_accounts
    ])
    error_message = "every account, once, for each function"
  }
  assert {
    condition     = alltrue([for policy in aws_iam_policy.members : length(policy.policy) <= 6144])
    error_message = "a managed policy holds 6,144 characters"
  }
  assert {
    condition     = alltrue([for name, _ in local.functions : sum(concat([0], [for key, policy in aws_iam_role_policy.own : length(policy.policy) if startswith(key, "${name}/")])) + length(aws_iam_role_policy.platform[name].policy) <= 10240])
    error_message = "a role's own policies hold 10,240 characters together"
  }
  assert {
    condition     = alltrue([for name, _ in local.functions : length(local.managed[name]) <= 10])
    error_message = "a role holds ten managed policies"
  }
}

run "more_members_than_a_role_can_name" {
  command = plan

  variables {
    member_accounts = [for pair in setproduct(range(4), range(1000)) : format("%012d", 100000000000 + 1000 * pair[0] + pair[1])]
  }

  expect_failures = [aws_iam_role.function]
}

run "an_organisation_is_frozen_by_its_own_policy_alone" {
  command = apply

  variables {
    enforce         = true
    grants          = ["freeze-organisation"]
    freeze_policies = ["p-7f3k2m9q", "p-0c4d8e1a"]
  }

  assert {
    condition     = [for name, granted in local.granted : name if contains(granted, "freeze-organisation")] == ["budget"]
    error_message = "budgets freeze"
  }
  assert {
    condition = alltrue([for named in [
      one([for one in jsondecode(aws_iam_policy.shared["freeze-organisation"].policy).Statement : one.Resource if one.Sid == "AttachTheFreezeAlone"]),
      one([for one in jsondecode(aws_iam_policy.shared["deny"].policy).Statement : one.NotResource if one.Sid == "NeverAttachInTheOrganisationButTheFreeze"]),
      ] : [for arn in named : split("/", arn)[3] if strcontains(arn, "service_control_policy")] == ["p-0c4d8e1a", "p-7f3k2m9q"]
    ])
    error_message = "what is allowed and what the denial leaves out are these policies, by their ids"
  }
}

run "another_partition" {
  command = apply

  variables {
    region          = "cn-north-1"
    member_accounts = ["222233334444"]
  }

  override_data {
    target = data.aws_partition.here
    values = { partition = "aws-cn" }
  }

  assert {
    condition     = strcontains(aws_iam_policy.members["budget/0"].policy, "arn:aws-cn:iam::*:role/costguard-member-budget")
    error_message = "arn:aws: stands for the partition"
  }
  assert {
    condition     = alltrue([for policy in aws_iam_policy.shared : !strcontains(policy.policy, "arn:aws:")])
    error_message = "nowhere another partition's"
  }
}

run "another_name" {
  command = apply

  variables {
    name = "gpu-watch"
  }

  assert {
    condition     = output.policy_source == "s3://gpu-watch-111122223333-us-east-1/policy?region=us-east-1" && output.ledger == "dynamodb://gpu-watch-ledger?region=us-east-1"
    error_message = "the name begins every other"
  }
  assert {
    condition = alltrue([for name, alarm in merge(aws_cloudwatch_metric_alarm.missed, aws_cloudwatch_metric_alarm.dead_man) :
      alarm.dimensions == tomap({ service = local.environment[name]["COSTGUARD_NAME"], function = name }) && alarm.dimensions.service == "gpu-watch"
    ])
    error_message = "and is what its figures are told apart by: a deployment beside it would hide that this one is silent"
  }
  assert {
    condition     = length(aws_cloudwatch_event_rule.heartbeat) == 0
    error_message = "no heartbeat unless it is asked for"
  }
  assert {
    condition     = alltrue([for policy in aws_iam_role_policy.own : !strcontains(policy.policy, "costguard*")])
    error_message = "permissions are narrowed to what there is, whatever it is called"
  }
}

run "some_functions_alone" {
  command = apply

  variables {
    functions = ["idle_gpu"]
    secrets   = {}
  }

  assert {
    condition     = keys(aws_lambda_function.function) == ["idle_gpu"] && output.answer_url == "" && length(aws_apigatewayv2_api.answers) == 0
    error_message = "no endpoint where nothing answers"
  }
  assert {
    condition     = !contains(keys(aws_iam_role_policy.own), "idle_gpu/secrets")
    error_message = "no secret, no permission"
  }
  assert {
    condition     = !contains(keys(aws_cloudwatch_metric_alarm.line), "DigestOverdue")
    error_message = "no digest is missed where none is sent"
  }
}

run "a_digest_of_the_month" {
  command = plan

  variables {
    schedules = { digest = "11 1 1 * *" }
  }

  assert {
    condition     = !contains(keys(aws_cloudwatch_metric_alarm.line), "DigestOverdue")
    error_message = "what is told after eight days is of a weekly one"
  }
}

run "made_ready_for_removal" {
  command = apply

  variables {
    deletion_protection = false
  }

  assert {
    condition     = aws_s3_bucket.policy.force_destroy && !aws_dynamodb_table.ledger.deletion_protection_enabled
    error_message = "only said aloud may it be destroyed"
  }
}

run "a_heart_beats_for_somebody_elsewhere" {
  command = apply

  variables {
    heartbeat_url = "https://beats.example.com/made-up"
  }

  assert {
    condition     = [for name, config in aws_lambda_function_event_invoke_config.timed : name if length(config.destination_config) > 0] == ["idle_gpu"]
    error_message = "it is idle_gpu's"
  }
  assert {
    condition     = [for name, policy in aws_iam_role_policy.platform : name if strcontains(policy.policy, "PutEvents")] == ["idle_gpu"]
    error_message = "and nobody else may tell of it"
  }
}

run "a_heart_beats_for_phases_too" {
  command = apply

  variables {
    heartbeat_url = "https://beats.example.com/made-up"
    distributed   = true
  }

  assert {
    condition = jsondecode(one(values(aws_cloudwatch_event_rule.heartbeat)).event_pattern) == {
      source        = ["aws.states"]
      "detail-type" = ["Step Functions Execution Status Change"]
      detail        = { status = ["SUCCEEDED"], stateMachineArn = [aws_sfn_state_machine.organisation["organisation"].arn] }
    }
    error_message = "a run in phases is the state machine's"
  }
  assert {
    condition     = length([for config in aws_lambda_function_event_invoke_config.timed : config if length(config.destination_config) > 0]) == 0 && alltrue([for policy in aws_iam_role_policy.platform : !strcontains(policy.policy, "PutEvents")])
    error_message = "and no function tells of it: Step Functions does by itself"
  }
  assert {
    condition     = keys(aws_cloudwatch_event_target.heartbeat) == ["idle_gpu"]
    error_message = "it calls the address"
  }
}

run "phases_take_the_place_of_one_function" {
  command = apply

  variables {
    distributed = true
  }

  assert {
    condition     = [for name, schedule in aws_scheduler_schedule.function : name if schedule.state != "ENABLED"] == ["idle_gpu"]
    error_message = "idle_gpu is not started twice"
  }
  assert {
    condition     = contains(keys(aws_cloudwatch_metric_alarm.dead_man), "idle_gpu")
    error_message = "and is missed all the same: the last phase writes the figures of the run"
  }
}

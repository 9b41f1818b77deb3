# What stands after a first apply: it observes, and can do nothing else.

mock_provider "aws" {
  source = "./tests/mocks"
}

variables {
  region     = "us-east-1"
  secrets    = { COSTGUARD_SLACK_SIGNING_SECRET = "costguard/slack-signing-secret", COSTGUARD_SLACK_TOKEN = "costguard/slack#token" }
  settings   = { COSTGUARD_LANG = "zh", COSTGUARD_PAUSED = "1", COSTGUARD_MAIL_FROM = "costguard@example.com", COSTGUARD_CLOUD = "aws" }
  alarm_mail = "ops@example.com"
}

run "observes" {
  command = apply

  assert {
    condition     = toset(keys(aws_lambda_function.function)) == toset(["budget", "digest", "idle_gpu", "kms_rotation", "network_audit", "slack_actions"])
    error_message = "every function is deployed"
  }
  assert {
    condition     = length([for purpose in keys(aws_iam_policy.shared) : purpose if can(regex("^(act|rotate|succeed|fix|freeze)", purpose))]) == 0
    error_message = "no acting purpose without enforce"
  }
  assert {
    condition     = alltrue([for policy in aws_iam_policy.shared : !strcontains(policy.policy, "\"Allow\",\"Action\":[\"ec2:St")])
    error_message = "nothing that stops"
  }
  assert {
    condition     = length(aws_iam_role.function) == length(aws_lambda_function.function)
    error_message = "one role a function"
  }
  assert {
    condition     = alltrue([for name, role in aws_iam_role.function : role.name == "costguard-${name}"])
    error_message = "roles are named for their function"
  }
  assert {
    condition     = alltrue([for name, granted in local.granted : contains(granted, "deny")])
    error_message = "the denials are attached to all"
  }
  assert {
    condition     = !strcontains(aws_iam_policy.shared["deny"].policy, "service_control_policy")
    error_message = "no policy of an organisation is left out of them before one is named"
  }
  assert {
    condition     = toset(local.granted["slack_actions"]) == toset(["clicks", "deny", "objects", "secrets"])
    error_message = "who takes clicks asks no cloud"
  }
  assert {
    condition     = length(aws_iam_policy.members) == 0 && !anytrue([for granted in local.granted : contains(granted, "members")])
    error_message = "nobody assumes a role where there are no members"
  }
  assert {
    condition     = length(aws_iam_role_policy_attachment.function) == sum([for granted in local.granted : length([for one in granted : one if !contains(local.own, one)])])
    error_message = "every shared purpose is attached"
  }

  # Functions are as their function.yaml says.
  assert {
    condition = alltrue([for name, function in aws_lambda_function.function :
    function.timeout == local.known[name].timeout_seconds && function.memory_size == local.known[name].memory_mib])
    error_message = "timeout and memory come from function.yaml"
  }
  assert {
    condition     = alltrue([for function in aws_lambda_function.function : function.runtime == "python3.13" && function.handler == "handler.handler"])
    error_message = "Python 3.13"
  }
  assert {
    condition     = alltrue([for name, _ in local.timed : aws_lambda_function.function[name].reserved_concurrent_executions == 1])
    error_message = "two runs of a guard never overlap"
  }
  assert {
    condition     = aws_lambda_function.function["slack_actions"].reserved_concurrent_executions == -1
    error_message = "answers do not wait for each other"
  }
  assert {
    condition     = alltrue([for function in aws_lambda_function.function : length(function.dead_letter_config) == 1])
    error_message = "what failed is kept"
  }
  assert {
    condition     = alltrue([for group in aws_cloudwatch_log_group.function : group.retention_in_days == 90])
    error_message = "logs end"
  }

  # Settings reach those who read them, secrets by name.
  assert {
    condition     = local.environment["idle_gpu"]["COSTGUARD_SLACK_TOKEN"] == "secret:costguard/slack#token"
    error_message = "a secret goes by name"
  }
  assert {
    condition     = [for name, env in local.environment : name if contains(keys(env), "COSTGUARD_SLACK_SIGNING_SECRET")] == ["slack_actions"]
    error_message = "only who reads a secret is told its name"
  }
  assert {
    condition     = alltrue([for env in local.environment : env["COSTGUARD_PAUSED"] == "1"])
    error_message = "the kill switch reaches everything"
  }
  assert {
    condition     = [for name, env in local.environment : name if contains(keys(env), "COSTGUARD_MAIL_FROM")] == [for name, reads in local.reads : name if contains(reads, "COSTGUARD_MAIL_FROM")]
    error_message = "a setting of some functions goes to those"
  }
  assert {
    condition     = alltrue([for env in local.environment : env["COSTGUARD_NAME"] == "costguard" && env["COSTGUARD_CLOUD"] == "aws" && env["COSTGUARD_POLICY"] == output.policy_source && env["COSTGUARD_LEDGER"] == output.ledger])
    error_message = "a setting of none goes to all; policy and ledger too"
  }
  assert {
    condition     = local.environment["slack_actions"]["COSTGUARD_ANSWER_URL"] == output.answer_url && output.answer_url != ""
    error_message = "who answers knows its own address"
  }
  assert {
    condition     = alltrue([for env in local.environment : !contains(keys(env), "COSTGUARD_AWS_ROLE")])
    error_message = "no role to assume without members"
  }
  assert {
    condition     = jsondecode(aws_iam_role_policy.own["idle_gpu/secrets"].policy).Statement[0].Resource == ["arn:aws:secretsmanager:us-east-1:111122223333:secret:costguard/made-up-a1b2c3"]
    error_message = "exactly the secrets that are named"
  }

  # What is kept is private.
  assert {
    condition     = alltrue([aws_s3_bucket_public_access_block.policy.block_public_acls, aws_s3_bucket_public_access_block.policy.block_public_policy, aws_s3_bucket_public_access_block.policy.ignore_public_acls, aws_s3_bucket_public_access_block.policy.restrict_public_buckets])
    error_message = "nothing in the bucket is public"
  }
  assert {
    condition     = aws_s3_bucket_versioning.policy.versioning_configuration[0].status == "Enabled" && !aws_s3_bucket.policy.force_destroy
    error_message = "the bucket keeps versions, and stays"
  }
  assert {
    condition     = jsondecode(aws_s3_bucket_policy.policy.policy).Statement[0].Effect == "Deny" && jsondecode(aws_s3_bucket_policy.policy.policy).Statement[0].Condition.Bool["aws:SecureTransport"] == "false"
    error_message = "TLS only"
  }
  assert {
    condition     = aws_dynamodb_table.ledger.hash_key == "kind" && aws_dynamodb_table.ledger.range_key == "key" && aws_dynamodb_table.ledger.deletion_protection_enabled && aws_dynamodb_table.ledger.point_in_time_recovery[0].enabled && aws_dynamodb_table.ledger.server_side_encryption[0].enabled
    error_message = "the ledger is the table that providers/aws/store.py reads, and is kept"
  }
  assert {
    condition     = aws_sqs_queue.dead_letters.sqs_managed_sse_enabled
    error_message = "dead letters are encrypted"
  }
  assert {
    condition     = jsondecode(aws_iam_role_policy.own["idle_gpu/objects"].policy).Statement[0].Action == ["s3:GetObject"] && jsondecode(aws_iam_role_policy.own["idle_gpu/objects"].policy).Statement[0].Resource == ["arn:aws:s3:::costguard-111122223333-us-east-1/policy/*"]
    error_message = "guards read policies and write none"
  }
  assert {
    condition     = [for key, _ in aws_iam_role_policy.own : key if endswith(key, "/reports")] == ["digest/reports"]
    error_message = "only the digest writes files, below reports/"
  }

  # Everything has a schedule or an address.
  assert {
    condition     = { for name, schedule in aws_scheduler_schedule.function : name => schedule.schedule_expression } == { budget = "cron(47 * * * ? *)", digest = "cron(11 1 ? * MON *)", idle_gpu = "cron(17 * * * ? *)", kms_rotation = "cron(23 5 * * ? *)", network_audit = "cron(2 * * * ? *)" }
    error_message = "function.yaml's five fields as EventBridge writes them"
  }
  assert {
    condition     = alltrue([for schedule in aws_scheduler_schedule.function : schedule.flexible_time_window[0].mode == "OFF" && schedule.schedule_expression_timezone == "UTC" && schedule.target[0].input == "{\"time\":\"<aws.scheduler.scheduled-time>\"}"])
    error_message = "on time, and told the time it was scheduled for, whose brackets are not escaped"
  }
  assert {
    condition     = alltrue([for schedule in aws_scheduler_schedule.function : schedule.target[0].dead_letter_config[0].arn == aws_sqs_queue.dead_letters.arn && schedule.target[0].role_arn == aws_iam_role.scheduler.arn])
    error_message = "its own role, and dead letters"
  }
  assert {
    condition     = toset(distinct(flatten([for statement in jsondecode(aws_iam_role_policy.scheduler.policy).Statement : statement.Action]))) == toset(["lambda:InvokeFunction", "sqs:SendMessage"])
    error_message = "who starts functions does nothing else"
  }
  assert {
    condition     = toset([for route in aws_apigatewayv2_route.answers : route.route_key]) == toset(["POST /slack", "GET /keep", "POST /keep"])
    error_message = "three routes and no other"
  }
  assert {
    condition     = aws_lambda_permission.answers["slack_actions"].principal == "apigateway.amazonaws.com" && strcontains(aws_lambda_permission.answers["slack_actions"].source_arn, "made-up/*/*")
    error_message = "only its API calls it"
  }

  # Failures are told, and silence.
  assert {
    condition     = length(aws_cloudwatch_metric_alarm.function) == 3 * length(aws_lambda_function.function)
    error_message = "errors, throttles and duration of each function"
  }
  assert {
    condition     = { for name, alarm in aws_cloudwatch_metric_alarm.missed : name => alarm.evaluation_periods } == { budget = 2, idle_gpu = 2, kms_rotation = 25, network_audit = 2 }
    error_message = "a run missed is seen within its schedule's gap and an hour"
  }
  assert {
    condition     = { for name, alarm in aws_cloudwatch_metric_alarm.dead_man : name => alarm.evaluation_periods } == { budget = 3, idle_gpu = 3, kms_rotation = 49, network_audit = 3 }
    error_message = "the switch waits for two runs"
  }
  assert {
    condition     = alltrue([for alarm in aws_cloudwatch_metric_alarm.dead_man : alarm.treat_missing_data == "breaching" && alarm.alarm_actions == toset([aws_sns_topic.dead_man.arn])])
    error_message = "silence rings, on a topic of its own"
  }
  assert {
    condition     = alltrue([for alarm in values(aws_cloudwatch_metric_alarm.dead_man) : alarm.period * alarm.evaluation_periods <= 604800])
    error_message = "CloudWatch looks back a week at most"
  }
  assert {
    condition     = toset(keys(aws_cloudwatch_metric_alarm.line)) == toset(["NoticesLost", "NoticesWait", "DigestOverdue", "RequestsFail", "RequestForged"])
    error_message = "what has a line and no figure"
  }
  assert {
    condition     = length(output.alarms.names) == length(distinct(output.alarms.names))
    error_message = "every alarm has a name of its own"
  }
  assert {
    condition     = one(values(aws_sns_topic_subscription.dead_man)).endpoint == "ops@example.com"
    error_message = "the switch rings for whoever gets alarms unless others are named"
  }
}

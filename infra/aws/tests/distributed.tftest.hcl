# idle_gpu in phases: off unless asked for, and then five functions of one bundle with a state machine between them.

mock_provider "aws" {
  source = "./tests/mocks"
}

variables {
  region  = "us-east-1"
  secrets = { COSTGUARD_SLACK_SIGNING_SECRET = "costguard/slack-signing-secret", COSTGUARD_SLACK_TOKEN = "costguard/slack#token" }
}

run "not_unless_asked_for" {
  command = plan

  assert {
    condition     = length(aws_cloudwatch_metric_alarm.phase) + length(aws_cloudwatch_log_group.organisation) + length(aws_lambda_function.phase) + length(aws_sfn_state_machine.organisation) + length(aws_s3_bucket.runs) == 0
    error_message = "nothing of it stands where one function does"
  }
}

run "in_phases" {
  command = apply

  variables {
    distributed = true
  }

  assert {
    condition     = { for name, function in aws_lambda_function.phase : name => function.handler } == { for name in ["targets", "scan", "plan", "act", "report"] : name => "costguard.faas.phases.${name}" }
    error_message = "which phase a function is stands in its handler"
  }
  assert {
    condition     = alltrue([for function in aws_lambda_function.phase : function.role == aws_iam_role.function["idle_gpu"].arn && function.timeout == 900])
    error_message = "phases have the role that member accounts trust"
  }
  assert {
    condition     = alltrue([for function in aws_lambda_function.phase : function.environment[0].variables.COSTGUARD_REPORTS == "s3://${aws_s3_bucket.runs["organisation"].bucket}/phases?region=us-east-1"])
    error_message = "they hand values to each other in a bucket of their own"
  }
  assert {
    condition     = strcontains(aws_iam_role_policy.runs["organisation"].policy, "s3:PutObject") && !strcontains(aws_iam_role_policy.runs["organisation"].policy, "costguard*")
    error_message = "what reads and writes that bucket is the generated purpose, narrowed"
  }
  assert {
    condition     = length([for state in values(jsondecode(aws_sfn_state_machine.organisation["organisation"].definition).States) : state if try(state.ToleratedFailurePercentage, 0) == 100]) == 2
    error_message = "a part that fails is a gap, not a failure"
  }
  assert {
    condition     = !strcontains(aws_sfn_state_machine.organisation["organisation"].definition, "$${")
    error_message = "every place in the definition is filled in"
  }
  assert {
    condition     = aws_scheduler_schedule.organisation["organisation"].target[0].input == "{\"time\":\"<aws.scheduler.scheduled-time>\"}"
    error_message = "the time is all that is sent"
  }
  assert {
    condition = toset(flatten([for statement in jsondecode(aws_iam_role_policy.organisation["organisation"].policy).Statement : statement.Action])) == toset([
      "lambda:InvokeFunction", "states:StartExecution", "states:DescribeExecution", "states:StopExecution",
      "logs:CreateLogDelivery", "logs:GetLogDelivery", "logs:UpdateLogDelivery", "logs:DeleteLogDelivery", "logs:ListLogDeliveries",
      "logs:PutResourcePolicy", "logs:DescribeResourcePolicies", "logs:DescribeLogGroups",
    ])
    error_message = "the state machine calls its functions, writes its log, and does nothing else"
  }
  assert {
    condition = toset(keys(aws_cloudwatch_metric_alarm.phase)) == toset(flatten([for phase in ["targets", "scan", "plan", "act", "report"] : [for kind in ["errors", "throttles", "duration"] : "${phase}/${kind}"]])) && alltrue([
      for key, alarm in aws_cloudwatch_metric_alarm.phase : alarm.dimensions.FunctionName == "costguard-idle_gpu-${split("/", key)[0]}" && alarm.treat_missing_data == "notBreaching"
    ])
    error_message = "each phase is watched as every function is"
  }
  assert {
    condition     = alltrue([for key, alarm in aws_cloudwatch_metric_alarm.phase : alarm.threshold == 720000 if endswith(key, "/duration")])
    error_message = "80 % of its 900 s"
  }
  assert {
    condition     = toset(keys(aws_cloudwatch_metric_alarm.organisation)) == toset(["ExecutionsFailed", "ExecutionsTimedOut", "ExecutionsAborted"])
    error_message = "a run in phases that did not end well is told, however it ended"
  }
  assert {
    condition     = length(setintersection(output.alarms.names, [for alarm in concat(values(aws_cloudwatch_metric_alarm.phase), values(aws_cloudwatch_metric_alarm.organisation)) : alarm.alarm_name])) == 18
    error_message = "whoever lists the alarms sees these too"
  }
  assert {
    condition = aws_sfn_state_machine.organisation["organisation"].logging_configuration[0].level == "ERROR" && !aws_sfn_state_machine.organisation["organisation"].logging_configuration[0].include_execution_data && (
      aws_sfn_state_machine.organisation["organisation"].logging_configuration[0].log_destination == "${aws_cloudwatch_log_group.organisation["organisation"].arn}:*"
    )
    error_message = "its failures are logged, without what phases hand to each other"
  }
  assert {
    condition     = aws_cloudwatch_log_group.organisation["organisation"].retention_in_days == 90 && output.logs["organisation"] == "/aws/vendedlogs/states/costguard-organisation"
    error_message = "its log ends, and is named among the others"
  }
  assert {
    condition     = alltrue([for function in aws_lambda_function.phase : function.logging_config[0].log_group == "/aws/lambda/costguard-idle_gpu"])
    error_message = "phases log where idle_gpu does, so that its lines are counted"
  }
}

run "not_without_idle_gpu" {
  command = plan

  variables {
    distributed = true
    functions   = ["digest"]
    secrets     = {}
  }

  expect_failures = [var.distributed]
}

# Room for an organisation that one function cannot read in its time: the same bundle as idle_gpu, deployed once for each
# phase of a run, and a state machine between them. docs/scale.md says from when on it is worth it.

variable "distributed" {
  description = "Run idle_gpu in phases by Step Functions instead of by one function; for some 300 accounts and more."
  type        = bool
  default     = false

  validation {
    condition     = !var.distributed || contains(keys(local.functions), "idle_gpu")
    error_message = "It is idle_gpu that runs in phases: `functions` leaves it out."
  }
}

variable "distributed_concurrency" {
  description = "How many parts of 200 regions are read at once; the account's Lambda concurrency has to allow it."
  type        = number
  default     = 20

  validation {
    condition     = var.distributed_concurrency >= 1 && var.distributed_concurrency <= 1000
    error_message = "1 to 1,000, which is what an account has by default."
  }
}

locals {
  # What each takes beyond idle_gpu's own memory: plan and report hold what all parts saw (docs/scale.md has figures).
  phase_memory_mib = { targets = 512, scan = 512, plan = 3008, act = 512, report = 3008 }
  phases           = { for name, mib in local.phase_memory_mib : name => mib if var.distributed }
  once             = { for name in ["organisation"] : name => name if var.distributed }
  runs             = "${local.bucket}-runs"

  phase_seconds = 900
  phase_alarms = {
    errors    = { threshold = 1, says = "failed; the log of idle_gpu has a line `run failed`" }
    throttles = { threshold = 1, says = "was not started at once: the account's concurrency is used up, or lower `distributed_concurrency`" }
    duration  = { threshold = local.phase_seconds * 1000 * 0.8, says = "takes over 80 % of its time; the next run goes on" }
  }
}

# What phases hand to each other: facts, plans and results. Which of them count is in the ledger, by their hash.
resource "aws_s3_bucket" "runs" {
  for_each = local.once

  bucket        = local.runs
  force_destroy = true # a week of intermediate results
}

resource "aws_s3_bucket_server_side_encryption_configuration" "runs" {
  for_each = local.once

  bucket = aws_s3_bucket.runs[each.key].id

  rule {
    apply_server_side_encryption_by_default {
      sse_algorithm = "AES256"
    }
  }
}

resource "aws_s3_bucket_public_access_block" "runs" {
  for_each = local.once

  bucket = aws_s3_bucket.runs[each.key].id

  block_public_acls       = true
  block_public_policy     = true
  ignore_public_acls      = true
  restrict_public_buckets = true
}

resource "aws_s3_bucket_ownership_controls" "runs" {
  for_each = local.once

  bucket = aws_s3_bucket.runs[each.key].id

  rule {
    object_ownership = "BucketOwnerEnforced"
  }
}

resource "aws_s3_bucket_lifecycle_configuration" "runs" {
  for_each = local.once

  bucket = aws_s3_bucket.runs[each.key].id

  rule {
    id     = "a-week"
    status = "Enabled"

    filter {}

    expiration {
      days = 7
    }

    abort_incomplete_multipart_upload {
      days_after_initiation = 1
    }
  }
}

resource "aws_s3_bucket_policy" "runs" {
  for_each = local.once

  bucket = aws_s3_bucket.runs[each.key].id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid       = "OnlyOverTls"
      Effect    = "Deny"
      Principal = "*"
      Action    = "s3:*"
      Resource  = [aws_s3_bucket.runs[each.key].arn, "${aws_s3_bucket.runs[each.key].arn}/*"]
      Condition = { Bool = { "aws:SecureTransport" = "false" } }
    }]
  })

  depends_on = [aws_s3_bucket_public_access_block.runs]
}

# The roles of member accounts trust idle_gpu's role, so phases have that one; to it comes what they hand on. Only `act`
# builds a client that can change anything.
resource "aws_iam_role_policy" "runs" {
  for_each = local.once

  name   = "runs"
  role   = aws_iam_role.function["idle_gpu"].id
  policy = jsonencode(jsondecode(replace(lookup(local.purposes, "reports", "{}"), "\"arn:aws:s3:::costguard*/reports/*\"", jsonencode("${aws_s3_bucket.runs[each.key].arn}/*"))))
}

resource "aws_lambda_function" "phase" {
  for_each = local.phases

  function_name = "${var.name}-idle_gpu-${each.key}"
  description   = "Costguard: the phase ${each.key} of idle_gpu"
  role          = aws_iam_role.function["idle_gpu"].arn

  filename         = "${var.bundles}/idle_gpu.zip"
  source_code_hash = try(filebase64sha256("${var.bundles}/idle_gpu.zip"), null)
  handler          = "costguard.faas.phases.${each.key}" # which phase it is stands here, and never in an event
  runtime          = "python3.13"
  architectures    = [var.architecture]
  memory_size      = each.value
  timeout          = local.phase_seconds

  environment {
    variables = merge(local.environment["idle_gpu"], { COSTGUARD_REPORTS = "s3://${local.runs}/phases?region=${var.region}" })
  }

  logging_config {
    log_format = "Text"
    log_group  = aws_cloudwatch_log_group.function["idle_gpu"].name
  }

  depends_on = [aws_iam_role_policy.platform, aws_iam_role_policy.runs, aws_iam_role_policy_attachment.function, aws_iam_role_policy_attachment.members]
}

# The phases log where idle_gpu does: its lines are counted there. The state machine's own failures have a log of theirs.
resource "aws_cloudwatch_log_group" "organisation" {
  for_each = local.once

  name              = "/aws/vendedlogs/states/${var.name}-${each.key}" # else each state machine makes a shared permission longer
  retention_in_days = var.log_retention_days
  kms_key_id        = var.log_key_arn == "" ? null : var.log_key_arn
}

resource "aws_sfn_state_machine" "organisation" {
  for_each = local.once

  name     = "${var.name}-organisation"
  role_arn = aws_iam_role.organisation[each.key].arn
  type     = "STANDARD"
  definition = templatefile("${path.module}/organisation.asl.json", merge(
    { for name, function in aws_lambda_function.phase : name => function.arn },
    { partition = local.partition, scan_concurrency = var.distributed_concurrency, act_concurrency = 5 },
  ))

  logging_configuration {
    log_destination        = "${aws_cloudwatch_log_group.organisation[each.key].arn}:*"
    include_execution_data = false # what phases hand to each other stays in their bucket
    level                  = "ERROR"
  }

  depends_on = [aws_iam_role_policy.organisation]
}

# It can call these five functions, start the children of its own map, and have its log delivered.
resource "aws_iam_role" "organisation" {
  for_each = local.once

  name        = "${var.name}-organisation"
  description = "The state machine of Costguard's phases"

  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = { Service = "states.amazonaws.com" }
      Action    = "sts:AssumeRole"
      Condition = { StringEquals = { "aws:SourceAccount" = local.account } }
    }]
  })
}

resource "aws_iam_role_policy" "organisation" {
  for_each = local.once

  name = "phases"
  role = aws_iam_role.organisation[each.key].id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Sid      = "CallPhases"
        Effect   = "Allow"
        Action   = "lambda:InvokeFunction"
        Resource = [for function in aws_lambda_function.phase : function.arn]
      },
      {
        Sid      = "MapOverParts"
        Effect   = "Allow"
        Action   = "states:StartExecution"
        Resource = "arn:${local.partition}:states:${var.region}:${local.account}:stateMachine:${var.name}-organisation"
      },
      {
        # Step Functions guide, "Using CloudWatch Logs to log execution history": deliveries have no ARN to narrow to.
        Sid    = "DeliverItsLog"
        Effect = "Allow"
        Action = [
          "logs:CreateLogDelivery", "logs:GetLogDelivery", "logs:UpdateLogDelivery", "logs:DeleteLogDelivery", "logs:ListLogDeliveries",
          "logs:PutResourcePolicy", "logs:DescribeResourcePolicies", "logs:DescribeLogGroups",
        ]
        Resource = "*"
      },
      {
        Sid      = "FollowParts"
        Effect   = "Allow"
        Action   = ["states:DescribeExecution", "states:StopExecution"]
        Resource = "arn:${local.partition}:states:${var.region}:${local.account}:execution:${var.name}-organisation/*"
      },
    ]
  })
}

resource "aws_scheduler_schedule" "organisation" {
  for_each = local.once

  name                         = "organisation"
  group_name                   = aws_scheduler_schedule_group.here.name
  description                  = "Starts ${var.name}-organisation"
  schedule_expression          = module.cron.aws["idle_gpu"]
  schedule_expression_timezone = "UTC"

  flexible_time_window {
    mode = "OFF"
  }

  target {
    arn      = aws_sfn_state_machine.organisation[each.key].arn
    role_arn = aws_iam_role.organisation_scheduler[each.key].arn
    input    = "{\"time\":\"<aws.scheduler.scheduled-time>\"}"

    retry_policy {
      maximum_retry_attempts       = 3
      maximum_event_age_in_seconds = 3600
    }

    dead_letter_config {
      arn = aws_sqs_queue.dead_letters.arn
    }
  }
}

resource "aws_iam_role" "organisation_scheduler" {
  for_each = local.once

  name        = "${var.name}-organisation-scheduler"
  description = "EventBridge Scheduler starts the state machine of Costguard's phases with it"

  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = { Service = "scheduler.amazonaws.com" }
      Action    = "sts:AssumeRole"
      Condition = {
        StringEquals = {
          "aws:SourceAccount" = local.account
          "aws:SourceArn"     = aws_scheduler_schedule_group.here.arn
        }
      }
    }]
  })
}

resource "aws_iam_role_policy" "organisation_scheduler" {
  for_each = local.once

  name = "start"
  role = aws_iam_role.organisation_scheduler[each.key].id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Sid      = "StartRuns"
        Effect   = "Allow"
        Action   = "states:StartExecution"
        Resource = aws_sfn_state_machine.organisation[each.key].arn
      },
      {
        Sid      = "KeepWhatFailed"
        Effect   = "Allow"
        Action   = "sqs:SendMessage"
        Resource = aws_sqs_queue.dead_letters.arn
      },
    ]
  })
}

# Phases are watched as every function is; a phase that could not end leaves a gap, and its alarm says which.
resource "aws_cloudwatch_metric_alarm" "phase" {
  for_each = { for pair in setproduct(keys(local.phases), keys(local.functions_alarms)) : "${pair[0]}/${pair[1]}" => { phase = pair[0], kind = pair[1], alarm = local.functions_alarms[pair[1]] } }

  alarm_name          = "${var.name}-idle_gpu-${each.value.phase}-${each.value.kind}"
  alarm_description   = "The phase ${each.value.phase} of Costguard's idle_gpu ${local.phase_alarms[each.value.kind].says}. ${local.deployment}"
  namespace           = "AWS/Lambda"
  metric_name         = each.value.alarm.metric
  dimensions          = { FunctionName = aws_lambda_function.phase[each.value.phase].function_name }
  statistic           = each.value.alarm.statistic
  period              = 300
  evaluation_periods  = 1
  comparison_operator = each.value.alarm.operator
  threshold           = local.phase_alarms[each.value.kind].threshold
  treat_missing_data  = "notBreaching"
  alarm_actions       = [aws_sns_topic.alarms.arn]
  ok_actions          = [aws_sns_topic.alarms.arn]
}

# A part that fails is a gap and no failure of the run; a run that fails, is aborted or takes too long is one.
resource "aws_cloudwatch_metric_alarm" "organisation" {
  for_each = { for metric in ["ExecutionsFailed", "ExecutionsTimedOut", "ExecutionsAborted"] : metric => metric if var.distributed }

  alarm_name          = "${var.name}-organisation-${lower(each.key)}"
  alarm_description   = "A run of Costguard's idle_gpu in phases did not end well: its execution says at which phase. ${local.deployment}"
  namespace           = "AWS/States"
  metric_name         = each.key
  dimensions          = { StateMachineArn = aws_sfn_state_machine.organisation["organisation"].arn }
  statistic           = "Sum"
  period              = 300
  evaluation_periods  = 1
  comparison_operator = "GreaterThanOrEqualToThreshold"
  threshold           = 1
  treat_missing_data  = "notBreaching"
  alarm_actions       = [aws_sns_topic.alarms.arn]
  ok_actions          = [aws_sns_topic.alarms.arn]
}

output "organisation" {
  description = "The state machine that runs idle_gpu in phases; null where one function does."
  value       = one([for machine in aws_sfn_state_machine.organisation : machine.arn])
}

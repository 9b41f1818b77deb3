# EventBridge Scheduler starts what has a schedule. Functions take no orders from events: the time is all that is sent.

module "cron" {
  source = "../modules/schedule"

  scf_hours_ahead = 0 # else what SCF's clock cannot say would be refused here as well
  five            = { for name, facts in local.timed : name => lookup(var.schedules, name, facts.schedule) }
}

resource "aws_scheduler_schedule_group" "here" {
  name = var.name
}

resource "aws_scheduler_schedule" "function" {
  for_each = local.timed

  name                         = each.key
  group_name                   = aws_scheduler_schedule_group.here.name
  description                  = "Starts ${var.name}-${each.key}"
  schedule_expression          = module.cron.aws[each.key]
  schedule_expression_timezone = "UTC"
  state                        = var.distributed && each.key == "idle_gpu" ? "DISABLED" : "ENABLED" # else by its phases

  flexible_time_window {
    mode = "OFF"
  }

  target {
    arn      = aws_lambda_function.function[each.key].arn
    role_arn = aws_iam_role.scheduler.arn

    # The time it was scheduled for names the run, so a retry is the same run. jsonencode would escape the brackets.
    input = "{\"time\":\"<aws.scheduler.scheduled-time>\"}"

    retry_policy {
      maximum_retry_attempts       = 3
      maximum_event_age_in_seconds = 3600
    }

    dead_letter_config {
      arn = aws_sqs_queue.dead_letters.arn
    }
  }
}

# A role of its own: it can start these functions and do nothing else.
resource "aws_iam_role" "scheduler" {
  name        = "${var.name}-scheduler"
  description = "EventBridge Scheduler starts Costguard's functions with it"

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

resource "aws_iam_role_policy" "scheduler" {
  name = "start"
  role = aws_iam_role.scheduler.id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Sid      = "StartFunctions"
        Effect   = "Allow"
        Action   = "lambda:InvokeFunction"
        Resource = [for name in keys(local.timed) : aws_lambda_function.function[name].arn]
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

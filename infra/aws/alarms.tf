# What tells people that Costguard fails. That it does not run at all is told by dead_man.tf.

locals {
  alarm_namespace = "Costguard" # faas/logs.py writes its figures there
  deployment      = "${var.name} in ${var.region} of ${local.account}"

  # Those that start every day; a week is more than an alarm on hours may look back on.
  daily = { for name, hours in module.cron.longest_gap_hours : name => hours if hours <= 24 }

  # One function tells that the digest is overdue, where it comes once a week or more often (engine/overdue.py).
  tells_of_digest = { for name in slice(keys(local.daily), 0, min(1, length(local.daily))) : name => name if try(module.cron.longest_gap_hours["digest"] <= 168, false) }

  functions_alarms = {
    errors = {
      metric    = "Errors", statistic = "Sum", operator = "GreaterThanOrEqualToThreshold", of = local.functions
      threshold = { for name, _ in local.functions : name => 1 }
      says      = "failed; its log has a line `run failed`. The same event is tried twice more"
    }
    throttles = {
      metric    = "Throttles", statistic = "Sum", operator = "GreaterThanOrEqualToThreshold", of = local.functions
      threshold = { for name, _ in local.functions : name => 1 }
      says      = "was not started at once: a run was still going on, or the account's concurrency is used up"
    }
    duration = {
      metric    = "Duration", statistic = "Maximum", operator = "GreaterThanThreshold", of = local.functions
      threshold = { for name, facts in local.functions : name => facts.timeout_seconds * 1000 * 0.8 }
      says      = "takes over 80 % of its time; at 90 % it stops short, and the next run goes on"
    }
  }
  function_alarms = merge([
    for kind, alarm in local.functions_alarms : {
      for name, _ in alarm.of : "${name}/${kind}" => merge(alarm, { function = name, kind = kind, threshold = alarm.threshold[name] })
    }
  ]...)

  # Lines that have no figure: pattern → what it counts. A test looks for the words in the code.
  lines = {
    NoticesLost   = { messages = ["notice will never be delivered", "notice came too late and is not sent"], of = local.functions }
    NoticesWait   = { messages = ["notice not delivered yet"], of = local.functions }
    DigestOverdue = { messages = ["the weekly digest is overdue"], of = local.tells_of_digest }
    RequestsFail  = { messages = ["request failed", "answer not taken"], of = local.asked }
    RequestForged = { messages = ["request refused"], of = local.asked }
  }
  filters = merge([
    for metric, line in local.lines : {
      for name, _ in line.of : "${name}/${metric}" => { function = name, metric = metric, messages = line.messages }
    }
  ]...)

  line_alarms = {
    NoticesLost   = { periods = 1, seconds = 300, threshold = 1, says = "people were not told something, and will not be: `costguard outbox` shows it" }
    NoticesWait   = { periods = 3, seconds = 3600, threshold = 1, says = "notices have not gone out for three hours: `costguard outbox` shows why. Nothing is stopped meanwhile" }
    DigestOverdue = { periods = 1, seconds = 3600, threshold = 1, says = "no weekly digest has begun for over eight days. Is its schedule on, does its log say why?" }
    RequestsFail  = { periods = 1, seconds = 300, threshold = 1, says = "an answer could not be taken; whoever gave it was told so" }
    RequestForged = { periods = 3, seconds = 300, threshold = 20, says = "requests without a valid signature keep coming: a regenerated signing secret, or somebody trying" }
  }
}

resource "aws_sns_topic" "alarms" {
  name         = "${var.name}-alarms"
  display_name = "Costguard alarms"
}

resource "aws_sns_topic_policy" "alarms" {
  arn    = aws_sns_topic.alarms.arn
  policy = jsonencode(local.topic_policies.alarms)
}

resource "aws_sns_topic_subscription" "alarms" {
  for_each = toset([for address in [var.alarm_mail] : address if address != ""])

  topic_arn = aws_sns_topic.alarms.arn
  protocol  = "email"
  endpoint  = each.key
}

resource "aws_cloudwatch_metric_alarm" "function" {
  for_each = local.function_alarms

  alarm_name          = "${var.name}-${each.value.function}-${each.value.kind}"
  alarm_description   = "Costguard's ${each.value.function} ${each.value.says}. ${local.deployment}"
  namespace           = "AWS/Lambda"
  metric_name         = each.value.metric
  dimensions          = { FunctionName = aws_lambda_function.function[each.value.function].function_name }
  statistic           = each.value.statistic
  period              = 300
  evaluation_periods  = 1
  comparison_operator = each.value.operator
  threshold           = each.value.threshold
  treat_missing_data  = "notBreaching"
  alarm_actions       = [aws_sns_topic.alarms.arn]
  ok_actions          = [aws_sns_topic.alarms.arn]
}

# A run that ended writes its figures; none for longer than its schedule allows is a run missed, cut off or failed.
resource "aws_cloudwatch_metric_alarm" "missed" {
  for_each = local.daily

  alarm_name          = "${var.name}-${each.key}-missed"
  alarm_description   = "Costguard's ${each.key} has not finished a run for over ${each.value} h. Is its schedule on, does its log say why? ${local.deployment}"
  namespace           = local.alarm_namespace
  metric_name         = "DurationSeconds"
  dimensions          = { service = var.name, function = each.key } # COSTGUARD_NAME: another deployment's runs do not count
  statistic           = "SampleCount"
  period              = 3600
  evaluation_periods  = each.value + 1 # a run may end in the hour after the one it began in
  comparison_operator = "LessThanThreshold"
  threshold           = 1
  treat_missing_data  = "breaching"
  alarm_actions       = [aws_sns_topic.alarms.arn]
  ok_actions          = [aws_sns_topic.alarms.arn]

  depends_on = [aws_scheduler_schedule.function]
}

resource "aws_cloudwatch_log_metric_filter" "line" {
  for_each = local.filters

  name           = "${var.name}-${each.value.function}-${each.value.metric}"
  log_group_name = aws_cloudwatch_log_group.function[each.value.function].name
  pattern        = "{ ${join(" || ", [for message in each.value.messages : "($.message = \"${message}\")"])} }"

  metric_transformation {
    namespace = local.alarm_namespace
    name      = "${var.name}-${each.value.metric}"
    value     = "1"
    unit      = "Count"
  }
}

resource "aws_cloudwatch_metric_alarm" "line" {
  for_each = { for metric, alarm in local.line_alarms : metric => alarm if length(local.lines[metric].of) > 0 }

  alarm_name          = "${var.name}-${each.key}"
  alarm_description   = "Costguard: ${each.value.says}. ${local.deployment}"
  namespace           = local.alarm_namespace
  metric_name         = "${var.name}-${each.key}"
  statistic           = "Sum"
  period              = each.value.seconds
  evaluation_periods  = each.value.periods
  comparison_operator = "GreaterThanOrEqualToThreshold"
  threshold           = each.value.threshold
  treat_missing_data  = "notBreaching"
  alarm_actions       = [aws_sns_topic.alarms.arn]
  ok_actions          = [aws_sns_topic.alarms.arn]

  depends_on = [aws_cloudwatch_log_metric_filter.line]
}

resource "aws_cloudwatch_metric_alarm" "dead_letters" {
  alarm_name          = "${var.name}-dead-letters"
  alarm_description   = "Costguard: an event could not be delivered or run, after every retry. ${local.deployment}"
  namespace           = "AWS/SQS"
  metric_name         = "ApproximateNumberOfMessagesVisible"
  dimensions          = { QueueName = aws_sqs_queue.dead_letters.name }
  statistic           = "Maximum"
  period              = 300
  evaluation_periods  = 1
  comparison_operator = "GreaterThanThreshold"
  threshold           = 0
  treat_missing_data  = "notBreaching"
  alarm_actions       = [aws_sns_topic.alarms.arn]
  ok_actions          = [aws_sns_topic.alarms.arn]
}

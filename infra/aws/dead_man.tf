# The dead-man's switch: people are told when nothing of Costguard has run for long, by what needs nothing of Costguard's.
#
# Shared with the guard: the account, the region and CloudWatch. Not shared: its roles, its code, its ledger, its
# policy, EventBridge Scheduler, the topic of the alarms and whoever reads it. Silence is the signal, so that whatever
# silences the guard (a role taken away, a schedule switched off, a bundle that cannot start, an account out of money)
# rings it. Against the loss of the account or the region itself there is `heartbeat_url`, watched from elsewhere.

locals {
  dead_man_mail = var.dead_man_mail == "" ? var.alarm_mail : var.dead_man_mail

  # Two runs missed and some; a guard that runs hourly is missed after three hours, a daily one after two days.
  dead_after_hours = { for name, hours in local.daily : name => 2 * hours + 1 }

  topic_policies = {
    for name, arn in { alarms = aws_sns_topic.alarms.arn, dead_man = aws_sns_topic.dead_man.arn } : name => {
      Version                 = "2012-10-17"
      Statement = [
        {
          Sid       = "AlarmsOfThisAccount"
          Effect    = "Allow"
          Principal = { Service = "cloudwatch.amazonaws.com" }
          Action    = "sns:Publish"
          Resource  = arn
          Condition = { StringEquals = { "aws:SourceAccount" = local.account } }
        },
        {
          Sid       = "OnlyOverTls"
          Effect    = "Deny"
          Principal = "*"
          Action    = "sns:Publish"
          Resource  = arn
          Condition = { Bool = { "aws:SecureTransport" = "false" } }
        },
      ]
    }
  }
}

resource "aws_sns_topic" "dead_man" {
  name         = "${var.name}-dead-man"
  display_name = "Costguard silent"
}

resource "aws_sns_topic_policy" "dead_man" {
  arn    = aws_sns_topic.dead_man.arn
  policy = jsonencode(local.topic_policies.dead_man)
}

resource "aws_sns_topic_subscription" "dead_man" {
  for_each = toset([for address in [local.dead_man_mail] : address if address != ""])

  topic_arn = aws_sns_topic.dead_man.arn
  protocol  = "email"
  endpoint  = each.key
}

# Rings once when it is made, before the first run, and is silent after it: so it is known to ring.
resource "aws_cloudwatch_metric_alarm" "dead_man" {
  for_each = local.dead_after_hours

  alarm_name          = "${var.name}-${each.key}-dead-man"
  alarm_description   = "Costguard's ${each.key} has not run for ${each.value} h: nothing is guarded, and nobody else will say so. ${local.deployment}"
  namespace           = local.alarm_namespace
  metric_name         = "DurationSeconds"
  dimensions          = { service = var.name, function = each.key }
  statistic           = "SampleCount"
  period              = 3600
  evaluation_periods  = each.value
  comparison_operator = "LessThanThreshold"
  threshold           = 1
  treat_missing_data  = "breaching"
  alarm_actions       = [aws_sns_topic.dead_man.arn]
  ok_actions          = [aws_sns_topic.dead_man.arn]
}

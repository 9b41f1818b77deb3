output "functions" {
  description = "Function → its name, for `aws lambda invoke --function-name`."
  value       = { for name, function in aws_lambda_function.function : name => function.function_name }
}

output "answer_url" {
  description = "Where Slack sends clicks and commands (add /slack); empty where slack_actions is not deployed."
  value       = local.answer_url
}

output "policy_source" {
  description = "What COSTGUARD_POLICY is, and where `costguard policy publish --to` publishes."
  value       = local.policy_source
}

output "ledger" {
  description = "What COSTGUARD_LEDGER is."
  value       = local.ledger
}

output "roles" {
  description = "Function → the ARN of its role; member accounts trust these."
  value       = { for name, role in aws_iam_role.function : name => role.arn }
}

output "logs" {
  description = "Function → its log group, for `aws logs tail`."
  value       = { for name, group in merge(aws_cloudwatch_log_group.function, aws_cloudwatch_log_group.organisation) : name => group.name }
}

output "alarms" {
  description = "The topics that alarms and the dead-man's switch go to, and the names of the alarms."
  value = {
    topic    = aws_sns_topic.alarms.arn
    dead_man = aws_sns_topic.dead_man.arn
    names = sort(concat(
      [for alarm in aws_cloudwatch_metric_alarm.function : alarm.alarm_name],
      [for alarm in aws_cloudwatch_metric_alarm.missed : alarm.alarm_name],
      [for alarm in aws_cloudwatch_metric_alarm.line : alarm.alarm_name],
      [for alarm in aws_cloudwatch_metric_alarm.dead_man : alarm.alarm_name],
      [for alarm in aws_cloudwatch_metric_alarm.phase : alarm.alarm_name],
      [for alarm in aws_cloudwatch_metric_alarm.organisation : alarm.alarm_name],
      [aws_cloudwatch_metric_alarm.dead_letters.alarm_name],
    ))
  }
}

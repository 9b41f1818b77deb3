output "functions" {
  description = "Function → its name, for `tccli scf Invoke --FunctionName`."
  value       = merge({ for name, function in tencentcloud_scf_function.timed : name => function.name }, { for name, function in tencentcloud_scf_function.asked : name => function.name })
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
  description = "What COSTGUARD_LEDGER is, without the password: put that into the secret."
  value       = local.ledger
}

output "ledger_from_desk" {
  description = "The same from `desk_networks`; empty where there are none."
  value       = length(var.desk_networks) == 0 ? "" : "postgresql://costguard@${tencentcloud_postgresql_instance.ledger.public_access_host}:${tencentcloud_postgresql_instance.ledger.public_access_port}/costguard?sslmode=require"
}

output "ledger_instance" {
  description = "The database's id, for the commands that make its account."
  value       = tencentcloud_postgresql_instance.ledger.id
}

output "roles" {
  description = "Function → the ARN of its role."
  value       = { for name, role in tencentcloud_cam_role.function : name => role.role_arn }
}

output "logs" {
  description = "Function → its topic of CLS, for `tccli cls SearchLog --TopicId`."
  value       = { for name, topic in tencentcloud_cls_topic.function : name => topic.id }
}

output "alarms" {
  description = "Whom alarms and the dead-man's switch go to, and the names of the alarms."
  value = {
    topic    = try(tencentcloud_cls_alarm_notice.mailed["alarms"].id, "")
    dead_man = try(tencentcloud_cls_alarm_notice.mailed["dead-man"].id, "")
    names    = sort([for alarm in tencentcloud_cls_alarm.watch : alarm.name])
  }
}

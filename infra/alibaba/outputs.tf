output "functions" {
  description = "Function → its name, for `aliyun fc POST /2023-03-30/functions/NAME/invocations`."
  value       = merge({ for name, function in alicloud_fcv3_function.timed : name => function.function_name }, { for name, function in alicloud_fcv3_function.asked : name => function.function_name })
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
  value       = try("postgresql://costguard@${alicloud_db_connection.desk[0].connection_string}:5432/costguard?sslmode=require", "")
}

output "ledger_instance" {
  description = "The database's id, for the commands that make its account."
  value       = alicloud_db_instance.ledger.id
}

output "roles" {
  description = "Function → the ARN of its role; member accounts trust these."
  value       = { for name, role in alicloud_ram_role.function : name => role.arn }
}

output "logs" {
  description = "Function → its project and logstore of SLS, for `aliyun sls GetLogs`."
  value       = { for name, store in alicloud_log_store.function : name => "${store.project_name}/${store.logstore_name}" }
}

output "alarms" {
  description = "Whom alarms and the dead-man's switch go to, and the names of the alarms."
  value = {
    topic    = alicloud_log_resource_record.action["alarms"].record_id
    dead_man = alicloud_log_resource_record.action["dead-man"].record_id
    names    = sort(concat([for alarm in alicloud_cms_alarm.function : alarm.name], [for alert in alicloud_sls_alert.watch : alert.alert_name]))
  }
}

output "roles" {
  description = "Function → the ARN of the role it enters by."
  value       = { for name, role in alicloud_ram_role.member : name => role.arn }
}

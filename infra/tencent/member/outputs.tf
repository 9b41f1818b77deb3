output "roles" {
  description = "Function → the ARN of the role it enters by."
  value       = { for name, role in tencentcloud_cam_role.member : name => role.role_arn }
}

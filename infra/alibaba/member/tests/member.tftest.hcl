# The roles of an account that is guarded from another: terraform init, terraform test.

mock_provider "alicloud" {}

variables {
  hub_account = "1234567890123456"
  external_id = "a-word"
}

run "looking" {
  command = apply

  assert {
    condition     = keys(output.roles) == ["budget", "idle_gpu", "kms_rotation", "network_audit"]
    error_message = jsonencode(output.roles)
  }
  assert {
    condition     = toset(keys(alicloud_ram_policy.purpose)) == toset(["deny", "scan-budget", "scan-idle_gpu", "scan-kms_rotation", "scan-network_audit"])
    error_message = jsonencode(keys(alicloud_ram_policy.purpose))
  }
  assert {
    condition     = jsondecode(alicloud_ram_role.member["idle_gpu"].assume_role_policy_document).Statement[0] == { Effect = "Allow", Principal = { RAM = ["acs:ram::1234567890123456:role/costguard-idle-gpu"] }, Action = "sts:AssumeRole", Condition = { StringEquals = { "sts:ExternalId" = "a-word" } } }
    error_message = alicloud_ram_role.member["idle_gpu"].assume_role_policy_document
  }
}

run "acting" {
  command = apply

  variables {
    acting    = true
    functions = ["kms_rotation"]
  }

  assert {
    condition     = toset(keys(alicloud_ram_policy.purpose)) == toset(["deny", "rotate", "scan-kms_rotation"])
    error_message = jsonencode(keys(alicloud_ram_policy.purpose))
  }
}

run "asked_for" {
  command = apply

  variables {
    acting    = true
    grants    = ["succeed", "freeze"]
    functions = ["kms_rotation"]
  }

  assert {
    condition     = toset(keys(alicloud_ram_policy.purpose)) == toset(["deny", "rotate", "scan-kms_rotation", "succeed"])
    error_message = jsonencode(keys(alicloud_ram_policy.purpose))
  }
}

run "grants_wait_for_acting" {
  command = apply

  variables {
    grants = ["succeed", "freeze"]
  }

  assert {
    condition     = length(setintersection(keys(alicloud_ram_policy.purpose), ["succeed", "freeze"])) == 0
    error_message = jsonencode(keys(alicloud_ram_policy.purpose))
  }
}

# The roles of an account that is guarded from another: terraform init, terraform test.

mock_provider "tencentcloud" {}

variables {
  hub_account = "100000000001"
  external_id = "a-word"
}

run "looking" {
  command = apply

  assert {
    condition     = keys(output.roles) == ["budget", "idle_gpu", "kms_rotation", "network_audit"]
    error_message = jsonencode(output.roles)
  }
  assert {
    condition     = toset(keys(tencentcloud_cam_policy.purpose)) == toset(["deny", "scan-budget", "scan-idle_gpu", "scan-kms_rotation", "scan-network_audit"])
    error_message = jsonencode(keys(tencentcloud_cam_policy.purpose))
  }
  assert {
    condition     = jsondecode(tencentcloud_cam_role.member["idle_gpu"].document).statement[0] == { effect = "allow", principal = { qcs = ["qcs::cam::uin/100000000001:root"] }, action = ["name/sts:AssumeRole"], condition = { string_equal = { "sts:external_id" = "a-word" } } }
    error_message = tencentcloud_cam_role.member["idle_gpu"].document
  }
}

run "acting" {
  command = apply

  variables {
    acting    = true
    functions = ["kms_rotation"]
  }

  assert {
    condition     = toset(keys(tencentcloud_cam_policy.purpose)) == toset(["deny", "rotate", "scan-kms_rotation"])
    error_message = jsonencode(keys(tencentcloud_cam_policy.purpose))
  }
}

run "asked_for" {
  command = apply

  variables {
    acting    = true
    grants    = ["freeze"]
    functions = ["budget"]
  }

  assert {
    condition     = toset(keys(tencentcloud_cam_policy.purpose)) == toset(["act-budget", "deny", "freeze", "scan-budget"])
    error_message = jsonencode(keys(tencentcloud_cam_policy.purpose))
  }
}

run "grants_wait_for_acting" {
  command = apply

  variables {
    grants = ["freeze"]
  }

  assert {
    condition     = length(setintersection(keys(tencentcloud_cam_policy.purpose), ["succeed", "freeze"])) == 0
    error_message = jsonencode(keys(tencentcloud_cam_policy.purpose))
  }
}

run "no_successors" {
  command = plan

  variables {
    grants = ["succeed"]
  }

  expect_failures = [var.grants]
}

mock_provider "aws" {
  mock_data "aws_partition" {
    defaults = { partition = "aws" }
  }

  mock_resource "aws_iam_policy" {
    defaults = { arn = "arn:aws:iam::222233334444:policy/made-up" }
  }
}

variables {
  hub_account = "111122223333"
  external_id = "made-up"
}

run "reads_only" {
  command = apply

  assert {
    condition     = toset(values(aws_iam_role.member)[*].name) == toset([for name in ["budget", "idle_gpu", "kms_rotation", "network_audit"] : "costguard-member-${name}"])
    error_message = "one role for each function that reads clouds"
  }
  assert {
    condition     = alltrue([for purpose in keys(aws_iam_policy.purpose) : startswith(purpose, "scan-") || purpose == "deny"])
    error_message = "nothing that acts"
  }
  assert {
    condition = alltrue([for name, role in aws_iam_role.member : jsondecode(role.assume_role_policy).Statement[0].Condition == {
      StringEquals = { "sts:ExternalId" = "made-up" }
      ArnEquals    = { "aws:PrincipalArn" = "arn:aws:iam::111122223333:role/costguard-${name}" }
    }])
    error_message = "each trusts its own function's role, with the external id"
  }
}

run "acts_where_it_is_said" {
  command = apply

  variables {
    acting = true
  }

  assert {
    condition     = { for name, purposes in local.purposes : name => [for one in purposes : one if !startswith(one, "scan-") && one != "deny"] } == { budget = ["act-budget"], idle_gpu = ["act-idle_gpu"], kms_rotation = ["rotate"], network_audit = ["fix_network"] }
    error_message = "each does its own"
  }
  assert {
    condition     = alltrue([for purposes in local.purposes : contains(purposes, "deny")])
    error_message = "the denials stay"
  }
}

run "some_functions_alone" {
  command = apply

  variables {
    functions = ["idle_gpu"]
  }

  assert {
    condition     = keys(output.roles) == ["idle_gpu"]
    error_message = "only who is let in"
  }
}

run "an_account_that_lost_its_zero" {
  command = plan

  variables {
    hub_account = "11122223333"
  }

  expect_failures = [var.hub_account]
}

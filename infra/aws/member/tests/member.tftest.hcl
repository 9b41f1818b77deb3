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

run "successors_and_freezes_are_asked_for" {
  command = apply

  variables {
    acting = true
    grants = ["succeed", "freeze"]
  }

  assert {
    condition     = { for name, purposes in local.purposes : name => [for one in purposes : one if contains(["succeed", "freeze"], one)] } == { budget = ["freeze"], idle_gpu = [], kms_rotation = ["succeed"], network_audit = [] }
    error_message = "each to the function that asks for it, and to no other"
  }
  assert {
    condition     = contains(keys(aws_iam_role_policy_attachment.member), "kms_rotation/succeed") && strcontains(aws_iam_policy.purpose["succeed"].policy, "kms:UpdateAlias")
    error_message = "a rule here can make a successor"
  }
}

run "the_account_that_freezes_the_organisation" {
  command = apply

  variables {
    acting          = true
    grants          = ["freeze-organisation"]
    freeze_policies = ["p-7f3k2m9q"]
  }

  assert {
    condition     = [for name, purposes in local.purposes : name if contains(purposes, "freeze-organisation")] == ["budget"]
    error_message = "budgets freeze"
  }
  assert {
    condition = alltrue([for named in [
      one([for one in jsondecode(aws_iam_policy.purpose["freeze-organisation"].policy).Statement : one.Resource if one.Sid == "AttachTheFreezeAlone"]),
      one([for one in jsondecode(aws_iam_policy.purpose["deny"].policy).Statement : one.NotResource if one.Sid == "NeverAttachInTheOrganisationButTheFreeze"]),
      ] : [for arn in named : arn if strcontains(arn, "service_control_policy")] == ["arn:aws:organizations::*:policy/o-*/service_control_policy/p-7f3k2m9q"]
    ])
    error_message = "what is allowed and what the denial leaves out is this policy, by its id"
  }
}

run "a_freeze_of_an_organisation_without_its_policy" {
  command = plan

  variables {
    grants = ["freeze-organisation"]
  }

  expect_failures = [var.grants]
}

run "grants_wait_for_acting" {
  command = apply

  variables {
    grants = ["succeed", "freeze"]
  }

  assert {
    condition     = !contains(keys(aws_iam_policy.purpose), "succeed") && !contains(keys(aws_iam_policy.purpose), "freeze")
    error_message = "reading, nothing is made"
  }
}

run "a_grant_that_there_is_not" {
  command = plan

  variables {
    grants = ["undo"]
  }

  expect_failures = [var.grants]
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

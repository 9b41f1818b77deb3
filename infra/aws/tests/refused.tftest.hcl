# What a plan refuses, and where it says why.

mock_provider "aws" {
  source = "./tests/mocks"
}

variables {
  region  = "us-east-1"
  secrets = { COSTGUARD_SLACK_SIGNING_SECRET = "costguard/slack-signing-secret" }
}

run "a_secret_among_the_settings" {
  command = plan

  variables {
    settings = { COSTGUARD_SLACK_TOKEN = "made-up" }
  }

  expect_failures = [var.settings]
}

run "a_secret_in_place_of_its_name" {
  command = plan

  variables {
    secrets = { COSTGUARD_SLACK_SIGNING_SECRET = "costguard/slack-signing-secret", COSTGUARD_SLACK_TOKEN = "xoxb-made-up" }
  }

  expect_failures = [var.secrets]
}

run "a_secret_nobody_reads" {
  command = plan

  variables {
    secrets = { COSTGUARD_SLACK_SIGNING_SECRET = "costguard/slack-signing-secret", COSTGUARD_SLACK_TOKENS = "costguard/slack" }
  }

  expect_failures = [var.secrets]
}

run "a_policy_of_ones_own" {
  command = plan

  variables {
    settings = { COSTGUARD_POLICY = "s3://elsewhere?region=us-east-1" }
  }

  expect_failures = [var.settings]
}

run "a_function_without_its_secret" {
  command = plan

  variables {
    secrets = {}
  }

  expect_failures = [aws_lambda_function.function]
}

run "a_function_there_is_not" {
  command = plan

  variables {
    functions = ["idle_gpus"]
  }

  expect_failures = [var.functions]
}

run "a_schedule_for_what_has_none" {
  command = plan

  variables {
    schedules = { slack_actions = "0 * * * *" }
  }

  expect_failures = [var.schedules]
}

run "an_account_that_lost_its_zero" {
  command = plan

  variables {
    member_accounts = ["33344445555"]
  }

  expect_failures = [var.member_accounts]
}

run "concurrency_zero" {
  command = plan

  variables {
    reserved_concurrency = 0
  }

  expect_failures = [var.reserved_concurrency]
}

run "a_retention_there_is_not" {
  command = plan

  variables {
    log_retention_days = 100
  }

  expect_failures = [var.log_retention_days]
}

run "a_long_name" {
  command = plan

  variables {
    name = "costguard-of-the-research-department"
  }

  expect_failures = [var.name]
}

run "a_log_level_that_alarms_do_not_read_is_refused" {
  command = plan

  variables {
    settings = { COSTGUARD_LOG_LEVEL = "warning" }
  }

  expect_failures = [var.settings]
}

run "an_organisation_that_is_none" {
  command = plan

  variables {
    organisation_id = "r-a1b2"
  }

  expect_failures = [var.organisation_id]
}

run "a_freeze_of_an_organisation_without_its_policy" {
  command = plan

  variables {
    grants = ["freeze-organisation"]
  }

  expect_failures = [var.grants]
}

run "a_freeze_with_a_policy_of_aws" {
  command = plan

  variables {
    freeze_policies = ["p-FullAWSAccess"]
  }

  expect_failures = [var.freeze_policies]
}

# What would be made, with the cloud's answers made up: costguard bundle fc --out ../../build, terraform init, terraform test.

mock_provider "alicloud" {
  mock_data "alicloud_account" {
    defaults = { id = "1234567890123456" }
  }
  mock_data "alicloud_db_zones" {
    defaults = { ids = ["cn-hangzhou-h", "cn-hangzhou-k"] }
  }
  mock_data "alicloud_fc_zones" {
    defaults = { ids = ["cn-hangzhou-k", "cn-hangzhou-j"] }
  }
  mock_resource "alicloud_fcv3_trigger" {
    defaults = { http_trigger = [{ url_internet = "https://answers.example.com", url_intranet = "" }] }
  }
  mock_resource "alicloud_db_instance" {
    defaults = { connection_string = "ledger.example.com", port = "5432" }
  }
}

mock_provider "alicloud" {
  alias = "alert_center"
}

variables {
  region = "cn-hangzhou"
  secrets = {
    COSTGUARD_LEDGER               = "costguard/ledger"
    COSTGUARD_SLACK_TOKEN          = "costguard/slack#token"
    COSTGUARD_SLACK_SIGNING_SECRET = "costguard/slack#signing"
  }
  alarm_mail = "cost@example.com"
}

run "observing" {
  command = apply

  variables {
    grants = ["freeze", "succeed"] # of no effect until it enforces
  }

  assert {
    condition     = alltrue([for name, role in local.granted : length(setintersection(role, ["act-idle_gpu", "act-budget", "rotate", "fix_network", "freeze", "succeed", "mail", "members"])) == 0])
    error_message = "Without `enforce` a role acts: ${jsonencode(local.granted)}"
  }
  assert {
    condition     = alltrue([for name, _ in local.functions : contains(local.granted[name], "deny")])
    error_message = "A role lacks the denials: ${jsonencode(local.granted)}"
  }
  assert {
    condition     = alicloud_fcv3_trigger.timer["digest"].trigger_config == jsonencode({ cronExpression = "0 11 1 * * MON", enable = true, payload = "" })
    error_message = "The weekly timer: ${alicloud_fcv3_trigger.timer["digest"].trigger_config}"
  }
  assert {
    condition     = alicloud_fcv3_function.timed["idle_gpu"].environment_variables.COSTGUARD_LEDGER == "secret:costguard/ledger" && alicloud_fcv3_function.timed["idle_gpu"].environment_variables.COSTGUARD_ANSWER_URL == "https://answers.example.com" && alicloud_fcv3_function.timed["idle_gpu"].environment_variables.COSTGUARD_CLOUD == "alibaba"
    error_message = "Settings of idle_gpu: ${jsonencode(alicloud_fcv3_function.timed["idle_gpu"].environment_variables)}"
  }
  assert {
    condition     = !contains(keys(alicloud_fcv3_function.timed["idle_gpu"].environment_variables), "COSTGUARD_SLACK_SIGNING_SECRET") && !contains(keys(alicloud_fcv3_function.timed["idle_gpu"].environment_variables), "COSTGUARD_REPORTS")
    error_message = "idle_gpu is given what it does not read."
  }
  assert {
    condition     = strcontains(alicloud_ram_policy.own["idle_gpu"].policy_document, "acs:kms:cn-hangzhou:1234567890123456:secret/costguard/ledger") && !strcontains(alicloud_ram_policy.own["idle_gpu"].policy_document, "*:secret/")
    error_message = "Secrets are not narrowed: ${alicloud_ram_policy.own["idle_gpu"].policy_document}"
  }
  assert {
    condition     = strcontains(alicloud_ram_policy.own["slack_actions"].policy_document, "oss:GetObject") && !strcontains(alicloud_ram_policy.own["slack_actions"].policy_document, "ecs:") && !strcontains(alicloud_ram_policy.own["slack_actions"].policy_document, "mns:")
    error_message = "slack_actions may more than it needs: ${alicloud_ram_policy.own["slack_actions"].policy_document}"
  }
  assert {
    condition     = output.ledger == "postgresql://costguard@ledger.example.com:5432/costguard" && output.ledger_from_desk == "" && output.policy_source == "oss://costguard-1234567890123456-cn-hangzhou/policy?region=cn-hangzhou"
    error_message = "${output.ledger} ${output.policy_source}"
  }
  assert {
    condition     = alicloud_vswitch.here.zone_id == "cn-hangzhou-k"
    error_message = "Not a zone that both know: ${alicloud_vswitch.here.zone_id}"
  }
  assert {
    condition     = { for key in ["idle_gpu/missed", "idle_gpu/dead-man", "kms_rotation/missed", "kms_rotation/dead-man"] : key => [local.watches[key].seconds / 3600, local.watches[key].every / 3600, local.watches[key].times] } == { "idle_gpu/missed" = [2, 1, 1], "idle_gpu/dead-man" = [3, 1, 1], "kms_rotation/missed" = [24, 4, 2], "kms_rotation/dead-man" = [24, 4, 8] }
    error_message = "Silence is not measured as said: ${jsonencode({ for key, watch in local.watches : key => [watch.seconds, watch.every, watch.times] })}"
  }
  assert {
    condition     = alicloud_sls_alert.watch["idle_gpu/missed"].configuration[0].query_list[0].query == "(\"run\" and \"finished\") | select count(1) as lines"
    error_message = alicloud_sls_alert.watch["idle_gpu/missed"].configuration[0].query_list[0].query
  }
  assert {
    condition     = alltrue([for key, watch in local.watches : !startswith(key, "digest/missed") && !startswith(key, "slack_actions/dead")])
    error_message = "What is not run daily is watched for silence."
  }
}

run "a_thousand_members_of_an_organisation" {
  command = apply

  variables {
    organisation_id = "rd-Ab12Cd"
    enforce         = true
    grants          = ["freeze", "freeze-organisation", "succeed"]
    secret_keys     = ["key-hzz-0001"]
  }

  assert {
    condition     = length(alicloud_ram_policy.members) == 4 && one([for one in jsondecode(alicloud_ram_policy.members["idle_gpu/organisation"].policy_document).Statement : one.Resource if contains(one.Action, "sts:AssumeRole")]) == ["acs:ram::*:role/costguard-member-idle-gpu"]
    error_message = "this function's role in any account, however many there are: ${alicloud_ram_policy.members["idle_gpu/organisation"].policy_document}"
  }
  assert {
    condition     = contains(local.granted.budget, "freeze-organisation")
    error_message = "a policy of the organisation is attached where that is asked for"
  }
}

run "accounts_by_number" {
  command = apply

  variables {
    member_accounts = [for number in range(480) : tostring(2234567890120000 + number)]
    enforce         = true
    grants          = ["freeze", "freeze-organisation", "succeed"]
    secret_keys     = ["key-hzz-0001"]
  }

  assert {
    condition     = length(alicloud_ram_policy.members) == 4 * 8 && alltrue([for policy in merge(alicloud_ram_policy.members, alicloud_ram_policy.own) : length(policy.policy_document) <= 6144])
    error_message = "each policy within 6,144 letters"
  }
  assert {
    condition     = length(flatten([for key, policy in alicloud_ram_policy.members : [for one in jsondecode(policy.policy_document).Statement : one.Resource if contains(one.Action, "sts:AssumeRole")] if startswith(key, "network_audit/")])) == 480
    error_message = "every account, once"
  }
}

run "more_accounts_than_a_role_can_name" {
  command = plan

  variables {
    member_accounts = [for number in range(1000) : tostring(2234567890120000 + number)]
    secret_keys     = ["key-hzz-0001"]
  }

  expect_failures = [alicloud_ram_role.function]
}

run "enforcing_in_further_accounts" {
  command = apply

  variables {
    enforce         = true
    member_accounts = ["2234567890123456"]
    secret_keys     = ["key-hzz-0001"]
    grants          = ["freeze", "succeed"]
  }

  assert {
    condition     = jsonencode({ for name, role in local.granted : name => [for purpose in role : purpose if contains(["freeze", "succeed"], purpose)] if length(setintersection(role, ["freeze", "succeed"])) > 0 }) == jsonencode({ budget = ["freeze"], kms_rotation = ["succeed"] })
    error_message = "Granted to others than ask for it: ${jsonencode(local.granted)}"
  }

  assert {
    condition     = contains(local.granted.idle_gpu, "act-idle_gpu") && contains(local.granted.kms_rotation, "rotate") && contains(local.granted.idle_gpu, "members") && !contains(local.granted.slack_actions, "members")
    error_message = jsonencode(local.granted)
  }
  assert {
    condition     = strcontains(alicloud_ram_policy.members["idle_gpu/0"].policy_document, "acs:ram::2234567890123456:role/costguard-member-idle-gpu") && alicloud_fcv3_function.timed["idle_gpu"].environment_variables.COSTGUARD_ALIBABA_ROLE == "costguard-member-idle-gpu"
    error_message = alicloud_ram_policy.members["idle_gpu/0"].policy_document
  }
}

run "only_who_reads_secrets_may_use_their_key" {
  command = apply

  variables {
    functions   = ["digest", "idle_gpu", "slack_actions"]
    secret_keys = ["key-hzz-0001"]
  }

  assert {
    condition     = strcontains(alicloud_ram_policy.own["idle_gpu"].policy_document, "{\"Action\":[\"kms:Decrypt\"],\"Effect\":\"Allow\",\"Resource\":[\"acs:kms:cn-hangzhou:1234567890123456:key/key-hzz-0001\"]}")
    error_message = alicloud_ram_policy.own["idle_gpu"].policy_document
  }
}

run "secrets_in_the_bucket" {
  command = apply

  variables {
    secret_store = "bucket"
    secret_keys  = ["key-hzz-0001"]
  }

  assert {
    condition     = alicloud_fcv3_function.timed["idle_gpu"].environment_variables.COSTGUARD_LEDGER == "secret:oss://costguard-1234567890123456-cn-hangzhou/secrets/costguard/ledger"
    error_message = alicloud_fcv3_function.timed["idle_gpu"].environment_variables.COSTGUARD_LEDGER
  }
  assert {
    condition     = strcontains(alicloud_ram_policy.own["idle_gpu"].policy_document, "acs:oss:*:1234567890123456:costguard-1234567890123456-cn-hangzhou/secrets/costguard/ledger") && !strcontains(alicloud_ram_policy.own["idle_gpu"].policy_document, "kms:")
    error_message = alicloud_ram_policy.own["idle_gpu"].policy_document
  }
  assert {
    condition     = !strcontains(alicloud_ram_policy.own["idle_gpu"].policy_document, "/secrets/*")
    error_message = "A role reads every secret."
  }
}

run "a_secret_is_no_setting" {
  command = plan

  variables {
    settings = { COSTGUARD_SLACK_TOKEN = "anything" }
  }

  expect_failures = [var.settings]
}

run "a_secret_is_named_and_not_shown" {
  command = plan

  variables {
    secrets = { COSTGUARD_SLACK_TOKEN = "xoxb-1-2" }
  }

  expect_failures = [var.secrets]
}

run "a_function_without_its_ledger_is_refused" {
  command = plan

  variables {
    functions = ["idle_gpu"]
    secrets   = {}
  }

  expect_failures = [alicloud_oss_bucket_object.bundle["idle_gpu"]]
}

run "a_desk_for_a_while" {
  command = apply

  variables {
    desk_networks = ["203.0.113.7/32"]
  }

  assert {
    condition     = toset(alicloud_db_instance.ledger.security_ips) == toset(["10.213.0.0/24", "203.0.113.7/32"]) && endswith(output.ledger_from_desk, "?sslmode=require")
    error_message = output.ledger_from_desk
  }
}

run "no_desk_is_the_whole_internet" {
  command = plan

  variables {
    desk_networks = ["0.0.0.0/0"]
  }

  expect_failures = [var.desk_networks]
}

run "another_name_and_other_times" {
  command = plan

  variables {
    name      = "guard"
    functions = ["digest", "kms_rotation"]
    schedules = { kms_rotation = "5 2 * * 1-5" }
    secrets   = { COSTGUARD_LEDGER = "costguard/ledger", COSTGUARD_SLACK_TOKEN = "costguard/slack#token" }
  }

  assert {
    condition     = alicloud_fcv3_function.timed["kms_rotation"].function_name == "guard-kms_rotation" && keys(output.functions) == ["digest", "kms_rotation"] && output.answer_url == ""
    error_message = jsonencode(output.functions)
  }
  assert {
    condition     = alltrue([for name in concat([for role in alicloud_ram_role.function : role.role_name], [for policy in alicloud_ram_policy.own : policy.policy_name], [alicloud_ram_policy.deny.policy_name, alicloud_oss_bucket.policy.bucket, alicloud_log_project.here.project_name, alicloud_vpc.here.vpc_name, alicloud_db_instance.ledger.instance_name, alicloud_message_service_queue.dead_letters.queue_name]) : startswith(name, "guard")])
    error_message = "Two deployments in one account would meet: a name does not begin with theirs."
  }
  assert {
    condition     = { for name, timer in alicloud_fcv3_trigger.timer : name => jsondecode(timer.trigger_config).cronExpression } == { digest = "0 11 1 * * MON", kms_rotation = "0 5 2 * * MON,TUE,WED,THU,FRI" }
    error_message = jsonencode({ for name, timer in alicloud_fcv3_trigger.timer : name => timer.trigger_config })
  }
  assert {
    condition     = alltrue([for settings in [for function in alicloud_fcv3_function.timed : function.environment_variables] : alltrue([for name, value in settings : !contains(local.secret_settings, name) || startswith(value, "secret:")])])
    error_message = "A function is given a secret itself, not its name."
  }
}

run "what_no_deployment_has_is_refused" {
  command = plan

  variables {
    name               = "Guard"
    schedules          = { slack_actions = "0 * * * *" }
    member_accounts    = ["a friend's"]
    member_role        = "under_scored"
    settings           = { COSTGUARD_POLICY = "policy.yaml" }
    secrets            = { COSTGUARD_LEDGER = "costguard/ledger", COSTGUARD_NOBODY_READS = "costguard/none" }
    grants             = ["everything"]
    log_retention_days = 0
    secret_keys        = ["*"]
  }

  expect_failures = [var.name, var.schedules, var.member_accounts, var.member_role, var.settings, var.secrets, var.grants, var.log_retention_days, var.secret_keys]
}

run "a_function_that_is_not_there_is_refused" {
  command = plan

  variables {
    functions = ["digest", "idle_cpu"]
  }

  expect_failures = [var.functions]
}

run "a_log_level_that_alarms_do_not_read_is_refused" {
  command = plan

  variables {
    settings = { COSTGUARD_LOG_LEVEL = "warning" }
  }

  expect_failures = [var.settings]
}

run "the_kill_switch_reaches_everything" {
  command = plan

  variables {
    settings = { COSTGUARD_PAUSED = "1" }
  }

  assert {
    condition     = alltrue([for settings in local.environment : settings["COSTGUARD_PAUSED"] == "1"])
    error_message = jsonencode({ for name, settings in local.environment : name => keys(settings) })
  }
}

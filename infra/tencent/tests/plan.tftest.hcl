# What would be made, with the cloud's answers made up: costguard bundle scf --out ../../build, terraform init, terraform test.

mock_provider "tencentcloud" {
  mock_data "tencentcloud_user_info" {
    defaults = { owner_uin = "100000000001", app_id = "1250000000" }
  }
  mock_data "tencentcloud_postgresql_zones" {
    defaults = { zone_set = [
      { zone = "ap-guangzhou-2", zone_state = "SELLOUT" },
      { zone = "ap-guangzhou-6", zone_state = "AVAILABLE" },
    ] }
  }
  mock_data "tencentcloud_postgresql_db_instance_classes" {
    defaults = { class_info_set = [
      { cpu = 2, memory = 4096, min_storage = 10 },
      { cpu = 1, memory = 2048, min_storage = 15 },
      { cpu = 12, memory = 16384, min_storage = 10 },
    ] }
  }
  mock_data "tencentcloud_scf_triggers" {
    defaults = { triggers = [{ type = "http", trigger_desc = "{\"AuthType\":\"NONE\",\"NetConfig\":{\"ExtranetUrl\":\"https://answers.example.com/\"}}" }] }
  }
  mock_resource "tencentcloud_postgresql_instance" {
    defaults = { private_access_ip = "10.213.0.7", private_access_port = 5432 }
  }
}

variables {
  region = "ap-guangzhou"
  secrets = {
    COSTGUARD_LEDGER               = "costguard-ledger?version=v1"
    COSTGUARD_SLACK_TOKEN          = "costguard-slack?version=v1#token"
    COSTGUARD_SLACK_SIGNING_SECRET = "costguard-slack?version=v1#signing"
  }
  alarm_mail = "cost@example.com"
}

run "observing" {
  command = apply

  variables {
    grants = ["freeze"] # of no effect until it enforces
  }

  assert {
    condition     = alltrue([for name, role in local.granted : length(setintersection(role, ["act-idle_gpu", "act-budget", "rotate", "fix_network", "freeze", "members"])) == 0])
    error_message = "Without `enforce` a role acts: ${jsonencode(local.granted)}"
  }
  assert {
    condition     = alltrue([for name, _ in local.functions : contains(local.granted[name], "deny")])
    error_message = "A role lacks the denials: ${jsonencode(local.granted)}"
  }
  assert {
    condition     = tencentcloud_scf_trigger.timer["digest"].trigger_desc == "0 11 9 * * MON *" && tencentcloud_scf_trigger.timer["kms_rotation"].trigger_desc == "0 23 13 * * * *"
    error_message = "The timers: ${jsonencode({ for name, one in tencentcloud_scf_trigger.timer : name => one.trigger_desc })}"
  }
  assert {
    condition     = tencentcloud_scf_function.timed["idle_gpu"].environment.COSTGUARD_LEDGER == "secret:costguard-ledger?version=v1" && tencentcloud_scf_function.timed["idle_gpu"].environment.COSTGUARD_ANSWER_URL == "https://answers.example.com" && tencentcloud_scf_function.timed["idle_gpu"].environment.COSTGUARD_CLOUD == "tencent"
    error_message = "Settings of idle_gpu: ${jsonencode(tencentcloud_scf_function.timed["idle_gpu"].environment)}"
  }
  assert {
    condition     = !contains(keys(tencentcloud_scf_function.timed["idle_gpu"].environment), "COSTGUARD_SLACK_SIGNING_SECRET") && !contains(keys(tencentcloud_scf_function.timed["idle_gpu"].environment), "COSTGUARD_REPORTS")
    error_message = "idle_gpu is given what it does not read."
  }
  assert {
    condition     = strcontains(tencentcloud_cam_policy.own["idle_gpu"].document, "qcs::ssm:ap-guangzhou:uin/100000000001:secret/creatorUin/*/costguard-ledger") && !strcontains(tencentcloud_cam_policy.own["idle_gpu"].document, "qcs::ssm:::")
    error_message = "Secrets are not narrowed: ${tencentcloud_cam_policy.own["idle_gpu"].document}"
  }
  assert {
    condition     = strcontains(tencentcloud_cam_policy.own["slack_actions"].document, "cos:GetObject") && !strcontains(tencentcloud_cam_policy.own["slack_actions"].document, "cvm:")
    error_message = "slack_actions may more than it needs: ${tencentcloud_cam_policy.own["slack_actions"].document}"
  }
  assert {
    condition     = output.ledger == "postgresql://costguard@10.213.0.7:5432/costguard?sslmode=require" && output.ledger_from_desk == "" && output.policy_source == "cos://costguard-ap-guangzhou-1250000000/policy?region=ap-guangzhou"
    error_message = "${output.ledger} ${output.policy_source}"
  }
  assert {
    condition     = tencentcloud_postgresql_instance.ledger.cpu == 1 && tencentcloud_postgresql_instance.ledger.memory == 2 && tencentcloud_postgresql_instance.ledger.storage == 20 && tencentcloud_subnet.here.availability_zone == "ap-guangzhou-6"
    error_message = "Not the smallest class of a zone that sells: ${tencentcloud_postgresql_instance.ledger.cpu} ${tencentcloud_postgresql_instance.ledger.memory} ${tencentcloud_postgresql_instance.ledger.storage}"
  }
  assert {
    condition     = length(tencentcloud_postgresql_instance.ledger.root_password) == 30
    error_message = "Tencent Cloud takes passwords of 8 to 32 letters."
  }
  assert {
    condition     = { for key in ["idle_gpu/missed", "idle_gpu/dead-man", "kms_rotation/missed", "kms_rotation/dead-man"] : key => [local.watches[key].seconds / 3600, local.watches[key].every / 3600, local.watches[key].times] } == { "idle_gpu/missed" = [2, 1, 1], "idle_gpu/dead-man" = [3, 1, 1], "kms_rotation/missed" = [24, 4, 2], "kms_rotation/dead-man" = [24, 4, 8] }
    error_message = "Silence is not measured as said: ${jsonencode({ for key, watch in local.watches : key => [watch.seconds, watch.every, watch.times] })}"
  }
  assert {
    condition     = one(tencentcloud_cls_alarm.watch["idle_gpu/missed"].alarm_targets).query == "\"run finished\" | select count(*) as lines" && one(tencentcloud_cls_alarm.watch["idle_gpu/missed"].alarm_targets).start_time_offset == -120
    error_message = jsonencode(tencentcloud_cls_alarm.watch["idle_gpu/missed"].alarm_targets)
  }
  assert {
    condition     = alltrue([for key, watch in local.watches : !startswith(key, "digest/missed") && !startswith(key, "slack_actions/dead") && watch.times <= 10])
    error_message = "What is not run daily is watched for silence, or an alarm waits longer than CLS counts."
  }
}

run "nobody_to_tell" {
  command = plan

  variables {
    alarm_mail = ""
  }

  assert {
    condition     = length(tencentcloud_cls_alarm.watch) == 0 && length(tencentcloud_cam_user.mailed) == 0
    error_message = "An alarm that tells nobody."
  }
}

run "a_thousand_members_of_an_organisation" {
  command = apply

  variables {
    organisation_id = "12345"
    enforce         = true
    grants          = ["freeze", "freeze-organisation"]
  }

  assert {
    condition     = length(tencentcloud_cam_policy.members) == 4 && one([for one in jsondecode(tencentcloud_cam_policy.members["idle_gpu/organisation"].document).statement : one.resource if contains(one.action, "sts:AssumeRole")]) == ["qcs::cam::uin/*:roleName/costguard-member-idle_gpu"]
    error_message = "this function's role in any account, however many there are: ${tencentcloud_cam_policy.members["idle_gpu/organisation"].document}"
  }
  assert {
    condition     = contains(local.granted.budget, "freeze-organisation")
    error_message = "a policy of the organisation is attached where that is asked for"
  }
}

run "accounts_by_number" {
  command = apply

  variables {
    member_accounts = [for number in range(480) : tostring(100000000000 + number)]
    enforce         = true
    grants          = ["freeze", "freeze-organisation"]
  }

  assert {
    condition     = length(tencentcloud_cam_policy.members) == 4 * 8 && alltrue([for policy in merge(tencentcloud_cam_policy.members, tencentcloud_cam_policy.own) : length(policy.document) <= 6144])
    error_message = "each policy within 6,144 letters"
  }
  assert {
    condition     = length(flatten([for key, policy in tencentcloud_cam_policy.members : [for one in jsondecode(policy.document).statement : one.resource if contains(one.action, "sts:AssumeRole")] if startswith(key, "network_audit/")])) == 480
    error_message = "every account, once"
  }
}

run "more_accounts_than_a_role_can_name" {
  command = plan

  variables {
    member_accounts = [for number in range(1000) : tostring(100000000000 + number)]
  }

  expect_failures = [tencentcloud_cam_role.function]
}

run "enforcing_in_further_accounts" {
  command = apply

  variables {
    enforce         = true
    member_accounts = ["100000000002"]
    grants          = ["freeze"]
  }

  assert {
    condition     = jsonencode({ for name, role in local.granted : name => [for purpose in role : purpose if contains(["freeze"], purpose)] if length(setintersection(role, ["freeze"])) > 0 }) == jsonencode({ budget = ["freeze"] })
    error_message = "Granted to others than ask for it: ${jsonencode(local.granted)}"
  }

  assert {
    condition     = contains(local.granted.idle_gpu, "act-idle_gpu") && contains(local.granted.kms_rotation, "rotate") && contains(local.granted.idle_gpu, "members") && !contains(local.granted.slack_actions, "members")
    error_message = jsonencode(local.granted)
  }
  assert {
    condition     = strcontains(tencentcloud_cam_policy.members["idle_gpu/0"].document, "qcs::cam::uin/100000000002:roleName/costguard-member-idle_gpu") && tencentcloud_scf_function.timed["idle_gpu"].environment.COSTGUARD_TENCENT_ROLE == "costguard-member-idle_gpu"
    error_message = tencentcloud_cam_policy.members["idle_gpu/0"].document
  }
}

run "a_secret_is_no_setting" {
  command = plan

  variables {
    settings = { COSTGUARD_SLACK_TOKEN = "anything" }
  }

  expect_failures = [var.settings]
}

run "a_secret_has_a_version" {
  command = plan

  variables {
    secrets = { COSTGUARD_LEDGER = "costguard-ledger" }
  }

  expect_failures = [var.secrets]
}

run "a_function_without_its_ledger_is_refused" {
  command = plan

  variables {
    functions = ["idle_gpu"]
    secrets   = {}
  }

  expect_failures = [tencentcloud_cos_bucket_object.bundle["idle_gpu"]]
}

run "a_desk_for_a_while" {
  command = apply

  variables {
    desk_networks = ["203.0.113.7/32"]
  }

  assert {
    condition     = tencentcloud_postgresql_instance.ledger.public_access_switch && [for rule in tencentcloud_security_group_rule_set.ledger.ingress : rule.action] == ["ACCEPT", "ACCEPT", "DROP"] && endswith(output.ledger_from_desk, "?sslmode=require")
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
    secrets   = { COSTGUARD_LEDGER = "costguard-ledger?version=v1", COSTGUARD_SLACK_TOKEN = "costguard-slack?version=v1#token" }
  }

  assert {
    condition     = tencentcloud_scf_function.timed["kms_rotation"].name == "guard-kms_rotation" && keys(output.functions) == ["digest", "kms_rotation"] && output.answer_url == ""
    error_message = jsonencode(output.functions)
  }
  assert {
    condition     = alltrue([for name in concat([for role in tencentcloud_cam_role.function : role.name], [for policy in tencentcloud_cam_policy.own : policy.name], [for alarm in tencentcloud_cls_alarm.watch : alarm.name], [for topic in tencentcloud_cls_topic.function : topic.topic_name], [tencentcloud_cam_policy.deny.name, tencentcloud_cos_bucket.policy.bucket, tencentcloud_cls_logset.here.logset_name, tencentcloud_vpc.here.name, tencentcloud_postgresql_instance.ledger.name]) : startswith(name, "guard")])
    error_message = "Two deployments in one account would meet: a name does not begin with theirs."
  }
  assert {
    condition     = { for name, timer in tencentcloud_scf_trigger.timer : name => timer.trigger_desc } == { digest = "0 11 9 * * MON *", kms_rotation = "0 5 10 * * MON,TUE,WED,THU,FRI *" }
    error_message = jsonencode({ for name, timer in tencentcloud_scf_trigger.timer : name => timer.trigger_desc })
  }
  assert {
    condition     = alltrue([for settings in [for function in tencentcloud_scf_function.timed : function.environment] : alltrue([for name, value in settings : !contains(local.secret_settings, name) || startswith(value, "secret:")])])
    error_message = "A function is given a secret itself, not its name."
  }
}

run "what_no_deployment_has_is_refused" {
  command = plan

  variables {
    name               = "Guard"
    schedules          = { slack_actions = "0 * * * *" }
    member_accounts    = ["a friend's"]
    member_role        = "role of a member"
    settings           = { COSTGUARD_POLICY = "policy.yaml" }
    secrets            = { COSTGUARD_LEDGER = "costguard-ledger?version=v1", COSTGUARD_NOBODY_READS = "costguard-none?version=v1" }
    grants             = ["succeed"]
    log_retention_days = 0
  }

  expect_failures = [var.name, var.schedules, var.member_accounts, var.member_role, var.settings, var.secrets, var.grants, var.log_retention_days]
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

# One function for each folder in functions/; what each takes is said in its function.yaml and nowhere else.

locals {
  folder = "${path.module}/../../functions"
  known  = { for file in fileset(local.folder, "*/function.yaml") : dirname(file) => yamldecode(file("${local.folder}/${file}")) }

  functions = { for name, facts in local.known : name => facts if var.functions == null ? true : contains(var.functions, name) }
  timed     = { for name, facts in local.functions : name => facts if can(facts.schedule) }
  asked     = { for name, facts in local.functions : name => facts if can(facts.http) }

  reads          = { for name, facts in local.functions : name => concat(facts.needs.settings.required, facts.needs.settings.optional) }
  known_settings = distinct(concat(flatten(values(local.reads)), ["COSTGUARD_ALIBABA_EXTERNAL_ID"]))

  # Those that docs/settings.md calls secret; tests/infra compares.
  secret_settings = [
    "COSTGUARD_FORGE_TOKEN", "COSTGUARD_LEDGER", "COSTGUARD_LINK_SECRET", "COSTGUARD_PROMETHEUS_AUTHORIZATION", "COSTGUARD_ROBOTS",
    "COSTGUARD_SLACK_SIGNING_SECRET", "COSTGUARD_SLACK_TOKEN", "COSTGUARD_SMTP_PASSWORD", "COSTGUARD_WEBHOOK_SECRET",
  ]
  own_settings = ["COSTGUARD_ALIBABA_ROLE", "COSTGUARD_ANSWER_URL", "COSTGUARD_NAME", "COSTGUARD_POLICY", "COSTGUARD_REPORTS"]

  secret_prefix = var.secret_store == "kms" ? "secret:" : "secret:oss://${local.bucket}/secrets/"

  for_all = ["COSTGUARD_PAUSED"] # the kill switch reaches everything, whoever names it

  # What this deployment knows itself; each function gets what it reads.
  made_settings = { COSTGUARD_NAME = var.name, COSTGUARD_POLICY = local.policy_source, COSTGUARD_REPORTS = local.reports }
  enters        = { for name, facts in local.functions : name => facts if local.has_members && can(facts.needs.policies.members) }
  environment = {
    for name, reads in local.reads : name => merge(
      { COSTGUARD_CLOUD = "alibaba" }, # where the policy names no account; the international site is alibaba-intl, said in `settings`
      { for key, value in local.made_settings : key => value if contains(reads, key) },
      { for key, value in var.settings : key => value if contains(reads, key) || contains(local.for_all, key) || !contains(local.known_settings, key) },
      { for key, value in var.settings : key => value if key == "COSTGUARD_ALIBABA_EXTERNAL_ID" && contains(keys(local.enters), name) },
      { for key, at in var.secrets : key => "${local.secret_prefix}${at}" if contains(reads, key) },
      contains(keys(local.enters), name) ? { COSTGUARD_ALIBABA_ROLE = "${var.member_role}-${local.dashed[name]}" } : {},
    )
  }

  # The code's hash stands in the description as well: the provider sends new code only where something else changes too.
  hashes = { for name, _ in local.functions : name => try(filesha256("${var.bundles}/${name}.zip"), "none") }
}

resource "alicloud_oss_bucket_object" "bundle" {
  for_each = local.functions

  bucket = alicloud_oss_bucket.policy.bucket
  key    = "bundles/${each.key}-${substr(local.hashes[each.key], 0, 16)}.zip"
  source = "${var.bundles}/${each.key}.zip"
  acl    = "private"

  lifecycle {
    precondition {
      condition     = local.hashes[each.key] != "none"
      error_message = "${var.bundles}/${each.key}.zip is not there; make it with `costguard bundle fc --out build`."
    }
    precondition {
      condition     = length(setsubtract(each.value.needs.settings.required, keys(local.environment[each.key]))) == 0
      error_message = "${each.key} needs ${join(", ", setsubtract(each.value.needs.settings.required, keys(local.environment[each.key])))}: name the secret that holds it in `secrets`, or leave the function out of `functions`."
    }
    precondition {
      condition     = length(jsonencode(local.environment[each.key])) <= 3000
      error_message = "FC takes 4 KB of environment, the role's keys included; ${each.key} has ${length(jsonencode(local.environment[each.key]))} letters of settings."
    }
  }
}

resource "alicloud_fcv3_function" "timed" {
  for_each = local.timed

  function_name         = "${var.name}-${each.key}"
  description           = "Costguard ${each.key}, bundle ${substr(local.hashes[each.key], 0, 16)}"
  handler               = "handler.handler"
  runtime               = "python3.10" # 3.12 is in some regions only and hands no keys to a call: docs/hosts.md
  role                  = alicloud_ram_role.function[each.key].arn
  memory_size           = each.value.memory_mib
  cpu                   = ceil(each.value.memory_mib / 1024 / 2 * 20) / 20 # FC counts in 0.05; half a core for a GiB
  disk_size             = 512
  timeout               = each.value.timeout_seconds
  instance_concurrency  = 1
  internet_access       = true # clouds and Slack; FC needs no NAT gateway for it
  environment_variables = merge(local.environment[each.key], local.told_answer_url[each.key])
  tags                  = local.tags

  code {
    oss_bucket_name = alicloud_oss_bucket_object.bundle[each.key].bucket
    oss_object_name = alicloud_oss_bucket_object.bundle[each.key].key
  }

  log_config {
    project        = alicloud_log_project.here.project_name
    logstore       = alicloud_log_store.function[each.key].logstore_name
    log_begin_rule = "None" # a line is one JSON object
  }

  vpc_config {
    vpc_id            = alicloud_vpc.here.id
    vswitch_ids       = [alicloud_vswitch.here.id]
    security_group_id = alicloud_security_group.functions.id
  }

  depends_on = [alicloud_ram_role_policy_attachment.own, alicloud_ram_role_policy_attachment.deny, alicloud_ram_role_policy_attachment.members]
}

# Apart from the others, because they are told this one's address.
resource "alicloud_fcv3_function" "asked" {
  for_each = local.asked

  function_name         = "${var.name}-${each.key}"
  description           = "Costguard ${each.key}, bundle ${substr(local.hashes[each.key], 0, 16)}"
  handler               = "handler.handler"
  runtime               = "python3.10"
  role                  = alicloud_ram_role.function[each.key].arn
  memory_size           = each.value.memory_mib
  cpu                   = ceil(each.value.memory_mib / 1024 * 20) / 20 # a whole core for a GiB: Slack waits 3 s
  disk_size             = 512
  timeout               = each.value.timeout_seconds
  instance_concurrency  = 1
  internet_access       = true
  environment_variables = local.environment[each.key]
  tags                  = local.tags

  code {
    oss_bucket_name = alicloud_oss_bucket_object.bundle[each.key].bucket
    oss_object_name = alicloud_oss_bucket_object.bundle[each.key].key
  }

  log_config {
    project        = alicloud_log_project.here.project_name
    logstore       = alicloud_log_store.function[each.key].logstore_name
    log_begin_rule = "None"
  }

  vpc_config {
    vpc_id            = alicloud_vpc.here.id
    vswitch_ids       = [alicloud_vswitch.here.id]
    security_group_id = alicloud_security_group.functions.id
  }

  depends_on = [alicloud_ram_role_policy_attachment.own, alicloud_ram_role_policy_attachment.deny, alicloud_ram_role_policy_attachment.members]
}

# A failed run is tried twice more with the same event, hence under the same run id; after an hour the next run has come.
resource "alicloud_fcv3_async_invoke_config" "timed" {
  for_each = local.timed

  function_name                  = alicloud_fcv3_function.timed[each.key].function_name
  qualifier                      = "LATEST"
  max_async_retry_attempts       = 2
  max_async_event_age_in_seconds = 3600

  destination_config {
    on_failure {
      destination = "${local.dead_letters}/messages"
    }
  }
}

# Events that no try got done, with the error of the last one.
resource "alicloud_message_service_queue" "dead_letters" {
  queue_name               = "${var.name}-dead-letters"
  message_retention_period = 7 * 24 * 3600 # the longest there is
  tags                     = local.tags
}

locals {
  dead_letters = "acs:mns:${var.region}:${local.account}:/queues/${alicloud_message_service_queue.dead_letters.queue_name}"
}

# What functions write; a line is one JSON object (docs/hosts.md).
resource "alicloud_log_project" "here" {
  project_name = "${var.name}-${local.account}-${var.region}"
  description  = "Costguard"
  tags         = local.tags
}

resource "alicloud_log_store" "function" {
  for_each = local.functions

  project_name     = alicloud_log_project.here.project_name
  logstore_name    = each.key
  retention_period = var.log_retention_days
  shard_count      = 1
  append_meta      = true
}

resource "alicloud_log_store_index" "function" {
  for_each = local.functions

  project  = alicloud_log_project.here.project_name
  logstore = alicloud_log_store.function[each.key].logstore_name

  full_text {
    case_sensitive = false
    token          = ", '\";=()[]{}?@&<>/:\n\t\r" # no underscore and no hyphen: names stay whole
  }

  field_search {
    name             = "functionName"
    type             = "text"
    token            = ", '\";=()[]{}?@&<>/:\n\t\r"
    enable_analytics = true
  }
}

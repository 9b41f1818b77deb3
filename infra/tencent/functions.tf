# One function for each folder in functions/; what each takes is said in its function.yaml and nowhere else.
#
# SCF tries a failed event twice more by itself, a minute apart, and keeps it for six hours: what Costguard wants. Where
# an event goes that no try got done cannot be said here: the provider has no argument for it (docs/deploy-tencent.md).

locals {
  folder = "${path.module}/../../functions"
  known  = { for file in fileset(local.folder, "*/function.yaml") : dirname(file) => yamldecode(file("${local.folder}/${file}")) }

  functions = { for name, facts in local.known : name => facts if var.functions == null ? true : contains(var.functions, name) }
  timed     = { for name, facts in local.functions : name => facts if can(facts.schedule) }
  asked     = { for name, facts in local.functions : name => facts if can(facts.http) }

  reads          = { for name, facts in local.functions : name => concat(facts.needs.settings.required, facts.needs.settings.optional) }
  known_settings = distinct(concat(flatten(values(local.reads)), ["COSTGUARD_TENCENT_EXTERNAL_ID"]))

  # Those that docs/settings.md calls secret; tests/infra compares.
  secret_settings = [
    "COSTGUARD_FORGE_TOKEN", "COSTGUARD_LEDGER", "COSTGUARD_LINK_SECRET", "COSTGUARD_PROMETHEUS_AUTHORIZATION", "COSTGUARD_ROBOTS",
    "COSTGUARD_SLACK_SIGNING_SECRET", "COSTGUARD_SLACK_TOKEN", "COSTGUARD_SMTP_PASSWORD", "COSTGUARD_WEBHOOK_SECRET",
  ]
  own_settings = ["COSTGUARD_ANSWER_URL", "COSTGUARD_NAME", "COSTGUARD_POLICY", "COSTGUARD_REPORTS", "COSTGUARD_TENCENT_ROLE"]

  for_all = ["COSTGUARD_PAUSED"] # the kill switch reaches everything, whoever names it

  # What this deployment knows itself; each function gets what it reads.
  made_settings = { COSTGUARD_NAME = var.name, COSTGUARD_POLICY = local.policy_source, COSTGUARD_REPORTS = local.reports }
  enters        = { for name, facts in local.functions : name => facts if local.has_members && can(facts.needs.policies.members) }
  environment = {
    for name, reads in local.reads : name => merge(
      { COSTGUARD_CLOUD = "tencent" }, # where the policy names no account; the international site is tencent-intl, said in `settings`
      { for key, value in local.made_settings : key => value if contains(reads, key) },
      { for key, value in var.settings : key => value if contains(reads, key) || contains(local.for_all, key) || !contains(local.known_settings, key) },
      { for key, value in var.settings : key => value if key == "COSTGUARD_TENCENT_EXTERNAL_ID" && contains(keys(local.enters), name) },
      { for key, at in var.secrets : key => "secret:${at}" if contains(reads, key) },
      contains(keys(local.enters), name) ? { COSTGUARD_TENCENT_ROLE = "${var.member_role}-${name}" } : {},
    )
  }

  # New code has another name in the bucket: the provider sends code where its name changes, and only there.
  hashes = { for name, _ in local.functions : name => try(filesha256("${var.bundles}/${name}.zip"), "none") }
}

resource "tencentcloud_cos_bucket_object" "bundle" {
  for_each = local.functions

  bucket = tencentcloud_cos_bucket.policy.bucket
  key    = "bundles/${each.key}-${substr(local.hashes[each.key], 0, 16)}.zip"
  source = "${var.bundles}/${each.key}.zip"
  acl    = "private"

  lifecycle {
    precondition {
      condition     = local.hashes[each.key] != "none"
      error_message = "${var.bundles}/${each.key}.zip is not there; make it with `costguard bundle scf --out build`."
    }
    precondition {
      condition     = length(setsubtract(each.value.needs.settings.required, keys(local.environment[each.key]))) == 0
      error_message = "${each.key} needs ${join(", ", setsubtract(each.value.needs.settings.required, keys(local.environment[each.key])))}: name the secret that holds it in `secrets`, or leave the function out of `functions`."
    }
    precondition {
      condition     = length(jsonencode(local.environment[each.key])) <= 3000
      error_message = "SCF takes 4 KB of environment, the role's keys included; ${each.key} has ${length(jsonencode(local.environment[each.key]))} letters of settings."
    }
  }
}

resource "tencentcloud_scf_function" "timed" {
  for_each = local.timed

  name              = "${var.name}-${each.key}"
  description       = "Costguard ${replace(each.key, "_", " ")}, bundle ${substr(local.hashes[each.key], 0, 16)}"
  func_type         = "Event"
  handler           = "handler.handler"
  runtime           = "Python3.10"
  role              = tencentcloud_cam_role.function[each.key].name
  mem_size          = each.value.memory_mib
  timeout           = each.value.timeout_seconds
  cos_bucket_name   = tencentcloud_cos_bucket_object.bundle[each.key].bucket
  cos_object_name   = tencentcloud_cos_bucket_object.bundle[each.key].key
  cos_bucket_region = var.region
  vpc_id            = tencentcloud_vpc.here.id
  subnet_id         = tencentcloud_subnet.here.id
  enable_public_net = true # clouds and Slack; SCF needs no NAT gateway for it
  cls_logset_id     = tencentcloud_cls_logset.here.id
  cls_topic_id      = tencentcloud_cls_topic.function[each.key].id
  environment       = merge(local.environment[each.key], local.told_answer_url[each.key])
  tags              = local.tags

  depends_on = [tencentcloud_cam_role_policy_attachment.own, tencentcloud_cam_role_policy_attachment.deny, tencentcloud_cam_role_policy_attachment.members]
}

# Apart from the others, because they are told this one's address.
resource "tencentcloud_scf_function" "asked" {
  for_each = local.asked

  name              = "${var.name}-${each.key}"
  description       = "Costguard ${replace(each.key, "_", " ")}, bundle ${substr(local.hashes[each.key], 0, 16)}"
  func_type         = "Event"
  handler           = "handler.handler"
  runtime           = "Python3.10"
  role              = tencentcloud_cam_role.function[each.key].name
  mem_size          = each.value.memory_mib
  timeout           = each.value.timeout_seconds
  cos_bucket_name   = tencentcloud_cos_bucket_object.bundle[each.key].bucket
  cos_object_name   = tencentcloud_cos_bucket_object.bundle[each.key].key
  cos_bucket_region = var.region
  vpc_id            = tencentcloud_vpc.here.id
  subnet_id         = tencentcloud_subnet.here.id
  enable_public_net = true
  cls_logset_id     = tencentcloud_cls_logset.here.id
  cls_topic_id      = tencentcloud_cls_topic.function[each.key].id
  environment       = local.environment[each.key]
  tags              = local.tags

  depends_on = [tencentcloud_cam_role_policy_attachment.own, tencentcloud_cam_role_policy_attachment.deny, tencentcloud_cam_role_policy_attachment.members]
}

# What functions write; a line is one JSON object (docs/hosts.md), which SCF puts into SCF_Message.
resource "tencentcloud_cls_logset" "here" {
  logset_name = var.name
  tags        = local.tags
}

resource "tencentcloud_cls_topic" "function" {
  for_each = local.functions

  logset_id       = tencentcloud_cls_logset.here.id
  topic_name      = "${var.name}-${each.key}"
  describes       = "What ${var.name}-${each.key} writes"
  period          = var.log_retention_days
  storage_type    = "hot"
  partition_count = 1
  auto_split      = false
  tags            = local.tags
}

resource "tencentcloud_cls_index" "function" {
  for_each = local.functions

  topic_id = tencentcloud_cls_topic.function[each.key].id
  status   = true

  rule {
    full_text {
      case_sensitive = false
      contain_z_h    = true
      tokenizer      = "@&?|#()='\",;:<>[]{}/ \n\t\r\\" # no underscore and no hyphen: names stay whole
    }

    key_value {
      case_sensitive = false

      # By the vendor's own list of fields ("SCF log structure").
      dynamic "key_values" {
        for_each = { SCF_FunctionName = "text", SCF_StatusCode = "long", SCF_Duration = "long" }

        content {
          key = key_values.key

          value {
            type        = key_values.value
            contain_z_h = false
            sql_flag    = true
            tokenizer   = key_values.value == "text" ? "@&?|#()='\",;:<>[]{}/ \n\t\r\\" : ""
          }
        }
      }
    }
  }
}

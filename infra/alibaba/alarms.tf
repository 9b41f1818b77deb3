# What tells people that Costguard fails. That it does not run at all is told by dead_man.tf.
#
# Figures that FC counts are CloudMonitor's; what only lines say, and silence, are SLS's: CloudMonitor takes a metric
# without points for one that stays as it was, and a function that is never called has none.

locals {
  deployment = "${var.name} in ${var.region} of ${local.account}"

  # Function → hours between two runs at most. SLS looks back a day, so what runs weekly is not watched for silence.
  daily = { for name, hours in module.cron.longest_gap_hours : name => hours if hours <= 24 }

  # One function tells that the digest is overdue, where it comes once a week or more often (engine/overdue.py).
  tells_of_digest = { for name in slice(keys(local.daily), 0, min(1, length(local.daily))) : name => name if try(module.cron.longest_gap_hours["digest"] <= 168, false) }

  metrics = {
    errors = {
      metric = "FunctionFunctionErrors", threshold = { for name, _ in local.functions : name => 1 }
      says   = "failed; its log has a line `run failed`"
    }
    throttles = {
      metric = "FunctionConcurrencyThrottles", threshold = { for name, _ in local.functions : name => 1 }
      says   = "was not started at once: its concurrency is used up"
    }
    no_room = {
      metric = "FunctionResourceThrottles", threshold = { for name, _ in local.functions : name => 1 }
      says   = "was not started at once: the account's instances are used up"
    }
    duration = {
      metric = "FunctionMaxDuration", threshold = { for name, facts in local.functions : name => facts.timeout_seconds * 1000 * 0.8 }
      says   = "takes over 80 % of its time"
    }
  }
  function_alarms = merge([
    for kind, alarm in local.metrics : {
      for name, _ in local.functions : "${name}/${kind}" => { function = name, kind = kind, metric = alarm.metric, threshold = alarm.threshold[name], says = alarm.says }
    }
  ]...)

  # Lines that have no figure. A test looks for the words in the code.
  lines = {
    notices-lost   = { words = ["notice will never be delivered", "notice came too late and is not sent"], of = local.functions, seconds = 900, at_least = 1, times = 1, says = "people were not told something, and will not be: `costguard outbox` shows it" }
    notices-wait   = { words = ["notice not delivered yet"], of = local.timed, seconds = 3600, at_least = 1, times = 3, says = "notices have not gone out for three hours: `costguard outbox` shows why. Nothing is stopped meanwhile" }
    digest-overdue = { words = ["the weekly digest is overdue"], of = local.tells_of_digest, seconds = 3600, at_least = 1, times = 1, says = "tells: no weekly digest has begun for over eight days. Is its timer on, does its log say why?" }
    requests-fail  = { words = ["request failed", "answer not taken"], of = local.asked, seconds = 900, at_least = 1, times = 1, says = "an answer could not be taken; whoever gave it was told so" }
    request-forged = { words = ["request refused"], of = local.asked, seconds = 900, at_least = 60, times = 1, says = "requests without a valid signature keep coming: a regenerated signing secret, or somebody trying" }
  }

  # Watched in the log: how many of these lines in how long, looked at how often, and how often in a row before it rings.
  watches = merge(
    merge([
      for kind, line in local.lines : {
        for name, _ in line.of : "${name}/${kind}" => {
          function = name, kind = kind, words = line.words, seconds = line.seconds, every = line.seconds, times = line.times
          rings    = "lines >= ${line.at_least}", says = line.says, policy = "alarms"
        }
      }
    ]...),
    # A run that ended says so; none for longer than its schedule allows is a run missed, cut off or failed.
    {
      for name, hours in local.daily : "${name}/missed" => {
        function = name, kind = "missed", words = ["run finished"], seconds = min(hours + 1, 24) * 3600, every = local.looks[name] * 3600
        times    = 1 + ceil((hours + 1 - min(hours + 1, 24)) / local.looks[name]), rings = "lines < 1", policy = "alarms"
        says     = "has not finished a run for over ${hours} h. Is its timer on, does its log say why?"
      }
    },
    local.silences,
  )
  looks = { for name, hours in local.daily : name => hours <= 6 ? 1 : 4 } # hours between two looks
}

resource "alicloud_cms_alarm_contact" "mailed" {
  for_each = { for who, address in { alarms = var.alarm_mail, dead-man = local.dead_man_mail } : who => address if address != "" }

  alarm_contact_name = "${var.name}-${each.key}"
  describe           = "Costguard: ${each.key}"
  channels_mail      = each.value

  lifecycle {
    ignore_changes = [channels_mail] # absent until its owner has confirmed it
  }
}

resource "alicloud_cms_alarm_contact_group" "alarms" {
  alarm_contact_group_name = "${var.name}-alarms"
  describe                 = "Costguard fails"
  contacts                 = [for who, contact in alicloud_cms_alarm_contact.mailed : contact.alarm_contact_name if who == "alarms"]
}

resource "alicloud_cms_alarm" "function" {
  for_each = local.function_alarms

  name              = "${var.name}-${each.value.function}-${each.value.kind}"
  project           = "acs_fc"
  metric            = each.value.metric
  metric_dimensions = jsonencode([{ region = var.region, functionName = "${var.name}-${each.value.function}" }])
  period            = 60
  silence_time      = 3600
  contact_groups    = [alicloud_cms_alarm_contact_group.alarms.alarm_contact_group_name]
  tags              = local.tags

  escalations_critical {
    statistics          = "Value"
    comparison_operator = ">="
    threshold           = each.value.threshold
    times               = 1
  }

  depends_on = [alicloud_fcv3_function.timed, alicloud_fcv3_function.asked]
}

# Who SLS mails: people, a group of them, and what is done about an alert.
resource "alicloud_log_resource_record" "mailed" {
  for_each = alicloud_cms_alarm_contact.mailed
  provider = alicloud.alert_center

  resource_name = "sls.common.user"
  record_id     = each.value.alarm_contact_name
  tag           = each.value.alarm_contact_name
  value = jsonencode({
    user_id     = each.value.alarm_contact_name, user_name = each.value.alarm_contact_name, enabled = true
    email       = [each.key == "alarms" ? var.alarm_mail : local.dead_man_mail]
    sms_enabled = false, voice_enabled = false, phone = "", country_code = ""
  })
}

resource "alicloud_log_resource_record" "group" {
  for_each = toset(["alarms", "dead-man"])
  provider = alicloud.alert_center

  resource_name = "sls.common.user_group"
  record_id     = "${var.name}-${each.key}"
  tag           = "${var.name}-${each.key}"
  value = jsonencode({
    user_group_id = "${var.name}-${each.key}", user_group_name = "${var.name}-${each.key}", enabled = true
    members       = [for who, user in alicloud_log_resource_record.mailed : user.record_id if who == each.key]
  })
}

resource "alicloud_log_resource_record" "action" {
  for_each = toset(["alarms", "dead-man"])
  provider = alicloud.alert_center

  resource_name = "sls.alert.action_policy"
  record_id     = "${var.name}-${each.key}"
  tag           = "${var.name}-${each.key}"
  value = jsonencode({
    action_policy_id = "${var.name}-${each.key}", action_policy_name = "${var.name}-${each.key}", labels = {}, is_default = false

    primary_policy_script   = local.mail_script[each.key]
    secondary_policy_script = local.mail_script[each.key]

    escalation_start_enabled      = false, escalation_start_timeout = "10m"
    escalation_inprogress_enabled = false, escalation_inprogress_timeout = "30m"
    escalation_enabled            = false, escalation_timeout = "1h"
  })

  depends_on = [alicloud_log_resource_record.group]
}

locals {
  mail_script = {
    for who in ["alarms", "dead-man"] : who =>
    "fire(type=\"email\", users=[], groups=[\"${var.name}-${who}\"], oncall_groups=[], receiver_type=\"static\", external_url=\"\", external_headers={}, template_id=\"sls.builtin.cn\", period=\"any\")"
  }
}

# What the console makes when somebody first opens alerts there: of the account, and of the project.
resource "alicloud_log_alert_resource" "account" {
  type = "user"
  lang = "en"
}

resource "alicloud_log_alert_resource" "project" {
  type    = "project"
  project = alicloud_log_project.here.project_name
}

resource "alicloud_sls_alert" "watch" {
  for_each = local.watches

  project_name = alicloud_log_project.here.project_name
  alert_name   = "${replace(each.value.function, "_", "-")}-${each.value.kind}"
  display_name = "Costguard ${each.value.function} ${each.value.kind}"
  description  = ""
  status       = "ENABLED"

  schedule {
    type      = "FixedRate"
    interval  = "${each.value.every / 60}m"
    time_zone = "+0000"
    delay     = 60 # lines arrive late
  }

  configuration {
    version         = "2.0"
    type            = "default"
    dashboard       = "internal-alert-analysis"
    threshold       = each.value.times
    no_data_fire    = false # a count is a row, also of nothing
    send_resolved   = true
    auto_annotation = true

    query_list {
      store_type     = "log"
      region         = var.region
      project        = alicloud_log_project.here.project_name
      store          = alicloud_log_store.function[each.value.function].logstore_name
      query          = "${join(" or ", [for words in each.value.words : "(${join(" and ", [for word in split(" ", words) : "\"${word}\""])})"])} | select count(1) as lines"
      start          = "-${each.value.seconds}s"
      end            = "now"
      time_span_type = "Relative"
      power_sql_mode = "auto"
    }

    group_configuration {
      type = "no_group"
    }

    severity_configurations {
      severity = each.value.policy == "alarms" ? 8 : 10

      eval_condition {
        condition       = each.value.rings
        count_condition = ""
      }
    }

    annotations {
      key   = "title"
      value = "Costguard's ${each.value.function}: ${each.value.kind}"
    }

    annotations {
      key   = "desc"
      value = "${each.value.function} ${each.value.says}. ${local.deployment}"
    }

    policy_configuration {
      alert_policy_id  = "sls.builtin.dynamic"
      action_policy_id = alicloud_log_resource_record.action[each.value.policy].record_id
      repeat_interval  = "4h"
    }
  }

  depends_on = [alicloud_log_store_index.function, alicloud_log_alert_resource.account, alicloud_log_alert_resource.project]
}

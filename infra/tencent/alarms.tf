# What tells people that Costguard fails. That it does not run at all is told by dead_man.tf.
#
# CLS looks into what SCF wrote. The figures that Cloud Monitor counts (QCE/SCF_V2) are not used: what its alarm policies
# call functions stands in no document, only in the answer to DescribeAllNamespaces.

locals {
  deployment = "${var.name} in ${var.region} of ${local.account}"

  # Function → hours between two runs at most. CLS looks back a day, so what runs weekly is not watched for silence.
  daily = { for name, hours in module.cron.longest_gap_hours : name => hours if hours <= 24 }

  # One function tells that the digest is overdue, where it comes once a week or more often (engine/overdue.py).
  tells_of_digest = { for name in slice(keys(local.daily), 0, min(1, length(local.daily))) : name => name if try(module.cron.longest_gap_hours["digest"] <= 168, false) }

  # Found by SCF's own fields: 430 the program failed, 433 it was cut off, 434 memory ran out; 429 and 432 nobody ran it.
  figures = {
    errors    = { query = { for name, _ in local.functions : name => "SCF_StatusCode:>=400 AND NOT SCF_StatusCode:429 AND NOT SCF_StatusCode:432" }, says = "failed; its log has a line `run failed`. The same event is tried twice more" }
    throttles = { query = { for name, _ in local.functions : name => "SCF_StatusCode:429 OR SCF_StatusCode:432" }, says = "was not started at once: its concurrency or the account's is used up" }
    duration  = { query = { for name, facts in local.functions : name => "SCF_Duration:>${facts.timeout_seconds * 800}" }, says = "takes over 80 % of its time; at 90 % it stops short, and the next run goes on" }
  }

  # Lines that have no figure. A test looks for the words in the code.
  lines = {
    notices-lost   = { words = ["notice will never be delivered", "notice came too late and is not sent"], of = local.functions, seconds = 900, at_least = 1, times = 1, says = "people were not told something, and will not be: `costguard outbox` shows it" }
    notices-wait   = { words = ["notice not delivered yet"], of = local.timed, seconds = 3600, at_least = 1, times = 3, says = "notices have not gone out for three hours: `costguard outbox` shows why. Nothing is stopped meanwhile" }
    digest-overdue = { words = ["the weekly digest is overdue"], of = local.tells_of_digest, seconds = 3600, at_least = 1, times = 1, says = "tells: no weekly digest has begun for over eight days. Is its timer on, does its log say why?" }
    requests-fail  = { words = ["request failed", "answer not taken"], of = local.asked, seconds = 900, at_least = 1, times = 1, says = "an answer could not be taken; whoever gave it was told so" }
    request-forged = { words = ["request refused"], of = local.asked, seconds = 900, at_least = 60, times = 1, says = "requests without a valid signature keep coming: a regenerated signing secret, or somebody trying" }
  }

  # What in how long, looked at how often, and how often in a row before it rings.
  watches = merge(
    merge([
      for kind, figure in local.figures : {
        for name, query in figure.query : "${name}/${kind}" => {
          function = name, kind = kind, query = query, seconds = 900, every = 900, times = 1, rings = "$1.lines > 0", says = figure.says, notice = "alarms"
        }
      }
    ]...),
    merge([
      for kind, line in local.lines : {
        for name, _ in line.of : "${name}/${kind}" => {
          function = name, kind = kind, query = join(" OR ", [for words in line.words : "\"${words}\""]), seconds = line.seconds, every = line.seconds
          times    = line.times, rings = "$1.lines >= ${line.at_least}", says = line.says, notice = "alarms"
        }
      }
    ]...),
    # A run that ended says so; none for longer than its schedule allows is a run missed, cut off or failed.
    {
      for name, hours in local.daily : "${name}/missed" => {
        function = name, kind = "missed", query = "\"run finished\"", seconds = min(hours + 1, 24) * 3600, every = local.looks[name] * 3600
        times    = 1 + ceil((hours + 1 - min(hours + 1, 24)) / local.looks[name]), rings = "$1.lines < 1", notice = "alarms"
        says     = "has not finished a run for over ${hours} h. Is its timer on, does its log say why?"
      }
    },
    local.silences,
  )
  looks = { for name, hours in local.daily : name => hours <= 6 ? 1 : 4 } # hours between two looks

  mailed = { for who, address in { alarms = var.alarm_mail, dead-man = local.dead_man_mail } : who => address if address != "" }
}

# Tencent Cloud mails people it knows, not addresses: users that can neither sign in nor call anything.
resource "tencentcloud_cam_user" "mailed" {
  for_each = local.mailed

  name          = "${var.name}-${each.key}"
  remark        = "Receives Costguard's mail and may do nothing"
  email         = each.value
  console_login = false
  use_api       = false
  tags          = local.tags
}

resource "tencentcloud_cls_alarm_notice" "mailed" {
  for_each = tencentcloud_cam_user.mailed

  name = "${var.name}-${each.key}"
  type = "All"
  tags = local.tags

  notice_receivers {
    receiver_type     = "Uin"
    receiver_ids      = [each.value.uid]
    receiver_channels = ["Email"]
    start_time        = "00:00:00"
    end_time          = "23:59:59"
  }
}

# CLS has no alarm that tells nobody: without an address there is none.
resource "tencentcloud_cls_alarm" "watch" {
  for_each = { for key, watch in local.watches : key => watch if contains(keys(local.mailed), watch.notice) }

  name             = "${var.name}-${each.value.function}-${each.value.kind}"
  alarm_notice_ids = [tencentcloud_cls_alarm_notice.mailed[each.value.notice].id]
  alarm_level      = each.value.notice == "alarms" ? 0 : 2
  alarm_period     = 240
  condition        = each.value.rings
  trigger_count    = each.value.times
  status           = true
  message_template = "Costguard's ${each.value.function} ${each.value.says}. ${local.deployment}"
  tags             = local.tags

  alarm_targets {
    logset_id         = tencentcloud_cls_logset.here.id
    topic_id          = tencentcloud_cls_topic.function[each.value.function].id
    query             = "${each.value.query} | select count(*) as lines" # a count is a row, also of nothing
    syntax_rule       = 1
    number            = 1
    start_time_offset = -each.value.seconds / 60
    end_time_offset   = 0
  }

  monitor_time {
    type = "Period"
    time = each.value.every / 60
  }

  depends_on = [tencentcloud_cls_index.function]
}

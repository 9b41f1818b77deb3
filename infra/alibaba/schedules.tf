# FC's own timers start what has a schedule. Functions take no orders from events: the time is all that is read.

module "cron" {
  source = "../modules/schedule"

  scf_hours_ahead = 0 # else what SCF's clock cannot say would be refused here as well
  five            = { for name, facts in local.timed : name => lookup(var.schedules, name, facts.schedule) }
}

resource "alicloud_fcv3_trigger" "timer" {
  for_each = local.timed

  function_name = alicloud_fcv3_function.timed[each.key].function_name
  trigger_name  = "timer"
  trigger_type  = "timer"
  description   = "Starts ${var.name}-${each.key}, in UTC"
  qualifier     = "LATEST"

  trigger_config = jsonencode({ cronExpression = module.cron.fc[each.key], enable = true, payload = "" })
}

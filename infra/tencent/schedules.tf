# SCF's own timers start what has a schedule. Functions take no orders from events: the time is all that is read.

module "cron" {
  source = "../modules/schedule"

  five = { for name, facts in local.timed : name => lookup(var.schedules, name, facts.schedule) }
}

resource "tencentcloud_scf_trigger" "timer" {
  for_each = local.timed

  function_name = tencentcloud_scf_function.timed[each.key].name
  namespace     = "default"
  trigger_name  = "timer"
  type          = "timer"
  trigger_desc  = module.cron.scf[each.key] # by SCF's clock, which is Beijing's
  qualifier     = "$LATEST"
  enable        = "OPEN"
}

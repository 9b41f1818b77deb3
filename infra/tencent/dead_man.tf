# The dead-man's switch: people are told when nothing of Costguard has run for long, by what needs nothing of Costguard's.
#
# Shared with the guard: the account, the region and CLS. Not shared: its roles, its code, its ledger, its policy, SCF's
# timers, and whoever reads the alarms. CLS looks with its own service role, and mails by itself. Silence is the signal,
# so that whatever silences the guard (a role taken away, a timer switched off, a bundle that cannot start, an account
# out of money) rings it.

locals {
  dead_man_mail = var.dead_man_mail == "" ? var.alarm_mail : var.dead_man_mail

  # Two runs missed and some. A look back is a day at most, so a daily guard is looked at until two days are over.
  dead_after_hours = { for name, hours in local.daily : name => 2 * hours + 1 }

  silences = {
    for name, hours in local.dead_after_hours : "${name}/dead-man" => {
      function = name, kind = "dead-man", query = "\"run finished\"", seconds = min(hours, 24) * 3600, every = local.looks[name] * 3600
      times    = 1 + ceil((hours - min(hours, 24)) / local.looks[name]), rings = "$1.lines < 1", notice = "dead-man"
      says     = "has not run for ${hours} h: nothing is guarded, and nobody else will say so"
    }
  }
}
